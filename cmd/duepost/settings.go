package main

import (
	"fmt"
	"os"
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
	lookupEnv func(name string) (string, bool)
	variables map[*kong.Flag]string
	file      config.File
	loaded    bool
}

// Validate has nothing to check before the file is known; Resolve does it.
func (s *settings) Validate(*kong.Application) error { return nil }

// Resolve answers for one flag that was not given on the command line; nil means no answer.
func (s *settings) Resolve(c *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	if name, ok := s.variables[flag]; ok {
		if v, ok := s.lookupEnv(name); ok {
			return v, nil
		}
	}
	if parent.Command == nil || parent.Command.Name != "serve" {
		return nil, nil
	}
	if err := s.load(c, parent.Flags); err != nil {
		return nil, err
	}
	if v, ok := s.file[flag.Name]; ok && isFileSetting(flag) {
		return v, nil
	}
	return nil, nil
}

// load reads the file named by --config or DUEPOST_CONFIG, once.
func (s *settings) load(c *kong.Context, flags []*kong.Flag) error {
	if s.loaded {
		return nil
	}
	s.loaded = true
	var path string
	var names []string
	for _, f := range flags {
		if f.Name == "config" {
			path, _ = c.FlagValue(f).(string)
		}
		if isFileSetting(f) {
			names = append(names, f.Name)
		}
	}
	if path == "" {
		path, _ = s.lookupEnv(envPrefix + "CONFIG")
	}
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	s.file, err = config.ParseFile(path, text, names)
	return err
}

// isFileSetting tells settings of the broker from flags that only make sense on a command line.
func isFileSetting(f *kong.Flag) bool {
	return !slices.Contains([]string{"help", "config", "cpu-profile", "print-config"}, f.Name)
}

// name gives every flag of serve, and --url of the client verbs, its environment variable.
func (s *settings) name(k *kong.Kong) error {
	for _, verb := range k.Model.Children {
		for _, f := range verb.Flags {
			if verb.Name == "serve" && (f.Name == "config" || isFileSetting(f)) || f.Name == "url" {
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
