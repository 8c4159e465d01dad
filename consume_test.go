package duepost_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost"
)

// quick is a retry without long pauses.
func quick(attempts int) duepost.Retry {
	return duepost.Retry{Attempts: attempts, Backoff: duepost.Backoff{First: 10 * time.Millisecond, Factor: 1, Jitter: -1}}
}

func TestFailureComesAgainThenParks(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, o duepost.Options) {
		r := newRig(t, o)
		r.declare(duepost.Topology{
			Exchanges: []duepost.Exchange{{Name: "x", Kind: duepost.Fanout}},
			Queues:    []duepost.Queue{{Name: "q"}, {Name: "other"}},
			Bindings:  []duepost.Binding{{Exchange: "x", Queue: "q"}, {Exchange: "x", Queue: "other"}},
		})
		seen := make(chan duepost.Delivery, 10)
		r.consume(duepost.Consumer{Queue: "q", Retry: quick(3)}, func(_ context.Context, d *duepost.Delivery) error {
			seen <- *d
			if d.Attempt == 1 {
				panic("no such luck")
			}
			return fmt.Errorf("attempt %d", d.Attempt)
		})
		other := r.deliveries("other")
		receipt := r.publish(duepost.Message{
			Exchange: "x", RoutingKey: "k", Body: []byte("b"), Headers: map[string]any{"a": "b"}, Delay: time.Millisecond,
		})
		next(t, other)
		var last time.Time
		for attempt := 1; attempt <= 3; attempt++ {
			d := next(t, seen)
			if d.Attempt != attempt || d.Exchange != "x" || d.RoutingKey != "k" || string(d.Body) != "b" ||
				d.MessageID != receipt.MessageID || fmt.Sprint(d.Headers) != "map[a:b]" || d.Queue != "q" {
				t.Errorf("attempt %d: got %+v", attempt, d)
			}
			if pause := d.Received.Sub(last); pause < 10*time.Millisecond || d.Received.Before(d.Due) {
				t.Errorf("attempt %d came %v after the one before, due %v, received %v", attempt, pause, d.Due, d.Received)
			}
			last = d.Received
		}
		d := next(t, r.deliveries("q.parked"))
		p, ok := d.Parked()
		if !ok || p.Reason != "attempt 3" || p.Attempts != 3 || p.Queue != "q" || p.Time.Before(last.Truncate(time.Millisecond)) {
			t.Errorf("parked: got %+v, %v", p, ok)
		}
		if d.Exchange != "x" || d.RoutingKey != "k" || d.Attempt != 1 || d.MessageID != receipt.MessageID {
			t.Errorf("parked message: got %+v, want it as it was published", d)
		}
		select {
		case d := <-other:
			t.Errorf("a retry came to another queue of the exchange: %+v", d)
		default:
		}
	})
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	fault := errors.New("fault")
	for name, c := range map[string]struct {
		outcome error
		again   bool
		reason  string // of parking; empty if it is not parked
	}{
		"done":              {},
		"drop":              {outcome: duepost.Drop("a duplicate")},
		"drop, wrapped":     {outcome: fmt.Errorf("%w: %w", fault, duepost.Drop("a duplicate"))},
		"retry after":       {outcome: duepost.RetryAfter(10 * time.Millisecond), again: true},
		"retry, joined":     {outcome: errors.Join(fault, duepost.RetryAfter(0)), again: true},
		"retry, impossible": {outcome: duepost.RetryAfter(150 * year), reason: "retry after"},
		"park":              {outcome: duepost.Park("no such order"), reason: "no such order"},
		"park, wrapped":     {outcome: fmt.Errorf("order 17: %w", duepost.Park("gone")), reason: "order 17: park: gone"},
		"park, long":        {outcome: duepost.Park(strings.Repeat("long", 1000)), reason: "longlong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, duepost.Options{})
			r.queue("q")
			attempts := make(chan int, 10)
			stop := r.consume(duepost.Consumer{Queue: "q", Retry: duepost.Retry{Backoff: duepost.Backoff{First: time.Hour}}},
				func(_ context.Context, d *duepost.Delivery) error {
					attempts <- d.Attempt
					if d.Attempt > 1 || string(d.Body) == "last" {
						return nil
					}
					return c.outcome
				})
			r.publish(duepost.Message{RoutingKey: "q"})
			next(t, attempts)
			if c.again {
				if n := next(t, attempts); n != 2 {
					t.Errorf("second time: attempt %d", n)
				}
			}
			if c.reason != "" {
				p, _ := next(t, r.deliveries("q.parked")).Parked()
				if !strings.HasPrefix(p.Reason, c.reason) || len(p.Reason) > 1024 {
					t.Errorf("parked with reason %q, want %q", p.Reason, c.reason)
				}
			}
			r.publish(duepost.Message{RoutingKey: "q", Body: []byte("last")})
			next(t, attempts)
			if err := stop(); err != nil {
				t.Errorf("consume: %v", err)
			}
			if n := r.count("q"); n != 0 {
				t.Errorf("%d messages are left in the queue, want all settled", n)
			}
			if n := r.count("q.parked"); n != 0 {
				t.Errorf("%d messages too many are parked", n)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	type order struct{ ID int }
	got := make(chan order, 1)
	r.consume(duepost.Consumer{Queue: "q"}, duepost.JSON(func(_ context.Context, _ *duepost.Delivery, o order) error {
		got <- o
		return nil
	}))
	r.publish(duepost.Message{RoutingKey: "q", Body: []byte(`{"ID": "seventeen"}`)})
	r.publish(duepost.Message{RoutingKey: "q", Body: []byte(`{"ID": 17}`)})
	if o := next(t, got); o.ID != 17 {
		t.Errorf("got %+v", o)
	}
	p, _ := next(t, r.deliveries("q.parked")).Parked()
	if !strings.HasPrefix(p.Reason, "decode JSON: ") || p.Attempts != 1 {
		t.Errorf("body that does not decode: parked as %+v, want it at the first attempt", p)
	}
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	var all sync.WaitGroup
	all.Add(5)
	r.consume(duepost.Consumer{Queue: "q", Concurrency: 5}, func(context.Context, *duepost.Delivery) error {
		all.Done()
		all.Wait() // returns when five are here at once
		return nil
	})
	for range 5 {
		r.publish(duepost.Message{RoutingKey: "q"})
	}
	all.Wait()
}

func TestDrainFinishesWhatWasBegun(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q", "other")
	began, finish := make(chan bool), make(chan bool)
	stop := r.consume(duepost.Consumer{Queue: "q"}, func(ctx context.Context, _ *duepost.Delivery) error {
		began <- true
		<-finish
		_, err := r.client.Publish(ctx, duepost.Message{RoutingKey: "other"})
		return err
	})
	for range 5 {
		r.publish(duepost.Message{RoutingKey: "q"})
	}
	next(t, began)
	closed := make(chan error)
	go func() { closed <- r.client.Close() }()
	// The queue is given back all but one while the handler runs.
	r.awaitReady("q", 4)
	finish <- true
	if err := next(t, closed); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := stop(); err != nil {
		t.Errorf("consume: %v", err)
	}
	if q, other := r.count("q"), r.count("other"); q != 4 || other != 1 {
		t.Errorf("left in the queue: %d, want 4; published by the handler: %d, want 1", q, other)
	}
}

func TestHandlerThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	began, finish := make(chan context.Context), make(chan bool)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- r.client.Consume(ctx, duepost.Consumer{Queue: "q", DrainTimeout: time.Millisecond},
			func(ctx context.Context, _ *duepost.Delivery) error {
				began <- ctx
				<-finish
				return nil
			})
	}()
	r.publish(duepost.Message{RoutingKey: "q"})
	handling := next(t, began)
	cancel()
	next(t, handling.Done())
	if err := next(t, ended); !errors.Is(err, duepost.ErrHandlersRunning) {
		t.Errorf("consume: got %v, want ErrHandlersRunning", err)
	}
	r.awaitReady("q", 1)
	close(finish)
}

