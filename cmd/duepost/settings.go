package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/duepost/duepost/internal/config"
)

// envPrefix starts the environment variable of every setting: --data-dir is DUEPOST_DATA_DIR.
const envPrefix = "DUEPOST_"

// settings resolves what the command line does not say: environment first, then the file that
// --config names, then the default. It is a resolver of its own because kong lets a file
// override the environment, and because tests give it their own environment.
type settings struct {
	environ   []string // NAME=VALUE
	variables map[*kong.Flag]string
	origins   map[string]string // where a flag's value comes from, by its name; not command line and default
	path      string            // of the file
	file      config.File
	loaded    bool
	fault     error // of the file
}

func newSettings(environ []string) *settings {
	return &settings{environ: environ, variables: map[*kong.Flag]string{}, origins: map[string]string{}}
}

// Validate has nothing to check before the file is known; Resolve does it.
func (s *settings) Validate(*kong.Application) error { return nil }

// Resolve answers for one flag that was not given on the command line; nil means no answer. A
// fault of the file is kept in s.fault: as an error of Resolve it would be called one of the
// flag that happens to be asked for first.
func (s *settings) Resolve(c *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	if name, ok := s.variables[flag]; ok {
		if v, ok := lookup(s.environ, name); ok {
			s.origins[flag.Name] = "the environment variable " + name
			return v, nil
		}
	}
	if parent.Command == nil || parent.Command.Name != "serve" {
		return nil, nil
	}
	s.load(c, parent.Flags)
	if v, ok := s.file[flag.Name]; ok && isFileSetting(flag) {
		s.origins[flag.Name] = "the file of --config, " + s.path
		return v, nil
	}
	return nil, nil
}

// load reads the file named by --config or DUEPOST_CONFIG, once.
func (s *settings) load(c *kong.Context, flags []*kong.Flag) {
	if s.loaded {
		return
	}
	s.loaded = true
	var names []string
	for _, f := range flags {
		if f.Name == "config" {
			s.path, _ = c.FlagValue(f).(string)
		}
		if isFileSetting(f) {
			names = append(names, f.Name)
		}
	}
	from := "--config"
	if s.path == "" {
		from = envPrefix + "CONFIG (--config)"
		s.path, _ = lookup(s.environ, envPrefix+"CONFIG")
	}
	if s.path == "" {
		return
	}
	text, err := os.ReadFile(s.path)
	if err == nil {
		s.file, err = config.ParseFile(s.path, text, names)
	}
	if err != nil {
		s.fault = fmt.Errorf("%s: %w", from, err)
	}
}

// explain says where the values come from that an error text is about, if not from the command
// line; else it returns the hint.
func (s *settings) explain(err error, hint string) string {
	var from []string
	for name, origin := range s.origins {
		if regexp.MustCompile(`(^|[^a-z-])(--)?` + name + `($|[^a-z-])`).MatchString(err.Error()) {
			from = append(from, fmt.Sprintf("%s is set by %s", name, origin))
		}
	}
	if len(from) == 0 {
		return hint
	}
	slices.Sort(from)
	return strings.Join(from, "; ")
}

// warnUnknown tells of variables that look like settings and are none: a name that is misspelt
// should not go unnoticed.
func (s *settings) warnUnknown(w io.Writer) {
	// Orchestrators set variables such as DUEPOST_PORT_5672_TCP for a service of that name, and
	// the tests of this repository have some of their own.
	foreign := regexp.MustCompile(`^DUEPOST_(TEST_|E2E_|REQUIRE$|(.*_)?SERVICE_(HOST|PORT)|(.*_)?PORT(_\d+_(TCP|UDP).*)?$)`)
	known := []string{envPrefix + "CONFIG"}
	for _, name := range s.variables {
		known = append(known, name)
	}
	for _, v := range s.environ {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(known, name) || foreign.MatchString(name) {
			continue
		}
		fmt.Fprintf(w, "duepost: warning: the environment variable %s is no setting%s\n", name, similar(name, known))
	}
}

// similar names the variable that is meant, if only underscores or case tell them apart.
func similar(name string, known []string) string {
	bare := func(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "_", "")) }
	for _, k := range known {
		if bare(k) == bare(name) {
			return "; is " + k + " meant?"
		}
	}
	return "; duepost serve --help lists those that are"
}

// isFileSetting tells settings of the broker from flags that only make sense on a command line.
func isFileSetting(f *kong.Flag) bool {
	return !slices.Contains([]string{"help", "version", "config", "cpu-profile", "print-config"}, f.Name)
}

// isClientSetting tells the flags that lead clients and operators to a broker.
func isClientSetting(f *kong.Flag) bool {
	return slices.Contains([]string{"url", "api-url", "user", "password", "rabbitmq", "management"}, f.Name)
}

// name gives every flag of serve, and those that lead to a broker, its environment variable.
func (s *settings) name(k *kong.Kong) error {
	for _, verb := range k.Model.Children {
		for _, f := range verb.Flags {
			if verb.Name == "serve" && (f.Name == "config" || isFileSetting(f)) || isClientSetting(f) {
				name := strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
				s.variables[f] = envPrefix + name
			}
		}
	}
	return nil
}

// help is a flag's help with its environment variable.
func (s *settings) help(v *kong.Value) string {
	name, ok := s.variables[v.Flag]
	if !ok {
		return v.Help
	}
	return fmt.Sprintf("%s ($%s)", v.Help, name)
}

// lookup finds a variable among NAME=VALUE; the last of a name counts.
func lookup(environ []string, name string) (string, bool) {
	for _, v := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
