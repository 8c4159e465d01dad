package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGo plays every scheme with the Go client.
func TestGo(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-o", binary, "./go").CombinedOutput(); err != nil {
		t.Fatalf("build ./go: %v\n%s", err, out)
	}
	play(t, program{argv: []string{binary}})
}
