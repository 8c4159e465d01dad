package duepost

import (
	"context"
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
// ctx ends after [Consumer.Timeout] and when the time to drain is over, not when consuming
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
	// Timeout ends the context of a handler and counts as a failure if the handler then
	// returns an error. A handler that does not return keeps its place and its message until
	// the broker's consumer timeout (30 minutes unless set) gives the message to another.
	// Default 5 minutes; negative for none.
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
func (c *Client) Consume(ctx context.Context, o Consumer, h Handler) error { return ErrNotSupported }
