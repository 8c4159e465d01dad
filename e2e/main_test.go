package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	build := exec.Command("go", "build", "-o", binary, "../cmd/duepost")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build duepost: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv(binaryVariable, binary); err != nil {
		fmt.Fprintln(os.Stderr, "set environment:", err)
		return 1
	}
	return m.Run()
}
