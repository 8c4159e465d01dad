package duepost

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Publish sends a message and returns when the broker has confirmed it. The error is a
// *[PublishError]; when it is nil, the message is in a queue or waits for its due instant.
//
// Goroutines that publish at the same time share one channel and do not wait for each other.
// Publish waits while there is no connection, while the broker takes no messages, and while
// [Options.MaxInFlight] messages wait for confirms; ctx ends every wait.
func (c *Client) Publish(ctx context.Context, m Message) (Receipt, error) {
	if c.closing.Load() {
		return Receipt{}, m.failure(nil, ErrClosed)
	}
	return c.publish(ctx, &m, nil)
}

// publish is Publish for the client itself, which may add headers and publish while it closes.
func (c *Client) publish(ctx context.Context, m *Message, own amqp.Table) (Receipt, error) {
	for again := false; ; again = true {
		e, err := c.seal(ctx, m, own)
		if err != nil {
			return Receipt{}, m.failure(nil, err)
		}
		err = c.publisher.publish(ctx, e)
		if err == nil {
			return e.receipt(), nil
		}
		if again || !e.lostItsWay(m, err) {
			return Receipt{}, m.failure(e, err)
		}
		c.forget()
	}
}

// lostItsWay reports whether what this client had declared to delay m was not there any more:
// somebody has deleted it.
func (e *envelope) lostItsWay(m *Message, err error) bool {
	return e.exchange != m.Exchange && (errors.Is(err, ErrUnroutable) || errors.Is(err, ErrUnknownExchange))
}

// Cancel takes out the message that waits under key on exchange. It returns nil if the message
// never comes, [ErrNotPending] if nothing waited there, and [ErrNotSupported] where
// [Broker.Keys] is false. exchange is that of the message, also if it is empty.
func (c *Client) Cancel(ctx context.Context, exchange, key string) error {
	m := Message{Exchange: exchange, Key: key}
	if err := c.cancel(ctx, &m); err != nil {
		return fmt.Errorf("cancel key %q on exchange %q: %w", key, exchange, err)
	}
	return nil
}

func (c *Client) cancel(ctx context.Context, m *Message) error {
	switch {
	case c.closing.Load():
		return ErrClosed
	case m.Key == "":
		return invalid("key is empty")
	case !c.Broker().Keys:
		return ErrNotSupported
	}
	if err := m.check(); err != nil {
		return err
	}
	to, err := c.scope(ctx, m.Exchange)
	if err != nil {
		return err
	}
	e := &envelope{exchange: to, mandatory: true}
	e.publishing.MessageId = rand.Text() // tells returns apart
	e.publishing.Headers = amqp.Table{delayKey: m.Key, delayCancel: true}
	err = c.publisher.publish(ctx, e)
	if errors.Is(err, ErrUnroutable) {
		return ErrNotPending
	}
	return err
}

// Reschedule publishes m in the place of what waits under its Key, which it must have, as it
// must have a Delay or At. If nothing waits there m is published all the same. It differs from
// Publish in that it refuses a message without these.
func (c *Client) Reschedule(ctx context.Context, m Message) (Receipt, error) {
	if m.Key == "" || m.Delay == 0 && m.At.IsZero() {
		return Receipt{}, m.failure(nil, invalid("reschedule: Key and one of Delay and At must be set"))
	}
	return c.Publish(ctx, m)
}
