package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/config"
)

// printed runs serve --print-config and returns the settings it shows.
func printed(t *testing.T, env map[string]string, args ...string) map[string]any {
	t.Helper()
	got := runWith(t, env, "", append([]string{"serve", "--print-config"}, args...)...)
	if got.code != 0 {
		t.Fatalf("exit code %d:\n%s", got.code, got.stderr)
	}
	var shown map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &shown); err != nil {
		t.Fatalf("%v:\n%s", err, got.stdout)
	}
	return shown
}

func TestDefaultsOfFlagsAndConfigAgree(t *testing.T) {
	t.Parallel()
	text, err := config.Default().JSON()
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, printed(t, nil)); diff != "" {
		t.Errorf("config.Default() and the flags' defaults differ, -config +flags:\n%s", diff)
	}
}

func TestEverySettingIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "CONFIGURATION.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := printed(t, nil)
	shown["default-pass"] = string(config.Default().DefaultPass)
	for name, v := range shown {
		line := fmt.Sprintf("| `%s` | `%v` |", name, v)
		if f, ok := v.(float64); ok {
			line = fmt.Sprintf("| `%s` | `%.0f` |", name, f)
		}
		if v == "" {
			line = fmt.Sprintf("| `%s` | |", name)
		}
		if !strings.Contains(string(text), line) {
			t.Errorf("docs/CONFIGURATION.md has no line that begins with %q", line)
		}
	}
}

func TestFlagsBeatEnvironmentBeatsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "duepost.json")
	text := `{"data-dir": "file", "amqp-addr": "127.0.0.1:1001", "http-addr": "127.0.0.1:1002",
		"stop-timeout": "3s", "max-connections": 7, "default-pass": "from the file"}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"DUEPOST_CONFIG": path, "DUEPOST_AMQP_ADDR": "127.0.0.1:2001", "DUEPOST_HTTP_ADDR": "127.0.0.1:2002",
		"DUEPOST_LOG_FORMAT": "json", "DUEPOST_FRAME_MAX": "8192",
	}
	shown := printed(t, env, "--http-addr", "127.0.0.1:3002")
	for name, want := range map[string]any{
		"frame-max": 8192.0, "heartbeat": "1m",
		"data-dir": "file", "stop-timeout": "3s", "max-connections": 7.0,
		"amqp-addr": "127.0.0.1:2001", "log-format": "json",
		"http-addr": "127.0.0.1:3002", "log-level": "info", "default-pass": "********",
	} {
		if shown[name] != want {
			t.Errorf("%s = %v, want %v", name, shown[name], want)
		}
	}
	if shown := printed(t, nil, "--config", path); shown["data-dir"] != "file" {
		t.Errorf("--config: data-dir = %v, want file", shown["data-dir"])
	}
}

func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name string
		env  map[string]string
		want []string
	}{
		{"unknown setting", map[string]string{"DUEPOST_CONFIG": file("u", `{"datadir": "x", "port": 5672}`)},
			[]string{`unknown setting "datadir"`, `unknown setting "port"`, "allowed are: data-dir, amqp-addr"}},
		{"not for files", map[string]string{"DUEPOST_CONFIG": file("p", `{"print-config": true}`)},
			[]string{`unknown setting "print-config"`}},
		{"syntax", map[string]string{"DUEPOST_CONFIG": file("s", "{\n  \"data-dir\" 1\n}")}, []string{"DUEPOST_CONFIG (--config): read configuration", "line 2"}},
		{"missing", map[string]string{"DUEPOST_CONFIG": filepath.Join(dir, "none")},
			[]string{"duepost: DUEPOST_CONFIG (--config): open", "no such file"}},
		{"bad value in the file", map[string]string{"DUEPOST_CONFIG": file("v", `{"log-level": "loud"}`)},
			[]string{"--log-level must be one of", "log-level is set by the file of --config"}},
		{"bad value in the environment", map[string]string{"DUEPOST_STOP_TIMEOUT": "soon"},
			[]string{"--stop-timeout", "soon", "set by the environment variable DUEPOST_STOP_TIMEOUT"}},
		{"value out of range in the environment", map[string]string{"DUEPOST_STOP_TIMEOUT": "-1s"},
			[]string{"stop-timeout: is -1s", "set by the environment variable DUEPOST_STOP_TIMEOUT"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := runWith(t, tt.env, "", "serve", "--print-config")
			if got.code != exitUsage {
				t.Errorf("exit code %d, want %d", got.code, exitUsage)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("stderr lacks %q:\n%s", want, got.stderr)
				}
			}
		})
	}
}

func TestConfigFileErrorsNameTheFlag(t *testing.T) {
	t.Parallel()
	got := runWith(t, nil, "", "serve", "--config", filepath.Join(t.TempDir(), "none"))
	if got.code != exitUsage || !strings.HasPrefix(got.stderr, "duepost: --config: open ") {
		t.Errorf("exit code %d, stderr %q, want %d and --config named", got.code, got.stderr, exitUsage)
	}
}

// A misspelt variable is told of; what others set for reasons of their own is not.
func TestUnknownVariablesAreWarnedOf(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"DUEPOST_DATADIR": "x", "DUEPOST_COLOUR": "x", "DUEPOST_CONFIG": "", "DUEPOST_URL": "x",
		"DUEPOST_PORT": "tcp://10.0.0.1:5672", "DUEPOST_PORT_5672_TCP_ADDR": "x", "DUEPOST_SERVICE_HOST": "x",
		"DUEPOST_AMQP_SERVICE_PORT_HTTP": "x", "DUEPOST_E2E_URL": "x", "OTHER": "x",
	}
	got := runWith(t, env, "", "serve", "--print-config")
	for _, want := range []string{"DUEPOST_DATADIR is no setting; is DUEPOST_DATA_DIR meant?\n", "DUEPOST_COLOUR is no setting;"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("stderr lacks %q:\n%s", want, got.stderr)
		}
	}
	if n := strings.Count(got.stderr, "\n"); n != 2 || got.code != exitDone {
		t.Errorf("exit code %d and %d lines, want 0 and 2:\n%s", got.code, n, got.stderr)
	}
}
