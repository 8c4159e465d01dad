//go:build relay

package relay

import (
	"context"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/headers"
	"github.com/duepost/duepost/internal/testbroker"
)

// disorder is how much of a second is in memory at once where it has four times what may be held.
const disorder = 250 * time.Millisecond

// TestFullSecond: a second has many times what a relay may hold, from last to first. It is released in due
// order but for what is in memory at the same time, and the relay never holds much more than it may.
func TestFullSecond(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *testbroker.Broker) {
		const n, hold = 4000, 1000
		r, _ := startRelayWith(t, Config{URLs: []string{b.URL()}, Hold: hold})
		ctx, cancel := context.WithCancel(t.Context())
		most := make(chan int64)
		go func() { most <- mostHeld(ctx, r) }()
		c := newClient(t, b.URL())
		second := time.Now().Add(32 * time.Second).Truncate(time.Second)
		for i := range n {
			due := second.Add(time.Second - time.Duration(i%1000+1)*time.Millisecond)
			if _, err := c.ch.PublishWithDeferredConfirm("x", "k", true, false, amqp.Publishing{
				DeliveryMode: amqp.Persistent, Headers: amqp.Table{headers.DeliveryTime: due.UnixMilli()},
				Body: fmt.Appendf(nil, "%d %d", i, due.UnixMilli()),
			}); err != nil {
				t.Fatal(err)
			}
		}
		waitFor(t, "all are on the wheel", func() bool { return r.Stats().Moved.Load() >= n })
		early, behind, last := 0, 0, int64(0)
		for range n {
			d := c.get("q")
			var i int
			var due int64
			if _, err := fmt.Sscan(string(d.Body), &i, &due); err != nil {
				t.Fatal(err)
			}
			if time.Now().UnixMilli() < due {
				early++
			}
			if due < last-disorder.Milliseconds() {
				behind++
			}
			last = max(last, due)
		}
		cancel()
		held := <-most
		t.Logf("%d came behind a much later one; at most %d were held; %d moves", behind, held, r.Stats().Moved.Load())
		// The intake has its own.
		if early > 0 || behind > n/20 || held > intakePrefetch+2*hold || r.Stats().Moved.Load() < n*3/2 {
			t.Errorf("%d early, %d behind a much later one, at most %d held, %d moves", early, behind, held, r.Stats().Moved.Load())
		}
	})
}

// mostHeld looks until ctx ends.
func mostHeld(ctx context.Context, r *Relay) (most int64) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return most
		case <-look.C:
			most = max(most, r.Stats().Held.Load())
		}
	}
}

// waitFor waits until something is so.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !so(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("it never came that %s", what)
		}
	}
}
