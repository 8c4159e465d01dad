package e2e

import (
	"testing"

	"github.com/duepost/duepost/internal/requirement"
)

// TestPython plays every scheme with the Python client that Debian ships.
func TestPython(t *testing.T) {
	t.Parallel()
	play(t, pythonProgram(t))
}

// pythonProgram makes it ready.
func pythonProgram(t *testing.T) program {
	t.Helper()
	// Debian's modules belong to Debian's interpreter, which need not come first in PATH.
	const hint = "Debian package python3-pika"
	python := requirement.File(t, hint, "/usr/bin/python3")
	requirement.Probe(t, "the Python module pika", hint, python, "-c", "import pika")
	return program{dir: "python", argv: []string{python, "-B", "main.py"}}
}
