package delay

import (
	"errors"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/store"
)

// TestEngineReplace: what waits gives way, what was released does not come back, and the
// alarm follows.
func TestEngineReplace(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		var b store.Batch
		replace := func(name string, after time.Duration, old ...store.Key) (int, store.Key) {
			t.Helper()
			n, lsn, err := r.engine.Replace(&b, old, &store.Message{Body: []byte(name), TTL: -1}, r.clock.in(after))
			if err != nil || lsn == 0 {
				t.Fatalf("replace: LSN %d, %v", lsn, err)
			}
			return n, b.Keys[0]
		}
		released := r.publish("released", r.clock.in(time.Second))
		waits := r.publish("waits", r.clock.in(time.Hour))
		advance(time.Second)
		expectNames(t, r.sink.take(), "released")
		n, sooner := replace("sooner", time.Minute, released, waits)
		if n != 1 {
			t.Errorf("%d were replaced, want 1", n)
		}
		if n, _, err := r.engine.Replace(&b, []store.Key{waits}, nil, 0); n != 0 || err != nil {
			t.Errorf("%d were taken out, %v; want none", n, err)
		}
		advance(30 * time.Second)
		if n, _ := replace("later", time.Hour, sooner); n != 1 {
			t.Errorf("%d were replaced, want 1", n)
		}
		advance(30 * time.Second)
		expectNames(t, r.sink.take())
		advance(time.Hour)
		expectNames(t, r.sink.take(), "later")
		if s := r.engine.Stats(); s.Added != 4 || s.Cancelled != 2 || s.Released != 2 || s.NextDue != 0 {
			t.Errorf("got %+v", s)
		}
		r.engine.Stop()
		if _, _, err := r.engine.Replace(&b, nil, &store.Message{TTL: -1}, 0); !errors.Is(err, ErrStopped) {
			t.Errorf("after Stop: got %v", err)
		}
	})
}
