package relay

import (
	"testing"
	"time"

	"github.com/duepost/duepost/internal/relay/topology"
)

// What is placed into a slot is told as due in it.
func TestTimeline(t *testing.T) {
	t.Parallel()
	for _, now := range []int64{0, 63_999, 64_000, 1_796_122_722_341} {
		for _, delay := range []time.Duration{0, time.Second, 49 * time.Second, 51 * time.Second, 20 * time.Minute,
			10 * time.Hour, 30 * 24 * time.Hour, 3 * 365 * 24 * time.Hour} {
			due := now + delay.Milliseconds()
			at := slotFor(due, now)
			var p topology.Pending
			p.Wheel[at.level][at.index()] = 3
			bins := Timeline(&p, time.UnixMilli(now))
			if len(bins) != 1 || bins[0].Messages != 3 || bins[0].From.UnixMilli() > due || bins[0].To.UnixMilli() <= due {
				t.Errorf("at %d, due after %v, in %+v: told as %+v", now, delay, at, bins)
			}
		}
	}
}

// What is nearer comes first, and what lies in passed slots before all.
func TestTimelineIsInOrder(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_796_122_722_341)
	var p topology.Pending
	for level := range p.Wheel {
		for index := range p.Wheel[level] {
			p.Wheel[level][index] = 1
		}
	}
	bins := Timeline(&p, now)
	if len(bins) != topology.Levels*topology.Ring+1 {
		t.Fatalf("%d bins, want one for each queue, and one for all of a second that is cut", len(bins))
	}
	for i := range bins[1:] {
		if bins[i].From.After(bins[i+1].From) {
			t.Errorf("%v is before %v", bins[i], bins[i+1])
		}
	}
}
