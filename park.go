package duepost

import (
	"context"
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// maxReason is how much of an error goes into a header, in bytes. All headers of a message must
// fit into one frame.
const maxReason = 1 << 10

// makeParking makes sure that a parking queue is there. One that somebody made is used as it is.
// It asks on the connection for consuming, which a broker reads also when it takes no messages.
func (c *Client) makeParking(ctx context.Context, name string) error {
	err := c.consumers.link.ask(ctx, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	})
	if !hasCode(err, amqp.NotFound) {
		return err
	}
	make := queueDeclaration(name, amqp.Table{"x-queue-type": string(c.plan.kind)})
	return c.consumers.link.ask(ctx, c.declaring(make))
}

// park publishes d to the parking queue, with what is known about it.
func (r *consumerRun) park(d *Delivery, cause error) error {
	m, own := d.again()
	m.RoutingKey = r.o.Parking
	own[headerParkedReason] = parkedReason(cause)
	own[headerParkedAttempts] = int64(d.Attempt)
	own[headerParkedQueue] = r.o.Queue
	own[headerParkedTime] = r.c.now().UnixMilli()
	r.log.Warn("message parked", "id", d.MessageID, "n", d.Attempt, "err", cause)
	_, err := r.c.publish(r.handling, &m, own)
	if errors.Is(err, ErrUnroutable) { // somebody has deleted the queue
		if err := r.c.makeParking(r.handling, r.o.Parking); err != nil {
			return fmt.Errorf("make parking queue: %w", err)
		}
		_, err = r.c.publish(r.handling, &m, own)
	}
	return err
}

// parkedReason is what the handler gave to Park, else the whole error.
func parkedReason(cause error) string {
	text := cause.Error()
	if o, ok := cause.(*outcome); ok && o.reason != "" {
		text = o.reason
	}
	if len(text) > maxReason {
		text = text[:maxReason]
	}
	return strings.ToValidUTF8(text, "")
}
