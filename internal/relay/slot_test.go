package relay

import (
	"testing"
	"time"
)

const now = int64(1_800_000_000_123)

func millis(d time.Duration) int64 { return d.Milliseconds() }

func TestSlotFor(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, tc := range []struct {
		delay time.Duration
		level int
	}{
		{time.Millisecond, 0}, {49 * time.Second, 0}, {52 * time.Second, 1}, {30 * time.Minute, 1},
		{31 * time.Minute, 2}, {15 * time.Hour, 2}, {16 * time.Hour, 3}, {20 * day, 3}, {21 * day, 4},
		{600 * day, 4}, {620 * day, 5}, {100 * 365 * day, 5},
	} {
		if got := slotFor(now+millis(tc.delay), now); got.level != tc.level {
			t.Errorf("%v: got level %d, want %d", tc.delay, got.level, tc.level)
		}
	}
}

// TestSlotsLeadDown follows a message from slot to slot, at the instants at which each opens: it
// comes nearer with each, never into the same again, and is in a slot of the finest level before it
// is due.
func TestSlotsLeadDown(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		delay time.Duration
		hops  int
	}{
		{time.Second, 1}, {50 * time.Second, 1}, {10 * time.Minute, 2}, {30 * time.Minute, 2}, {15 * time.Hour, 3},
		{20 * 24 * time.Hour, 4}, {600 * 24 * time.Hour, 5}, {50 * 365 * 24 * time.Hour, 6}, {876_000 * time.Hour, 7},
	} {
		at, due := now, now+millis(tc.delay)
		s := slotFor(due, at)
		hops := 1
		for ; s.level > 0; hops++ {
			opens := s.number*widths()[s.level] - lead.Milliseconds()
			at = max(at, opens)
			if !s.isOpen(at) || opens > now && s.isOpen(opens-1) {
				t.Fatalf("%v: slot %+v does not open at %d", tc.delay, s, opens)
			}
			if at >= due {
				t.Fatalf("%v: slot %+v opens after it is due", tc.delay, s)
			}
			next := slotFor(due, at)
			if next.queue() == s.queue() {
				t.Fatalf("%v: from slot %+v into %+v, the same queue", tc.delay, s, next)
			}
			s = next
		}
		if s.number != due/1000 || hops > tc.hops {
			t.Errorf("%v: %d hops to second %d, want %d to %d", tc.delay, hops, s.number, tc.hops, due/1000)
		}
	}
}
