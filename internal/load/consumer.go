package load

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// consumer consumes one queue on a connection of its own.
type consumer struct {
	channel *amqp.Channel
	queue   string
	o       Options
	steady  *atomic.Bool

	received atomic.Uint64
	// The rest belongs to run until it has returned.
	ledger   *ledger
	latency  *measure
	lateness *measure
	early    uint64
	last     time.Time
	unacked  int
	lastTag  uint64
}

// open prepares the channel; messages come when run begins.
func (c *consumer) open(conn *amqp.Connection) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	c.channel = ch
	return ch.Qos(c.o.Prefetch, 0, false)
}

// run consumes until stop is done.
func (c *consumer) run(stop context.Context) error {
	deliveries, err := c.channel.Consume(c.queue, "", !c.o.Persistent, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("consume from queue %q: %w", c.queue, err)
	}
	for {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return errors.New("consume: the broker closed the channel or cancelled the consumer")
			}
			if err := c.take(d); err != nil {
				return err
			}
		case <-stop.Done():
			return c.ack()
		}
	}
}

// take notes one delivery.
func (c *consumer) take(d amqp.Delivery) error {
	now := time.Now()
	s, err := readStamp(d.Body)
	if err != nil {
		return err
	}
	c.ledger.note(s.publisher, s.seq)
	if s.delay > 0 {
		late := now.Sub(s.due())
		if late < 0 {
			c.early++
		}
		c.lateness.record(late)
	} else if c.steady.Load() {
		c.latency.record(now.Sub(s.sent))
	}
	c.last = now
	c.received.Add(1)
	c.lastTag = d.DeliveryTag
	if c.unacked++; c.unacked >= c.o.AckEvery {
		return c.ack()
	}
	return nil
}

// ack settles everything that came so far, in one method.
func (c *consumer) ack() error {
	if !c.o.Persistent || c.unacked == 0 {
		return nil
	}
	c.unacked = 0
	return c.channel.Ack(c.lastTag, true)
}
