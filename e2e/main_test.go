package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// binaryVariable tells the tests where TestMain put the program they test.
const binaryVariable = "DUEPOST_E2E_BINARY"

// TestMain builds duepost once for all tests, unless they are to use another broker.
func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Getenv(urlVariable) != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "duepost-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "make directory for the program:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "duepost")
	args := append([]string{"build", "-o", binary}, buildFlags()...)
	if out, err := exec.Command("go", append(args, "../cmd/duepost")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build duepost: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv(binaryVariable, binary); err != nil {
		fmt.Fprintln(os.Stderr, "set environment:", err)
		return 1
	}
	return m.Run()
}

// buildFlags gives the broker what the tests were built with: under the race
// detector it runs with the race detector, with invariants it checks them.
func buildFlags() (flags []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "-race", "-tags":
			flags = append(flags, s.Key+"="+s.Value)
		}
	}
	return flags
}

// raced reports whether broker and tests run under the race detector, which
// makes them several times slower.
func raced() bool {
	for _, flag := range buildFlags() {
		if flag == "-race=true" {
			return true
		}
	}
	return false
}

// noteSources looks at every file that a result depends on. The go command sees
// that and does not take the result of an older source from its cache: these
// tests import nothing of what they test. It sees what tests do, not TestMain.
func noteSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file of another package's test
		}
		if err != nil {
			return err
		}
		switch entry.Name() {
		case ".git", "build", "node_modules":
			return filepath.SkipDir
		}
		if entry.Type().IsRegular() {
			os.Stat(path)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("look at sources: %v", err)
	}
}
