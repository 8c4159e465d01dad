package demo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Names in the broker.
const (
	dueExchange = "orders.due"
	closeQueue  = "orders.close"
	closeKey    = "close"
	// dueHeader is when the message is due by the publisher's clock, in unix microseconds.
	dueHeader = "x-demo-due-us"
)

// retryEvery is how often a client tries to get back to a broker that is gone.
const retryEvery = 10 * time.Millisecond

// shop is a client of the broker, written as one would write it against any: it connects again
// when the connection is lost, publishes with confirms, and repeats what was not confirmed.
type shop struct {
	url     string
	tally   *tally
	serving chan struct{} // holds a signal after the closer's consumer was accepted

	// of the publishing side, which is one goroutine's
	conn *amqp.Connection
	ch   *amqp.Channel
}

// connect tries until it has a channel or ctx ends, and declares what the shop uses.
func connect(ctx context.Context, url string) (*amqp.Connection, *amqp.Channel, error) {
	for {
		conn, err := amqp.Dial(url)
		if err == nil {
			var ch *amqp.Channel
			if ch, err = declare(conn); err == nil {
				return conn, ch, nil
			}
			conn.Close()
		}
		select {
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("connect to broker: %w", errors.Join(ctx.Err(), err))
		case <-time.After(retryEvery):
		}
	}
}

func declare(conn *amqp.Connection) (*amqp.Channel, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	err = ch.ExchangeDeclare(dueExchange, "x-delayed-message", true, false, false, false,
		amqp.Table{"x-delayed-type": "direct"})
	if err != nil {
		return nil, err
	}
	if _, err := ch.QueueDeclare(closeQueue, true, false, false, false, nil); err != nil {
		return nil, err
	}
	return ch, ch.QueueBind(closeQueue, closeKey, dueExchange, false, nil)
}

// place publishes the orders' messages until each is confirmed.
func (s *shop) place(ctx context.Context, orders []*order) error {
	for len(orders) > 0 {
		var err error
		if orders, err = s.tryPlace(ctx, orders); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		if err := s.reconnect(ctx); err != nil {
			return err
		}
	}
	return nil
}

// tryPlace publishes all and then waits for all, so that one sync of the disk may serve them
// together. It returns those that must be published again: they may or may not have arrived.
func (s *shop) tryPlace(ctx context.Context, orders []*order) (again []*order, err error) {
	if s.ch == nil {
		return orders, amqp.ErrClosed
	}
	type unconfirmed struct {
		due     time.Time
		confirm *amqp.DeferredConfirmation
	}
	sent := make([]unconfirmed, 0, len(orders))
	for _, o := range orders {
		due := time.Now().Add(o.delay)
		confirm, err := s.ch.PublishWithDeferredConfirmWithContext(ctx, dueExchange, closeKey, false, false,
			amqp.Publishing{
				DeliveryMode: amqp.Persistent,
				Headers:      amqp.Table{"x-delay": o.delay.Milliseconds(), dueHeader: due.UnixMicro()},
				Body:         []byte(strconv.Itoa(o.id)),
			})
		if err != nil {
			return orders, fmt.Errorf("place order: %w", err)
		}
		sent = append(sent, unconfirmed{due, confirm})
	}
	for i, u := range sent {
		acked, err := u.confirm.WaitContext(ctx)
		if err == nil && !acked {
			err = errors.New("place order: not confirmed")
		}
		if err != nil {
			return orders[i:], err
		}
		s.tally.placed(orders[i].id, u.due)
	}
	return nil, nil
}

func (s *shop) reconnect(ctx context.Context) (err error) {
	s.close()
	if s.conn, s.ch, err = connect(ctx, s.url); err != nil {
		return err
	}
	return s.ch.Confirm(false)
}

func (s *shop) close() {
	if s.conn != nil {
		s.conn.Close()
	}
	s.conn, s.ch = nil, nil
}

// closer consumes the messages that say "time is up" until ctx ends; handle is told of the
// first hand-over of each order.
func (s *shop) closer(ctx context.Context, handle func(id int, late time.Duration)) error {
	for ctx.Err() == nil {
		conn, ch, err := connect(ctx, s.url)
		if err != nil {
			break
		}
		err = s.consume(ctx, ch, handle)
		conn.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// consume returns nil when the channel is lost or ctx ends.
func (s *shop) consume(ctx context.Context, ch *amqp.Channel, handle func(id int, late time.Duration)) error {
	deliveries, err := ch.Consume(closeQueue, "", false, false, false, false, nil)
	if err != nil {
		return nil
	}
	select {
	case s.serving <- struct{}{}:
	default:
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case d, ok := <-deliveries:
			if !ok {
				return nil
			}
			now := time.Now()
			id, err := strconv.Atoi(string(d.Body))
			due, isInt := d.Headers[dueHeader].(int64)
			if err != nil || !isInt {
				return fmt.Errorf("read message %q: it is none of ours", d.Body)
			}
			h := handover{due: time.UnixMicro(due), at: now}
			if s.tally.received(id, h) {
				handle(id, h.at.Sub(h.due))
			}
			// An ack that does not arrive lets the message come again.
			_ = d.Ack(false)
		}
	}
}
