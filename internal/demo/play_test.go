package demo

import (
	"bytes"
	"strings"
	"testing"
)

// The whole demo, five times as fast.
func TestRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	report, err := Run(t.Context(), Options{Out: &out, Pace: 0.2, Quiet: 200})
	t.Log("\n" + out.String())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := report.Up.Placed+report.Down.Placed, 212; got != want {
		t.Errorf("%d messages placed, want %d", got, want)
	}
	if lost := report.Up.Lost() + report.Down.Lost(); lost != 0 {
		t.Errorf("%d lost, want 0", lost)
	}
	if report.Up.Earliest < 0 || report.Down.Earliest < 0 {
		t.Errorf("earliest %v and %v, want none before due", report.Up.Earliest, report.Down.Earliest)
	}
	for _, want := range []string{"broker started on 127.0.0.1:", "placed, to be paid within", "killed, as kill -9 would",
		"back on the same directory", "paid: nothing to do", "not paid: closed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
}
