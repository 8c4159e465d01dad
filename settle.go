package duepost

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// work hands one message to the handler and does with it what the handler said.
func (r *consumerRun) work(contexts *handlerContexts, j *job) {
	if j.from.isLost() {
		return // it comes again
	}
	d := r.c.delivery(&j.Delivery, r.o.Queue)
	err := r.call(contexts.next(), d)
	if err == nil {
		r.ack(j)
		return
	}
	if r.handling.Err() != nil { // it was not allowed to finish, which is not its failure
		j.from.giveBack(j.Delivery)
		return
	}
	if j.from.isLost() {
		return // a retry now would only double it
	}
	if err := r.settle(d, err); err != nil {
		// Neither retry nor parking could be published: the queue is the safest place. The pause
		// keeps it from coming round and round.
		r.log.Error("give message back", "id", d.MessageID, "err", err)
		select {
		case <-time.After(r.o.Retry.Backoff.First):
		case <-r.handling.Done():
		}
		j.from.giveBack(j.Delivery)
		return
	}
	r.ack(j)
}

// call runs the handler. A panic is an error.
func (r *consumerRun) call(ctx context.Context, d *Delivery) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("handler panicked", "id", d.MessageID, "err", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return r.h(ctx, d)
}

// settle does with d what the handler's error asks for. The message itself is acknowledged
// afterwards, when its retry or parked copy is confirmed: a crash in between doubles it.
func (r *consumerRun) settle(d *Delivery, cause error) error {
	o := &outcome{kind: retried, after: -1}
	errors.As(cause, &o)
	switch {
	case o.kind == dropped:
		r.log.Warn("message dropped", "id", d.MessageID, "err", cause)
		return nil
	case o.kind == parked || d.Attempt >= r.o.Retry.Attempts:
		return r.park(d, cause)
	}
	pause := o.after
	if pause < 0 {
		pause = r.o.Retry.Backoff.next(d.Attempt)
	}
	r.log.Debug("retry", "id", d.MessageID, "n", d.Attempt, "delay", pause, "err", cause)
	err := r.retry(d, pause)
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotSupported) { // and so would be the next try
		return r.park(d, fmt.Errorf("%w (%w)", cause, err))
	}
	return err
}

// retry publishes d for this queue alone, to come after a pause.
func (r *consumerRun) retry(d *Delivery, pause time.Duration) error {
	m, own := d.again()
	m.RoutingKey, m.Delay = r.o.Queue, pause
	own[headerAttempts] = int64(d.Attempt)
	_, err := r.c.publish(r.handling, &m, own)
	return err
}

// ack says that a message is done. When it cannot be said the message comes again.
func (r *consumerRun) ack(j *job) {
	if err := j.Ack(false); err != nil {
		r.log.Warn("ack", "id", j.MessageId, "err", err)
	}
}
