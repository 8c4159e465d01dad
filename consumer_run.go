package duepost

import (
	"context"
	"log/slog"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// handlerGrace is how long handlers may take to return when their context has ended because
// the time to drain is over.
const handlerGrace = time.Second

// consumerRun is one call of Consume.
//
// Roles: the caller's goroutine, which subscribes anew when a subscription ends, and Concurrency
// workers, which take what comes over the present one. They outlive subscriptions: a handler goes
// on when the connection is lost, though its message will come again.
type consumerRun struct {
	c   *Client
	o   Consumer
	h   Handler
	log *slog.Logger

	handling context.Context // of handlers; ends when the time to drain is over
	giveUp   context.CancelFunc
	workers  sync.WaitGroup

	mu      sync.Mutex
	current *subscription // guarded by mu
	changed chan struct{} // closed and replaced when current is set; guarded by mu
}

// until consumes until ctx ends, over s and those that follow it, and drains.
func (r *consumerRun) until(ctx context.Context, s *subscription) error {
	r.set(s)
	for range r.o.Concurrency {
		r.workers.Go(func() { r.takeAll(ctx) })
	}
	for try := 1; ; {
		if s != nil {
			select {
			case <-s.ended:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return r.drain(s)
		}
		if s != nil {
			s.close()
			try = 1
		}
		var err error
		if s, err = r.c.subscribe(ctx, r.o); err == nil {
			r.set(s)
			continue
		}
		pause := r.c.options.Reconnect.next(try)
		r.log.Warn("subscribe again", "err", err, "dur", pause)
		try++
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (r *consumerRun) set(s *subscription) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = s
	close(r.changed)
	r.changed = make(chan struct{})
}

// takeAll is a worker: it deals with one message after the other until ctx ends.
func (r *consumerRun) takeAll(ctx context.Context) {
	contexts := newHandlerContexts(r.handling, r.o.Timeout)
	defer contexts.close()
	for ctx.Err() == nil {
		r.mu.Lock()
		s, changed := r.current, r.changed
		r.mu.Unlock()
		if r.take(ctx, s, contexts) {
			continue
		}
		s.noteEnd()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// take waits for one message and deals with it. It reports false if no more will come over s.
func (r *consumerRun) take(ctx context.Context, s *subscription, contexts *handlerContexts) bool {
	select {
	case d, ok := <-s.deliveries:
		if !ok {
			return false
		}
		if ctx.Err() != nil {
			s.giveBack(d)
			return true
		}
		r.work(contexts, &job{d, s})
	case <-ctx.Done():
	}
	return true
}

// job is a message for a worker.
type job struct {
	amqp.Delivery
	from *subscription
}

// drain lets the workers finish. s may be nil.
func (r *consumerRun) drain(s *subscription) error {
	if s != nil {
		s.cancel()
		defer s.close()
	}
	done := make(chan struct{})
	go func() { r.workers.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-time.After(r.o.DrainTimeout):
	}
	r.giveUp()
	select {
	case <-done:
		return nil
	case <-time.After(handlerGrace):
		return ErrHandlersRunning
	}
}
