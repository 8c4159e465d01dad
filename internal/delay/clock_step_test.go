package delay

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/store"
)

// TestEngineClockStepsByAYear: the wall clock is set a year ahead and back again,
// in either order, with entries in the log and in runs. Nothing is lost or handed
// over twice, nothing is early by the clock of that moment, and what is added
// afterwards is on time.
func TestEngineClockStepsByAYear(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for name, steps := range map[string][]time.Duration{
		"forward, back": {year, -year},
		"back, forward": {-year, year},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &rig{t: t, dir: t.TempDir(), clock: &fakeClock{}, storeOptions: store.Options{
					SegmentBytes: 8 << 10, FrameBytes: 1 << 10, FreshBytes: 16 << 10, RunBytes: 16 << 10, RunBlockBytes: 2 << 10,
				}}
				r.begin()
				defer r.stop()
				due := map[string]int64{}
				add := func(name string, in time.Duration) {
					due[name] = r.clock.in(in)
					r.publish(name, due[name])
				}
				for i := range 1000 {
					add(fmt.Sprint("soon ", i), time.Hour+time.Duration(i)*time.Second)
					add(fmt.Sprint("late ", i), 2*year+time.Duration(i)*time.Second)
				}
				for k, step := range steps {
					r.clock.step(step)
					r.alarms.Recheck()
					synctest.Wait()
					add(fmt.Sprint("after step ", k), time.Minute)
					advance(time.Minute)
				}
				if n := r.store.Store.(*store.Store).Stats().Flushed; n == 0 {
					t.Fatal("the test does not test runs")
				}
				advance(3 * year)
				seen := map[string]bool{}
				for _, h := range r.sink.take() {
					if seen[h.name] {
						t.Errorf("%s was handed over twice", h.name)
					}
					seen[h.name] = true
					if h.at < due[h.name] {
						t.Errorf("%s: %d ms early", h.name, due[h.name]-h.at)
					}
					if late := h.at - due[h.name]; len(h.name) > 4 && h.name[:5] == "after" && late > 1 {
						t.Errorf("%s: %d ms late", h.name, late)
					}
				}
				if len(seen) != len(due) {
					t.Errorf("handed over: got %d, want %d", len(seen), len(due))
				}
			})
		})
	}
}
