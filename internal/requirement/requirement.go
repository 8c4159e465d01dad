// Package requirement says what a test needs from the machine besides Go, and
// what happens where it is missing.
//
// A missing program, file or privilege skips the test with a line that names
// the thing and how to get it. Where DUEPOST_REQUIRE=all, as in CI, the same
// test fails instead, so that a suite never stops running without anyone
// noticing.
//
// The package knows nothing about what the things are used for.
package requirement

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Variable is the name of the environment variable that turns every skip into
// a failure when its value is "all".
const Variable = "DUEPOST_REQUIRE"

// Strict reports whether a missing requirement is a failure.
func Strict() bool { return os.Getenv(Variable) == "all" }

// Missing ends the test because what is not there: it fails where
// requirements are strict and skips elsewhere. hint says how to get it.
func Missing(t testing.TB, what, hint string) {
	t.Helper()
	text := fmt.Sprintf("needs %s, which is missing here (%s)", what, hint)
	if Strict() {
		t.Fatalf("%s, and %s=all forbids to skip", text, Variable)
	}
	t.Skip(text)
}

// Tool returns the path of the program name, or ends the test. hint says what
// to install, for example a Debian package.
func Tool(t testing.TB, name, hint string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name, hint)
	}
	return path
}

// File returns the first of paths that exists, or ends the test.
func File(t testing.TB, hint string, paths ...string) string {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	Missing(t, strings.Join(paths, " or "), hint)
	return ""
}

// Probe runs a program that must end with exit code 0, such as an interpreter
// importing a library, or ends the test. what names the thing probed for.
func Probe(t testing.TB, what, hint, name string, args ...string) {
	t.Helper()
	path := Tool(t, name, hint)
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Logf("%s %q: %v\n%s", path, args, err, out)
		Missing(t, what, hint)
	}
}
