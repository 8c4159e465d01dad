package duepost

import (
	"errors"
	"math/bits"
	"strings"
	"testing"
	"time"
)

func testPlan(t *testing.T, tiers ...time.Duration) *waitPlan {
	t.Helper()
	o := Options{Wait: WaitQueues{Tiers: tiers}}.withDefaults()
	p, err := newWaitPlan(o.Wait)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	return p
}

func TestWayTakesNeverLessAndAtMostTheSmallestTierMore(t *testing.T) {
	t.Parallel()
	for _, p := range []*waitPlan{testPlan(t), testPlan(t, time.Millisecond), testPlan(t, 700*time.Millisecond, time.Hour)} {
		for millis := int64(1); millis < maxQueueTTL; millis += 1 + millis/3 {
			w, err := p.way(millis)
			if err != nil {
				t.Fatalf("base %d ms: way of %d ms: %v", p.base, millis, err)
			}
			took := w.tier
			for left := w.levels; left != 0; left &= left - 1 {
				took += p.base << bits.TrailingZeros64(left)
			}
			if took != w.millis || took < millis || took >= millis+p.base {
				t.Errorf("base %d ms: way of %d ms takes %d and says %d", p.base, millis, took, w.millis)
			}
		}
	}
}

func TestWayByTier(t *testing.T) {
	t.Parallel()
	p := testPlan(t)
	for delay, entry := range map[time.Duration]string{
		time.Millisecond:                     "duepost.wait.1s",
		time.Second:                          "duepost.wait.1s",
		time.Second + time.Millisecond:       "duepost.level.1s.1",
		3 * time.Second:                      "duepost.level.1s.1",
		59*time.Second + 10*time.Millisecond: "duepost.wait.1m",
		10 * time.Minute:                     "duepost.wait.10m",
		30 * time.Minute:                     "duepost.wait.30m",
		24 * time.Hour:                       "duepost.wait.24h",
		1024 * time.Second:                   "duepost.level.1s.10",
		2047 * time.Second:                   "duepost.level.1s.10",
	} {
		w, err := p.way(ceilMillis(delay))
		if got := p.entry(w); got != entry || err != nil {
			t.Errorf("delay %v: enters at %s, want %s (%v)", delay, got, entry, err)
		}
	}
	if got := testPlan(t, 1500*time.Millisecond).tierName(90*60*1000 + 30); got != "duepost.wait.1h30m0.03s" {
		t.Errorf("name of a tier: %s", got)
	}
}

// Longer than the time to live that RabbitMQ takes for one queue is possible, in several queues,
// but not without end.
func TestLongestWay(t *testing.T) {
	t.Parallel()
	p := testPlan(t)
	longest := p.base<<p.levels - p.base
	if _, err := p.way(longest); err != nil || longest < maxQueueTTL {
		t.Errorf("way of %d ms: %v", longest, err)
	}
	_, err := p.way(longest + 1)
	if !errors.Is(err, ErrDelayTooLong) || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "149130h") {
		t.Errorf("way of a millisecond more: got %v, want ErrDelayTooLong and what is allowed", err)
	}
	for k := range p.levels {
		if p.base<<k > maxQueueTTL {
			t.Errorf("level %d waits longer than a queue can", k)
		}
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := Backoff{First: time.Second, Cap: time.Minute, Jitter: 0.5}.withDefaults(time.Hour, time.Hour)
	for _, c := range []struct {
		tries  int
		chance float64
		want   time.Duration
	}{
		{1, 0.5, time.Second}, {1, 0, 500 * time.Millisecond}, {1, 1, 1500 * time.Millisecond},
		{3, 0.5, 4 * time.Second}, {7, 0.5, time.Minute}, {5000, 0.5, time.Minute},
	} {
		if got := b.pause(c.tries, c.chance); got != c.want {
			t.Errorf("pause after %d tries, chance %v: got %v, want %v", c.tries, c.chance, got, c.want)
		}
	}
	if d := (Backoff{}).withDefaults(time.Second, time.Minute); d != (Backoff{time.Second, 2, time.Minute, 0.2}) {
		t.Errorf("defaults: %+v", d)
	}
	if d := (Backoff{First: time.Hour, Jitter: -1}).withDefaults(time.Second, time.Minute); d.pause(9, 1) != time.Hour {
		t.Errorf("first above the default cap: %+v", d)
	}
}
