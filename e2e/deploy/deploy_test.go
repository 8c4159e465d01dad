// Package deploy tests what deploy has: that the image's program runs alone, and that the manifest asks
// for what the program knows.
package deploy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/duepost/duepost/internal/relay/topology"
	"github.com/duepost/duepost/internal/requirement"
)

const deploy = "../../deploy"

// build makes the program as the Dockerfile does and returns the directory that it is in, alone.
func build(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^RUN (\w+=\w+) go (build .*)$`).FindStringSubmatch(string(text))
	if line == nil {
		t.Fatal("the Dockerfile has no line that builds")
	}
	dir := t.TempDir()
	args := strings.Fields(strings.Replace(line[2], "/out/", dir+"/", 1))
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), line[1])
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return dir
}

// The program runs in a root with nothing else, as a user without rights; the arguments and the variable of
// the manifest are ones that it takes, and it answers the probes' paths.
func TestImageAndManifest(t *testing.T) {
	t.Parallel()
	dir := build(t)
	runsAlone(t, dir)
	fits(t, filepath.Join(dir, "duepost"))
}

func runsAlone(t *testing.T, dir string) {
	if os.Getuid() != 0 {
		requirement.Missing(t, "root", "chroot is for root only")
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/duepost", "version")
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("go1.")) {
		t.Errorf("duepost version: %v\n%s", err, out)
	}
}

// manifest is what of relay.yaml must fit the program.
type manifest struct {
	Kind       string
	Data       map[string]string
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		Replicas int
		Template struct {
			Spec struct {
				Containers []struct {
					Args          []string
					Env           []struct{ Name string }
					LivenessProbe probe `yaml:"livenessProbe"`
					Readiness     probe `yaml:"readinessProbe"`
				}
			}
		}
	}
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, "kubernetes", "relay.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]manifest{}
	for documents := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		err := documents.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all[m.Kind] = m
	}
}

func fits(t *testing.T, program string) {
	all := manifests(t)
	d := all["Deployment"].Spec
	if d.Replicas != 2 || len(d.Template.Spec.Containers) != 1 {
		t.Fatalf("the deployment is %+v", d)
	}
	c := d.Template.Spec.Containers[0]
	help, err := exec.CommandContext(t.Context(), program, "relay", "run", "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, help)
	}
	if c.Args[0] != "relay" {
		t.Errorf("the verb is %s", c.Args[0])
	}
	for _, arg := range c.Args[1:] {
		if name, _, _ := strings.Cut(arg, "="); !bytes.Contains(help, []byte(name+"=")) {
			t.Errorf("duepost relay has no %s:\n%s", name, help)
		}
	}
	for _, e := range c.Env {
		if !bytes.Contains(help, []byte(e.Name)) {
			t.Errorf("duepost relay reads no variable %s:\n%s", e.Name, help)
		}
	}
	answered := []string{c.LivenessProbe.HTTPGet.Path, c.Readiness.HTTPGet.Path}
	if !slices.Equal(answered, []string{"/health/live", "/health/ready"}) {
		t.Errorf("the probes ask for %v", answered)
	}
	if _, err := topology.ReadKept([]byte(all["ConfigMap"].Data["exchanges.yaml"])); err != nil {
		t.Error(err)
	}
}
