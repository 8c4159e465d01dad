//go:build relay

package relay

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/testbroker"
)

// TestClockIsSet: what comes after the clock was set back is on time; what came before is when the clock
// shows its instant, be it set right or on.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *testbroker.Broker) {
		var offset atomic.Int64
		r, _ := startRelayAt(t, Config{URLs: []string{b.URL()}},
			func() time.Time { return time.Now().Add(time.Duration(offset.Load())) })
		c := newClient(t, b.URL())
		comes := func(what string, first int) {
			t.Helper()
			sum := collect(t, b.URL(), first, 100, patience)
			t.Logf("%s: %+v", what, sum)
			if sum.missing > 0 || sum.latest > 30*time.Second || first < 200 && sum.early > 0 {
				t.Errorf("%s: %+v", what, sum)
			}
		}
		set := func(to time.Duration) {
			t.Helper()
			sessions := r.Stats().Sessions.Load()
			offset.Store(int64(to))
			waitFor(t, "a session begins anew", func() bool { return r.Stats().Sessions.Load() > sessions })
		}
		c.burst(0, 100, 20*time.Second, 22*time.Second)
		waitFor(t, "they are on the wheel", func() bool { return r.Stats().Moved.Load() >= 100 })
		set(-time.Hour)
		c.burst(100, 100, time.Second, 3*time.Second)
		comes("set back", 100)
		set(0)
		comes("set right", 0)
		c.burst(200, 100, 40*time.Minute, 41*time.Minute)
		waitFor(t, "they are on the wheel", func() bool { return r.Stats().Moved.Load() >= 300 })
		set(time.Hour)
		comes("set on", 200)
	})
}
