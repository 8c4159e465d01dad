package relay

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/relay/topology"
)

// Parked is a message that could not be delivered.
type Parked struct {
	ID       string    `json:"id"`
	Exchange string    `json:"exchange"` // the delayed exchange that it was published to
	Key      string    `json:"routing_key"`
	Due      time.Time `json:"due"`
	Reason   string    `json:"reason"`
	Bytes    int       `json:"bytes"` // of its body
}

// ListParked returns the first parked messages, at most limit, and leaves them where they are.
func ListParked(conn *amqp.Connection, limit int) (all []Parked, err error) {
	err = eachParked(conn, limit, func(_ *amqp.Channel, d amqp.Delivery) error {
		it := unwrap(d)
		reason, _ := d.Headers[headerReason].(string)
		all = append(all, Parked{it.id, it.exchange, it.key, time.UnixMilli(it.due).UTC(), reason, len(d.Body)})
		return nil
	})
	return all, err
}

// eachParked calls f with parked messages, at most limit; those that f does not acknowledge go back in the
// end, to their places.
func eachParked(conn *amqp.Connection, limit int, f func(*amqp.Channel, amqp.Delivery) error) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	defer ch.Close() // all that matters was answered
	for range limit {
		d, found, err := ch.Get(topology.Parked, false)
		if err != nil {
			return fmt.Errorf("read queue %q: %w", topology.Parked, err)
		}
		if !found {
			return nil
		}
		if err := f(ch, d); err != nil {
			return err
		}
	}
	return nil
}

// Redriven is what came of driving parked messages again.
type Redriven struct {
	Released int // handed on to their consumers
	Left     int // still parked: of other exchanges, or nobody takes them yet
}

// Redrive hands on parked messages now, be it of one exchange or, with "", of all; it looks at most at
// limit of them. One that nobody takes stays. A message is taken out when RabbitMQ has confirmed
// it where it goes, so it may come twice, and is not lost.
func Redrive(ctx context.Context, conn *amqp.Connection, user, exchange string, limit int) (done Redriven, err error) {
	impersonates, err := canImpersonate(conn, user)
	if err != nil {
		return done, err
	}
	out, err := conn.Channel()
	if err != nil {
		return done, fmt.Errorf("open channel: %w", err)
	}
	defer out.Close() // all was answered
	if err := out.Confirm(false); err != nil {
		return done, fmt.Errorf("select confirms: %w", err)
	}
	r := &redrive{conn: conn, out: out, returns: out.NotifyReturn(make(chan amqp.Return, 1))}
	err = eachParked(conn, limit, func(ch *amqp.Channel, d amqp.Delivery) error {
		it := unwrap(d)
		if exchange != "" && it.exchange != exchange || it.reason != "" || it.faultOf(user, impersonates) != "" {
			done.Left++
			return nil
		}
		taken, err := r.release(ctx, it)
		switch {
		case err != nil:
			return err
		case !taken:
			done.Left++
			return nil
		}
		done.Released++
		if err := ch.Ack(d.DeliveryTag, false); err != nil {
			return fmt.Errorf("acknowledge in queue %q: %w", topology.Parked, err)
		}
		return nil
	})
	return done, err
}

// redrive is a channel to release on, one message after the other.
type redrive struct {
	conn    *amqp.Connection
	out     *amqp.Channel
	returns <-chan amqp.Return
}

// release reports whether somebody took the message, durably.
func (r *redrive) release(ctx context.Context, it *item) (bool, error) {
	found, err := topology.HasExchange(r.conn, it.dueExchange())
	if err != nil || !found {
		return false, err
	}
	confirm, err := r.out.PublishWithDeferredConfirm(it.dueExchange(), it.key, true, false, it.released())
	if err != nil {
		return false, fmt.Errorf("publish to exchange %q: %w", it.dueExchange(), err)
	}
	acked, err := confirm.WaitContext(ctx)
	if err != nil {
		return false, fmt.Errorf("wait for confirm: %w", err)
	}
	// A return is there before its confirm. [amqp basic.return, rmq confirms]
	select {
	case <-r.returns:
		return false, nil
	default:
		return acked, nil
	}
}
