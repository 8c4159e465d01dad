package delay

import (
	"sync/atomic"
	"testing"
	"time"
)

// fakeClock is the clock of the test's bubble, and can be set.
type fakeClock struct{ offset atomic.Int64 }

func (c *fakeClock) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// step sets the clock, as an operator or NTP would.
func (c *fakeClock) step(by time.Duration) { c.offset.Add(int64(by)) }

// in is the instant after d by the clock, in unix milliseconds.
func (c *fakeClock) in(d time.Duration) int64 { return c.Now().Add(d).UnixMilli() }

func TestCeilMillisNeverRoundsDown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nanos, want int64
	}{
		{0, 0},
		{1, 1},
		{999_999, 1},
		{1_000_000, 1},
		{1_000_001, 2},
		{-1, 0},
	} {
		if got := CeilMillis(time.Unix(0, c.nanos)); got != c.want {
			t.Errorf("CeilMillis of %d ns: got %d, want %d", c.nanos, got, c.want)
		}
	}
}
