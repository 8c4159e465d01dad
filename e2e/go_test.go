package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGo plays every scheme with the Go client.
func TestGo(t *testing.T) {
	t.Parallel()
	play(t, goProgram(t))
}

// goProgram makes it ready.
func goProgram(t *testing.T) program {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-o", binary, "./go").CombinedOutput(); err != nil {
		t.Fatalf("build ./go: %v\n%s", err, out)
	}
	return program{argv: []string{binary}}
}
