package duepost_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/duepostest"
)

// rig is a broker and a client for one test.
type rig struct {
	t      *testing.T
	broker *duepostest.Broker
	client *duepost.Client
}

// newRig starts a broker and connects a client, whose clock is the broker's.
func newRig(t *testing.T, o duepost.Options) *rig {
	t.Helper()
	r := &rig{t: t, broker: duepostest.Start(t)}
	r.client = r.connect(o)
	return r
}

// connect makes another client.
func (r *rig) connect(o duepost.Options) *duepost.Client {
	r.t.Helper()
	if o.URL == "" {
		o.URL = r.broker.URL
	}
	o.Now = r.broker.Now
	if o.Reconnect.First == 0 {
		o.Reconnect = duepost.Backoff{First: 5 * time.Millisecond, Cap: 50 * time.Millisecond}
	}
	c, err := duepost.Connect(r.t.Context(), o)
	if err != nil {
		r.t.Fatalf("connect: %v", err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

// queue declares queues.
func (r *rig) queue(names ...string) {
	r.t.Helper()
	var t duepost.Topology
	for _, name := range names {
		t.Queues = append(t.Queues, duepost.Queue{Name: name})
	}
	r.declare(t)
}

func (r *rig) declare(t duepost.Topology) {
	r.t.Helper()
	if err := r.client.Declare(r.t.Context(), t); err != nil {
		r.t.Fatalf("declare: %v", err)
	}
}

func (r *rig) publish(m duepost.Message) duepost.Receipt {
	r.t.Helper()
	receipt, err := r.client.Publish(r.t.Context(), m)
	if err != nil {
		r.t.Fatalf("publish: %v", err)
	}
	return receipt
}

// consume runs a consumer until the test ends or stop is called, which waits for it and
// returns what Consume returned.
func (r *rig) consume(o duepost.Consumer, h duepost.Handler) (stop func() error) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.client.Consume(ctx, o, h) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	r.t.Cleanup(func() {
		if err := stop(); err != nil {
			r.t.Errorf("consume: %v", err)
		}
	})
	return stop
}

// deliveries consumes a queue into a channel; each message is acknowledged.
func (r *rig) deliveries(queue string) <-chan *duepost.Delivery {
	r.t.Helper()
	all := make(chan *duepost.Delivery, 100)
	r.consume(duepost.Consumer{Queue: queue}, func(_ context.Context, d *duepost.Delivery) error {
		all <- d
		return nil
	})
	return all
}

// next is the next element, or the end of the test if none comes.
func next[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came in 30 s")
		panic("unreachable")
	}
}

// modes runs f with options of each way to delay. Queues to wait in have short tiers: their ways
// have many hops, and the clock cannot be moved through all of them at once.
func modes(t *testing.T, f func(t *testing.T, o duepost.Options)) {
	t.Helper()
	wait := duepost.WaitQueues{Tiers: []time.Duration{10 * time.Millisecond, 100 * time.Millisecond}}
	for _, mode := range []duepost.Mode{duepost.ModeNative, duepost.ModeWaitQueues} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			f(t, duepost.Options{Mode: mode, Wait: wait})
		})
	}
}
