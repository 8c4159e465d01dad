package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// One order is due while the broker is up, one while it is down; the kill is at 1000 ms, and
// clients are served again at 1200 ms.
func TestReport(t *testing.T) {
	t.Parallel()
	const limit = int(Limit / time.Millisecond)
	type message struct{ due, at int } // ms; at 0 = never
	for _, tt := range []struct {
		name     string
		messages []message
		stall    time.Duration
		down     int // how many count to the outage
		onTime   bool
		says     string
	}{
		{"good", []message{{100, 102}, {1100, 1250}}, 0, 1, true, "all on time"},
		{"lost", []message{{100, 102}, {1100, 0}}, 0, 1, false, "Lost: 1 messages"},
		{"late", []message{{100, 101 + limit}, {1100, 1100}}, 0, 1, false, "Not all was on time"},
		{"down, and then as late as allowed", []message{{1000, 1200 + limit}}, 0, 1, true, "all on time"},
		{"down, and then late", []message{{1100, 1201 + limit}}, 0, 1, false, "Not all was on time"},
		{"early", []message{{100, 99}}, 0, 0, false, "Not all was on time"},
		{"early after the outage", []message{{1199, 1198}}, 0, 1, false, "Not all was on time"},
		{"overtaken by the kill", []message{{900, 1690}, {990, 1010}}, 0, 2, true, "all on time"},
		{"just before the kill", []message{{900, 999}}, 0, 0, true, "all on time"},
		{"should have come before the kill", []message{{999 - limit, 1210}}, 0, 0, false, "Not all was on time"},
		{"due after the outage", []message{{1300, 1301}}, 0, 0, true, "all on time"},
		{"on a busy machine", []message{{100, 101 + limit}}, time.Millisecond, 0, true,
			"up to 501 ms after due, 1 ms of it because this machine"},
		{"late on a busy machine", []message{{100, 102 + limit}}, time.Millisecond, 0, false, "1 later than allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			start := time.Unix(1000, 0)
			at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
			tl := newTally()
			tl.wasDown(at(1000), at(1200))
			for id, m := range tt.messages {
				tl.placed(id, at(m.due))
				if m.at != 0 && !tl.received(id, handover{at(m.due), at(m.at)}) {
					t.Errorf("first hand-over of order %d counts as repeated", id)
				}
			}
			r := tl.report(tt.stall)
			if got := r.OnTime(); got != tt.onTime || r.Down.Placed != tt.down {
				t.Errorf("OnTime() = %v for %+v, want %v with %d held up", got, r, tt.onTime, tt.down)
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
	due := time.Unix(5, 0)
	tl.placed(1, due)
	if n, last := tl.missing(); n != 1 || !last.Equal(due) {
		t.Errorf("missing() = %d, %v, want 1 due at 5", n, last)
	}
	if !tl.received(1, handover{due, due}) || tl.received(1, handover{due, due.Add(time.Minute)}) {
		t.Error("received() tells first from repeated wrongly")
	}
	if r := tl.report(0); r.Up.Repeated != 1 || r.Up.Latest != 0 || !r.OnTime() {
		t.Errorf("report = %+v, want one repeated that does not count as late", r.Up)
	}
	if n, _ := tl.missing(); n != 0 {
		t.Errorf("missing() = %d, want 0", n)
	}
}

func TestStallAllowance(t *testing.T) {
	t.Parallel()
	var m stallMeter
	for _, tt := range []struct{ stall, want time.Duration }{
		{-time.Millisecond, 0},
		{10 * time.Millisecond, 40 * time.Millisecond},
		{5 * time.Millisecond, 40 * time.Millisecond}, // the worst counts
		{time.Minute, maxStallFor},
	} {
		m.note(tt.stall)
		if got := m.allowance(); got != tt.want {
			t.Errorf("after a stall of %v: allowance %v, want %v", tt.stall, got, tt.want)
		}
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
