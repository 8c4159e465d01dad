package requirement_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/duepost/duepost/internal/requirement"
)

// fakeTB records how a test would have ended. Its embedded TB is nil: any
// other use is a nil call that fails the test loudly.
type fakeTB struct {
	testing.TB
	ended string
	text  string
}

func (f *fakeTB) Helper()             {}
func (f *fakeTB) Logf(string, ...any) {}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.ended, f.text = "failed", fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (f *fakeTB) Skip(args ...any) {
	f.ended, f.text = "skipped", fmt.Sprint(args...)
	runtime.Goexit()
}

// try runs check as the testing package would: on a goroutine of its own that
// Fatalf and Skip may end.
func try(check func(t testing.TB)) *fakeTB {
	f := &fakeTB{ended: "passed"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(f)
	}()
	<-done
	return f
}

// The environment is the process's, so these tests are not parallel.
func TestMissingSkipsOrFails(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	checks := []struct {
		name    string
		present bool
		check   func(t testing.TB)
	}{
		{"tool missing", false, func(t testing.TB) { requirement.Tool(t, nowhere, "package x") }},
		{"tool there", true, func(t testing.TB) { requirement.Tool(t, self, "package x") }},
		{"file missing", false, func(t testing.TB) { requirement.File(t, "package x", nowhere) }},
		{"file there", true, func(t testing.TB) { requirement.File(t, "package x", nowhere, self) }},
		{"probe missing", false, func(t testing.TB) { requirement.Probe(t, "x", "package x", nowhere) }},
		{"probe fails", false, func(t testing.TB) {
			requirement.Probe(t, "x", "package x", self, "-test.no-such-flag")
		}},
		{"probe passes", true, func(t testing.TB) {
			requirement.Probe(t, "x", "package x", self, "-test.list=^$")
		}},
	}
	for _, value := range []string{"", "all"} {
		t.Setenv(requirement.Variable, value)
		for _, c := range checks {
			want := "passed"
			if !c.present {
				want = map[string]string{"": "skipped", "all": "failed"}[value]
			}
			got := try(c.check)
			if got.ended != want {
				t.Errorf("%s=%q: %s: %s, want %s (%s)",
					requirement.Variable, value, c.name, got.ended, want, got.text)
			}
			if !c.present && !strings.Contains(got.text, "package x") {
				t.Errorf("%s: text %q does not say how to get it", c.name, got.text)
			}
		}
	}
}
