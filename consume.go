package duepost

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Handler deals with one message. What it returns decides what becomes of the message:
//
//   - nil: done, it is acknowledged.
//   - an error with [Drop] in it: done, though not well; it is acknowledged and logged.
//   - an error with [RetryAfter] in it: it comes again after that time.
//   - an error with [Park] in it: it goes to the parking queue.
//   - any other error, and a panic: it comes again after a pause that grows, and after
//     [Retry.Attempts] it goes to the parking queue.
//
// ctx ends when [Consumer.Timeout] is over and when the time to drain is over, not when consuming
// ends: what was begun is finished. A message may come twice, so a handler must be idempotent.
type Handler func(ctx context.Context, d *Delivery) error

// Consumer says how a queue is consumed.
type Consumer struct {
	// Queue must be there.
	Queue string

	// Concurrency is how many handlers run at once. Default 1, which keeps the order of the
	// queue, but for messages that are retried.
	Concurrency int
	// Prefetch is how many messages the broker hands over in advance, 1 to 65535. Default
	// twice Concurrency and at least 10.
	Prefetch int
	// Timeout ends the context of a handler, up to a tenth later, at most a second; what the handler
	// then returns counts as ever. A
	// handler that does not return keeps its place and its message until the broker's consumer
	// timeout (30 minutes unless set) gives the message to another. Default 5 minutes; negative
	// for none.
	Timeout time.Duration

	// Retry says how often and when a message comes again that its handler did not finish.
	Retry Retry
	// Parking is the queue for messages that are given up, made when it is not there.
	// Default: the name of the queue with ".parked" behind it.
	Parking string

	// DrainTimeout is how long running handlers may go on when consuming ends. Default that of
	// the client.
	DrainTimeout time.Duration

	// Tag is the name of the consumer for the broker's tools. Default a unique one.
	Tag string
	// Args are further arguments, such as x-priority.
	Args map[string]any
}

// Retry says how often and when a message comes again after a failure. Between two attempts it
// waits in the broker.
type Retry struct {
	// Attempts is how often a message is handled in all before it is parked. Default 5;
	// 1 parks at the first failure.
	Attempts int
	// Backoff is the pause before the next attempt. Default from 1 s by 2 up to 10 min with a
	// fifth of jitter. In ModeWaitQueues pauses are whole multiples of the smallest tier.
	Backoff Backoff
}

// Consume hands the messages of a queue to h until ctx ends or the client is closed, and then
// lets running handlers return, acknowledges what they finished and gives back the rest. It
// returns nil then, or [ErrHandlersRunning]. A queue that is not there, or that this user may
// not read, is an error at once. Lost connections are no end: consuming goes on when the client
// is connected again.
func (c *Client) Consume(ctx context.Context, o Consumer, h Handler) error {
	o, err := o.withDefaults(c.options)
	err = errors.Join(err, refuse(h == nil, "handler is nil"))
	if err == nil {
		err = c.consume(ctx, o, h)
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrHandlersRunning) {
		return nil // it ended before it had begun
	}
	if err != nil {
		return fmt.Errorf("consume queue %q: %w", o.Queue, err)
	}
	return nil
}

func (c *Client) consume(ctx context.Context, o Consumer, h Handler) error {
	ctx, end, err := c.consumers.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := c.makeParking(ctx, o.Parking); err != nil {
		return err
	}
	s, err := c.subscribe(ctx, o)
	if err != nil {
		return err
	}
	handling, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	run := &consumerRun{
		c: c, o: o, h: h, log: c.log.With("queue", o.Queue),
		handling: handling, giveUp: giveUp, changed: make(chan struct{}),
	}
	return run.until(ctx, s)
}

// withDefaults fills in what is not set and refuses what cannot be.
func (o Consumer) withDefaults(client Options) (Consumer, error) {
	fill(&o.Concurrency, 1)
	fill(&o.Prefetch, max(10, 2*o.Concurrency))
	fill(&o.Timeout, 5*time.Minute)
	fill(&o.Parking, o.Queue+".parked")
	fill(&o.DrainTimeout, client.DrainTimeout)
	fill(&o.Retry.Attempts, 5)
	o.Retry.Backoff = o.Retry.Backoff.withDefaults(time.Second, 10*time.Minute)
	return o, errors.Join(
		refuse(o.Queue == "", "queue is empty"),
		refuse(o.Concurrency < 1, "concurrency is %d, must be at least 1", o.Concurrency),
		refuse(o.Prefetch < 1 || o.Prefetch > 65535, "prefetch is %d, must be from 1 to 65535", o.Prefetch),
		refuse(o.Retry.Attempts < 1, "attempts are %d, must be at least 1", o.Retry.Attempts),
		refuse(len(o.Parking) > maxShortString, "parking queue has %d bytes, allowed are %d", len(o.Parking), maxShortString),
	)
}

// refuse is an ErrInvalid if something is wrong.
func refuse(wrong bool, format string, a ...any) error {
	if !wrong {
		return nil
	}
	return invalid(format, a...)
}