// A handler that ends because it may not finish has not failed.
func TestGivenUpAtDrainIsNoAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	began := make(chan bool)
	stop := r.consume(duepost.Consumer{Queue: "q", DrainTimeout: time.Millisecond, Retry: quick(1)},
		func(ctx context.Context, _ *duepost.Delivery) error {
			began <- true
			<-ctx.Done()
			return ctx.Err()
		})
	r.publish(duepost.Message{RoutingKey: "q"})
	next(t, began)
	if err := stop(); err != nil {
		t.Errorf("consume: %v", err)
	}
	if d := next(t, r.deliveries("q")); d.Attempt != 1 {
		t.Errorf("after a handler was given up: attempt %d, want 1", d.Attempt)
	}
}

func TestTimeoutEndsTheHandlersContext(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	r.consume(duepost.Consumer{Queue: "q", Timeout: 10 * time.Millisecond, Retry: quick(1)},
		func(ctx context.Context, _ *duepost.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		})
	r.publish(duepost.Message{RoutingKey: "q"})
	if p, _ := next(t, r.deliveries("q.parked")).Parked(); p.Reason != context.DeadlineExceeded.Error() {
		t.Errorf("parked with %q, want the end of the context", p.Reason)
	}
}

func TestConsumeRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	for name, c := range map[string]struct {
		o    duepost.Consumer
		code int
	}{
		"no name":       {duepost.Consumer{}, 0},
		"prefetch":      {duepost.Consumer{Queue: "q", Prefetch: 65536}, 0},
		"concurrency":   {duepost.Consumer{Queue: "q", Concurrency: -1}, 0},
		"attempts":      {duepost.Consumer{Queue: "q", Retry: duepost.Retry{Attempts: -1}}, 0},
		"unknown queue": {duepost.Consumer{Queue: "nobody"}, amqp.NotFound},
	} {
		err := r.client.Consume(t.Context(), c.o, ignore)
		var e *amqp.Error
		if c.code == 0 && !errors.Is(err, duepost.ErrInvalid) || c.code != 0 && !(errors.As(err, &e) && e.Code == c.code) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestPrefetch(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	for range 5 {
		r.publish(duepost.Message{RoutingKey: "q"})
	}
	began, finish := make(chan bool, 5), make(chan bool)
	r.consume(duepost.Consumer{Queue: "q", Prefetch: 2}, func(context.Context, *duepost.Delivery) error {
		began <- true
		<-finish
		return nil
	})
	next(t, began)
	r.awaitReady("q", 3)
	close(finish)
}

// A retry that the broker refuses leaves the message where it is.
func TestRefusedRetryLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.declare(duepost.Topology{Queues: []duepost.Queue{
		{Name: "q", Args: map[string]any{"x-max-length": 1, "x-overflow": "reject-publish"}},
	}})
	r.publish(duepost.Message{RoutingKey: "q", MessageID: "first"})
	seen := make(chan duepost.Delivery, 10)
	full := make(chan bool)
	r.consume(duepost.Consumer{Queue: "q", Prefetch: 1, Retry: quick(5)}, func(_ context.Context, d *duepost.Delivery) error {
		seen <- *d
		if d.MessageID == "first" && !d.Redelivered {
			<-full
			return duepost.RetryAfter(0)
		}
		return nil
	})
	next(t, seen)
	r.publish(duepost.Message{RoutingKey: "q", MessageID: "second"})
	close(full)
	if d := next(t, seen); d.MessageID != "first" || d.Attempt != 1 {
		t.Errorf("got %s, attempt %d; want the first again, which had no other attempt", d.MessageID, d.Attempt)
	}
	if d := next(t, seen); d.MessageID != "second" {
		t.Errorf("got %s, want the second", d.MessageID)
	}
}

func TestConsumeWithoutHandlerOrTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	if err := r.client.Consume(t.Context(), duepost.Consumer{Queue: "q"}, nil); !errors.Is(err, duepost.ErrInvalid) {
		t.Errorf("consume without a handler: got %v, want ErrInvalid", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.client.Consume(ctx, duepost.Consumer{Queue: "q"}, ignore); err != nil {
		t.Errorf("consume when its context has ended: got %v, want nil", err)
	}
}

// Close does not wait for a consumer that cannot connect.
func TestCloseWhileAConsumerConnects(t *testing.T) {
	t.Parallel()
	r, p := newProxiedRig(t, duepost.Options{})
	p.Down()
	ended := make(chan error)
	go func() { ended <- r.client.Consume(context.Background(), duepost.Consumer{Queue: "q"}, ignore) }()
	if err := r.client.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := next(t, ended); err == nil {
		t.Error("consume: got nil, want that the client is closed or has no connection")
	}
}

func ignore(context.Context, *duepost.Delivery) error { return nil }

func TestDeathTellsExpiryFromRejection(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, o duepost.Options) {
		r := newRig(t, o)
		dead := map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
		short := map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-message-ttl": 10}
		r.declare(duepost.Topology{Queues: []duepost.Queue{
			{Name: "dead"}, {Name: "rejecting", Args: dead}, {Name: "expiring", Args: short},
		}})
		seen := make(chan duepost.Delivery, 10)
		r.consume(duepost.Consumer{Queue: "dead", Retry: quick(5)}, func(_ context.Context, d *duepost.Delivery) error {
			seen <- *d
			if d.Attempt == 1 {
				return errors.New("once more")
			}
			return nil
		})
		for queue, reason := range map[string]string{"rejecting": "rejected", "expiring": "expired"} {
			r.publish(duepost.Message{RoutingKey: queue, Delay: 20 * time.Millisecond})
			if queue == "rejecting" {
				r.reject(queue)
			}
			for range 2 { // a retry keeps it
				d := next(t, seen)
				death, died := d.Death()
				if !died || death.Reason != reason || death.Queue != queue || death.Count != 1 || len(d.Headers) != 0 {
					t.Errorf("attempt %d: death %+v, %v; want %s in %s; headers %v",
						d.Attempt, death, died, reason, queue, d.Headers)
				}
			}
		}
	})
}

func TestDeletedParkingQueueIsMadeAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	r.consume(duepost.Consumer{Queue: "q", Parking: "lot"}, func(_ context.Context, d *duepost.Delivery) error {
		r.raw(func(ch *amqp.Channel) error {
			_, err := ch.QueueDelete("lot", false, false, false)
			return err
		})
		return duepost.Park("why not")
	})
	r.publish(duepost.Message{RoutingKey: "q"})
	r.awaitReady("lot", 1)
}

// reject takes one message of a queue as a consumer that does not want it.
func (r *rig) reject(queue string) {
	r.t.Helper()
	r.raw(func(ch *amqp.Channel) error {
		all, err := ch.Consume(queue, "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		return next(r.t, all).Reject(false)
	})
}

// count is how many messages of a queue are ready, -1 if it is not there.
func (r *rig) count(queue string) (n int) {
	r.t.Helper()
	r.raw(func(ch *amqp.Channel) error {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		if n = q.Messages; err != nil {
			n = -1
		}
		return nil
	})
	return n
}

// awaitReady waits until n messages of a queue are ready.
func (r *rig) awaitReady(queue string, n int) {
	r.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		got := r.count(queue)
		if got == n {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("queue %s: %d messages are ready after 30 s, want %d", queue, got, n)
		}
	}
}
