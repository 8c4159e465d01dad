package duepost_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/duepostest"
	"github.com/duepost/duepost/internal/proxy"
)

// The connection ends at the n-th frame, for every n of a little story, in either direction,
// before the frame and in its middle: no message that was confirmed is lost, none that was surely
// not sent arrives, and every publish is told what became of it.
func TestCutAtEveryFrame(t *testing.T) {
	t.Parallel()
	broker := duepostest.Start(t)
	for _, from := range []proxy.Direction{proxy.FromClient, proxy.FromBroker} {
		for _, how := range []proxy.Verdict{proxy.Cut, proxy.Tear} {
			t.Run(fmt.Sprintf("%v %v", from, how), func(t *testing.T) {
				t.Parallel()
				for n := 1; ; n++ {
					if !cutAt(t, broker, from, how, n) {
						t.Logf("%d frames", n-1)
						break
					}
				}
			})
		}
	}
}

// cutAt plays the story with one cut. It reports whether there was an n-th frame.
func cutAt(t *testing.T, broker *duepostest.Broker, from proxy.Direction, how proxy.Verdict, n int) (reached bool) {
	t.Helper()
	p := proxy.Start(t, addrOf(broker))
	count := 0
	p.Judge(func(d proxy.Direction, f proxy.Frame) proxy.Verdict {
		if d == from && f.Type() != heartbeat {
			count++
		}
		if d == from && count == n {
			count++
			return how
		}
		return proxy.Pass
	})
	r := &rig{t: t, broker: broker}
	r.client = r.connect(duepost.Options{URL: strings.Replace(broker.URL, addrOf(broker), p.Addr, 1)})
	queue := fmt.Sprintf("%s.%d", t.Name(), n)
	r.queue(queue)

	fates := map[string]error{}
	publish := func(id string, delay time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := r.client.Publish(ctx, duepost.Message{RoutingKey: queue, MessageID: id, Delay: delay})
		fates[id] = err
		if err != nil && !errors.Is(err, duepost.ErrUnconfirmed) {
			t.Errorf("cut at frame %d: publish %s: %v, want nil or ErrUnconfirmed", n, id, err)
		}
	}
	for i := range 4 {
		publish(fmt.Sprint("plain ", i), 0)
	}
	publish("delayed", time.Millisecond)

	var mu sync.Mutex
	arrived := map[string]int{}
	last := make(chan bool, 10)
	stop := r.consume(duepost.Consumer{Queue: queue, Concurrency: 2, Retry: quick(5)},
		func(_ context.Context, d *duepost.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			if d.MessageID == "plain 1" && d.Attempt == 1 {
				return errors.New("once more")
			}
			arrived[d.MessageID]++
			last <- true
			return nil
		})
	// What was confirmed comes, at least once.
	for all := false; !all; {
		all = true
		mu.Lock()
		for id, err := range fates {
			all = all && (err != nil || arrived[id] > 0)
		}
		mu.Unlock()
		if !all {
			next(t, last)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("cut at frame %d: consume: %v", n, err)
	}
	if err := r.client.Close(); err != nil {
		t.Errorf("cut at frame %d: close: %v", n, err)
	}
	for id, err := range fates {
		if duepost.SafeToRetry(err) && arrived[id] > 0 {
			t.Errorf("cut at frame %d: %s arrived, and its publisher was told that it was not sent: %v", n, id, err)
		}
		if arrived[id] > 3 {
			t.Errorf("cut at frame %d: %s arrived %d times", n, id, arrived[id])
		}
	}
	p.Judge(nil) // count is written to under the proxy's lock
	return count > n
}

const heartbeat = 8 // type of a frame
