package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	ms := time.Millisecond
	for _, tt := range []struct {
		name   string
		late   map[int]time.Duration // of orders 1 (due at 100), 2 (due at 1100, while down)
		onTime bool
		says   string
	}{
		{"good", map[int]time.Duration{1: 2 * ms, 2: 150 * ms}, true, "all on time"},
		{"lost", map[int]time.Duration{1: 2 * ms}, false, "Lost: 1 messages"},
		{"late", map[int]time.Duration{1: Limit + ms, 2: 0}, false, "Not all was on time"},
		{"late but down", map[int]time.Duration{1: 0, 2: Limit + 150*ms}, true, "all on time"},
		{"early", map[int]time.Duration{1: -ms, 2: 0}, false, "Not all was on time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tl := newTally()
			tl.placed(1, at(100))
			tl.placed(2, at(1100))
			tl.wasDown(at(1000), at(1200))
			for id, late := range tt.late {
				if !tl.received(id, late) {
					t.Errorf("first hand-over of order %d counts as repeated", id)
				}
			}
			r := tl.report()
			if got := r.OnTime(); got != tt.onTime {
				t.Errorf("OnTime() = %v for %+v, want %v", got, r, tt.onTime)
			}
			var out bytes.Buffer
			(&screen{out: &out}).table(r)
			if !strings.Contains(out.String(), tt.says) {
				t.Errorf("the table lacks %q:\n%s", tt.says, out.String())
			}
		})
	}
}

func TestRepeatedHandOverIsCounted(t *testing.T) {
	t.Parallel()
	tl := newTally()
	tl.placed(1, time.Unix(5, 0))
	if n, last := tl.missing(); n != 1 || !last.Equal(time.Unix(5, 0)) {
		t.Errorf("missing() = %d, %v, want 1 due at 5", n, last)
	}
	if !tl.received(1, 0) || tl.received(1, time.Second) {
		t.Error("received() tells first from repeated wrongly")
	}
	if r := tl.report(); r.Up.Repeated != 1 || r.Up.Latest != 0 {
		t.Errorf("report = %+v, want one repeated that does not count as late", r.Up)
	}
	if n, _ := tl.missing(); n != 0 {
		t.Errorf("missing() = %d, want 0", n)
	}
}

func TestScreenColours(t *testing.T) {
	t.Parallel()
	var plainOut, colorOut bytes.Buffer
	(&screen{out: &plainOut, start: time.Now()}).line(green, "back")
	(&screen{out: &colorOut, start: time.Now(), color: true}).line(green, "back")
	if strings.Contains(plainOut.String(), "\x1b") {
		t.Errorf("without colour: %q has escape sequences", plainOut.String())
	}
	if !strings.Contains(colorOut.String(), "\x1b[32mback\x1b[0m") {
		t.Errorf("with colour: %q, want green", colorOut.String())
	}
}
