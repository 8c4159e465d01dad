package duepost

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// publisher sends messages over the outlet of the present session and opens a new one when it
// has ended.
type publisher struct {
	link    *link
	places  chan struct{} // one element for each message under way
	opening chan struct{} // held by who opens an outlet; a lock that a context can end
	current atomic.Pointer[outlet]
}

func newPublisher(l *link, maxInFlight int) *publisher {
	return &publisher{link: l, places: make(chan struct{}, maxInFlight), opening: make(chan struct{}, 1)}
}

// publish sends e and waits for the answer. nil is confirmed and routed. What is not
// ErrUnconfirmed, nor an answer of the broker, was surely not sent: see unsent.
func (p *publisher) publish(ctx context.Context, e *envelope) error {
	if !p.tryPlace() {
		if err := p.place(ctx); err != nil {
			return err
		}
	}
	defer p.leave()
	for {
		f, err := p.send(ctx, e)
		if err != nil {
			return err
		}
		// A message behind one that ended the channel was not looked at and can go again.
		if err := f.wait(ctx); !errors.Is(err, errUnsent) {
			return err
		}
	}
}

// tryPlace takes a place among those under way if there is one.
func (p *publisher) tryPlace() bool {
	select {
	case p.places <- struct{}{}:
		return true
	default:
		return false
	}
}

// place waits for a place.
func (p *publisher) place(ctx context.Context) error {
	select {
	case p.places <- struct{}{}:
		return nil
	case <-p.link.ctx.Done(): // drain has taken all places
		return unsent(ErrClosed)
	case <-ctx.Done():
		return unsent(fmt.Errorf("wait for a place among the messages in flight: %w", context.Cause(ctx)))
	}
}

// leave gives a place back.
func (p *publisher) leave() { <-p.places }

// send sends e as soon as it can. The caller has a place.
func (p *publisher) send(ctx context.Context, e *envelope) (*flight, error) {
	for {
		if ctx.Err() != nil {
			return nil, unsent(context.Cause(ctx))
		}
		o, err := p.outlet(ctx)
		if err != nil {
			return nil, unsent(err)
		}
		if err := o.session.gate.wait(ctx, o.session.lost); err != nil {
			return nil, unsent(fmt.Errorf("%w: %w", ErrBlocked, err))
		}
		if err := o.check(ctx, e.exchange); err != nil {
			if errors.Is(err, errHeldBack) || o.session.isEnd(ctx, err) {
				continue
			}
			return nil, unsent(err)
		}
		f, err := o.send(e)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, errUnsent): // the channel has ended just before
		case e.publishing.Headers.Validate() != nil:
			return nil, unsent(invalid("header: %v", err))
		default:
			return nil, fmt.Errorf("%w: %w", ErrUnconfirmed, err)
		}
	}
}

// outlet returns the present outlet and opens one if there is none.
func (p *publisher) outlet(ctx context.Context) (*outlet, error) {
	if o := p.current.Load(); o != nil && !o.ch.IsClosed() {
		return o, nil
	}
	select {
	case p.opening <- struct{}{}:
		defer func() { <-p.opening }()
	case <-ctx.Done():
		return nil, errors.Join(ErrDisconnected, context.Cause(ctx))
	}
	for {
		if o := p.current.Load(); o != nil && !o.ch.IsClosed() {
			return o, nil // somebody else was faster
		}
		s, err := p.link.session(ctx)
		if err != nil {
			return nil, err
		}
		o, err := openOutlet(s)
		if err == nil {
			p.current.Store(o)
			return o, nil
		}
		if !s.isEnd(ctx, err) {
			return nil, err
		}
	}
}

// drain waits until nothing is under way, and takes all places.
func (p *publisher) drain(timeout time.Duration) error {
	over := time.After(timeout)
	for range cap(p.places) {
		select {
		case p.places <- struct{}{}:
		case <-over:
			return fmt.Errorf("wait for confirms: %w", ErrUnconfirmed)
		}
	}
	return nil
}

// check finds out whether an exchange is there, once for each name. A publish to one that is not
// would end the channel for all who share it. [amqp basic.publish]
func (o *outlet) check(ctx context.Context, exchange string) error {
	if exchange == "" || o.known.has(exchange) {
		return nil
	}
	err := o.session.ask(ctx, func(ch *amqp.Channel) error { return lookUp(ch, exchange) })
	if hasCode(err, amqp.NotFound) {
		return fmt.Errorf("%w: %w", ErrUnknownExchange, err)
	}
	if err == nil {
		o.known.add(exchange)
	}
	return err
}

// wait returns what became of f, or ErrUnconfirmed when ctx ends first.
func (f *flight) wait(ctx context.Context) error {
	select {
	case <-f.confirm.Done():
		return f.answer()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnconfirmed, context.Cause(ctx))
	}
}

// unsent marks an error of a message that surely did not reach the broker.
func unsent(err error) error { return &unsentError{err} }

type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// hasCode reports whether err is the broker's answer with that reply code.
func hasCode(err error, code int) bool {
	var e *amqp.Error
	return errors.As(err, &e) && e.Code == code
}
