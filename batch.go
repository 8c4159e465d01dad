package duepost

import (
	"context"
	"errors"
)

// PublishBatch sends messages in their order, without waiting for each, and returns when all of
// them are answered. There is a receipt for each message, zero for one that was not confirmed.
// The error is a *[BatchError] with the error of each message at its place.
//
// A batch is not a transaction: some of its messages may be taken and others not.
func (c *Client) PublishBatch(ctx context.Context, ms []Message) ([]Receipt, error) {
	b := batch{c: c, ms: ms, receipts: make([]Receipt, len(ms)), errs: make([]error, len(ms))}
	for i := range ms {
		b.send(ctx, i)
	}
	for len(b.underway) > 0 {
		b.settle(ctx)
	}
	for _, err := range b.errs {
		if err != nil {
			return b.receipts, &BatchError{Errs: b.errs}
		}
	}
	return b.receipts, nil
}

// batch is a row of messages on their way. It gives back the place of its oldest message before
// it waits for another's, so batches never wait for each other in a circle.
type batch struct {
	c        *Client
	ms       []Message
	receipts []Receipt
	errs     []error
	underway []sentMessage // oldest first; each has a place
}

type sentMessage struct {
	i int // in ms
	e *envelope
	f *flight
}

func (b *batch) send(ctx context.Context, i int) {
	m, p := &b.ms[i], b.c.publisher
	if b.c.closing.Load() {
		b.errs[i] = m.failure(nil, ErrClosed)
		return
	}
	e, err := b.c.seal(ctx, m, nil)
	if err != nil {
		b.errs[i] = m.failure(nil, err)
		return
	}
	for !p.tryPlace() {
		if len(b.underway) > 0 {
			b.settle(ctx)
			continue
		}
		if err := p.place(ctx); err != nil {
			b.errs[i] = m.failure(e, err)
			return
		}
		break
	}
	f, err := p.send(ctx, e)
	if err != nil {
		p.leave()
		b.errs[i] = m.failure(e, err)
		return
	}
	b.underway = append(b.underway, sentMessage{i, e, f})
}

// settle waits for the answer to the oldest message.
func (b *batch) settle(ctx context.Context) {
	one := b.underway[0]
	b.underway = b.underway[1:]
	err := one.f.wait(ctx)
	b.c.publisher.leave()
	if err == nil {
		b.receipts[one.i] = one.e.receipt()
		return
	}
	m := &b.ms[one.i]
	if errors.Is(err, errUnsent) || one.e.lostItsWay(m, err) {
		// Alone, it is tried again where that is right.
		b.receipts[one.i], b.errs[one.i] = b.c.publish(ctx, m, nil)
		return
	}
	b.errs[one.i] = m.failure(one.e, err)
}
