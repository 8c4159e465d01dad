package load

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// plan says how long a publisher's seq-th message is to wait; ok is false when there is none.
type plan func(seq uint64, now time.Time) (delay time.Duration, ok bool)

// publisher publishes on a connection of its own, as fast as its window lets it.
type publisher struct {
	id       uint32
	channel  *amqp.Channel
	exchange string
	key      string
	o        Options

	confirms <-chan amqp.Confirmation // nil without confirms
	sentAt   []time.Time              // of the messages in the window, by seq modulo Window
	steady   *atomic.Bool
	confirm  *measure

	sent, confirmed, refused atomic.Uint64
}

// open prepares the channel.
func (p *publisher) open(conn *amqp.Connection) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	p.channel = ch
	if !p.o.Persistent {
		return nil
	}
	p.sentAt = make([]time.Time, p.o.Window)
	p.confirms = ch.NotifyPublish(make(chan amqp.Confirmation, p.o.Window))
	return ch.Confirm(false)
}

// run publishes by the plan until it ends or until stop is done; then it waits for what is
// unconfirmed, for as long as ctx lasts.
func (p *publisher) run(ctx, stop context.Context, next plan) error {
	begun, pace := time.Now(), p.o.pace()
	m := amqp.Publishing{DeliveryMode: amqp.Transient, Body: make([]byte, p.o.Size)}
	if p.o.Persistent {
		m.DeliveryMode = amqp.Persistent
	}
	for seq := uint64(0); stop.Err() == nil; seq++ {
		if err := p.awaitWindow(ctx, p.o.Window-1); err != nil {
			return err
		}
		if err := p.until(ctx, begun.Add(time.Duration(seq)*pace)); err != nil {
			return err
		}
		now := time.Now()
		delay, ok := next(seq, now)
		if !ok {
			break
		}
		if delay < 0 {
			return fmt.Errorf("publish message %d: the burst was due %v ago: give it more time, "+
				"or publish fewer messages", seq, -delay)
		}
		if delay > 0 {
			m.Headers = amqp.Table{"x-delay": delay.Milliseconds()}
		}
		key := p.key
		if p.o.Route != nil && p.o.Route.Key != nil {
			key = p.o.Route.Key(delay)
		}
		stamp{p.id, seq, now, delay}.put(m.Body)
		if p.sentAt != nil {
			p.sentAt[seq%uint64(len(p.sentAt))] = now
		}
		// The client has written the body to the socket when this returns, so it can be reused.
		if err := p.channel.PublishWithContext(ctx, p.exchange, key, false, false, m); err != nil {
			return fmt.Errorf("publish message %d: %w", seq, err)
		}
		p.sent.Add(1)
	}
	return p.awaitWindow(ctx, 0)
}

// pace is the time between two messages of a publisher.
func (o Options) pace() time.Duration {
	if o.Rate == 0 {
		return 0
	}
	return time.Second * time.Duration(o.Publishers) / time.Duration(o.Rate)
}

// until waits for the time of the next message and takes the confirms that come meanwhile.
func (p *publisher) until(ctx context.Context, at time.Time) error {
	left := time.Until(at)
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case c, ok := <-p.confirms:
			if !ok {
				return errors.New("await confirm: the broker closed the channel")
			}
			p.settle(c)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitWindow waits until at most left messages are unconfirmed, and takes whatever other
// confirms there are.
func (p *publisher) awaitWindow(ctx context.Context, left int) error {
	if p.confirms == nil {
		return nil
	}
	for p.unconfirmed() > left {
		select {
		case c, ok := <-p.confirms:
			if !ok {
				return errors.New("await confirm: the broker closed the channel")
			}
			p.settle(c)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		select {
		case c, ok := <-p.confirms:
			if ok {
				p.settle(c)
				continue
			}
		default:
		}
		return nil
	}
}

func (p *publisher) unconfirmed() int {
	return int(p.sent.Load() - p.confirmed.Load() - p.refused.Load())
}

func (p *publisher) settle(c amqp.Confirmation) {
	if !c.Ack {
		p.refused.Add(1)
		return
	}
	p.confirmed.Add(1)
	if p.steady.Load() {
		p.confirm.record(time.Since(p.sentAt[(c.DeliveryTag-1)%uint64(len(p.sentAt))]))
	}
}
