package duepost

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Mode is how messages are delayed.
type Mode string

// The modes.
const (
	// ModeAuto finds out on connect.
	ModeAuto Mode = ""
	// ModeNative keeps delayed messages in exchanges of type x-delayed-message: Duepost, and
	// RabbitMQ with the plugin.
	ModeNative Mode = "native"
	// ModeWaitQueues keeps them in queues with a time to live: any RabbitMQ.
	ModeWaitQueues Mode = "wait-queues"
)

// Broker is what the client found out about the broker that it is connected to.
type Broker struct {
	// Product and Version are what the broker calls itself: Duepost, RabbitMQ.
	Product, Version string
	// Mode is how messages are delayed, never ModeAuto.
	Mode Mode
	// Keys says that messages that wait can be replaced and canceled by [Message.Key].
	Keys bool
}

// Broker tells what was found out about the broker when the client connected last.
func (c *Client) Broker() Broker { return *c.broker.Load() }

func (b Broker) isDuepost() bool { return b.Product == "Duepost" }

// detect finds out what the broker at the other end of conn can do, by what it says of itself
// or, if that does not tell, by trying it.
func (c *Client) detect(ctx context.Context, conn *amqp.Connection) (Broker, error) {
	text := func(name string) string { s, _ := conn.Properties[name].(string); return s }
	b := Broker{Product: text("product"), Version: text("version"), Mode: c.options.Mode}
	if b.Mode == ModeAuto {
		if last := c.broker.Load(); last != nil && last.Product == b.Product && last.Version == b.Version {
			return *last, nil
		}
		var err error
		if b.Mode, err = c.bestMode(ctx, b); err != nil {
			return Broker{}, err
		}
	}
	b.Keys = b.isDuepost() && b.Mode == ModeNative
	return b, nil
}

func (c *Client) bestMode(ctx context.Context, b Broker) (Mode, error) {
	if b.isDuepost() {
		return ModeNative, nil
	}
	// On a connection of its own, because RabbitMQ 3 closes it at a type that it does not know.
	conn, err := c.publisher.link.dialer.round(ctx, "probe")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return "", fmt.Errorf("open channel: %w", err)
	}
	// What is declared if it can be is what the first delayed message would declare.
	err = delayedDeclaration(c.plan.prefix+delayedSuffix, amqp.ExchangeDirect).run(ch)
	var e *amqp.Error
	switch {
	case err == nil, hasCode(err, amqp.AccessRefused): // it knows the type, which it looks at first
		return ModeNative, nil
	case !errors.As(err, &e) || !e.Server:
		return "", fmt.Errorf("probe for delayed exchanges: %w", err)
	}
	return ModeWaitQueues, nil // 503 from RabbitMQ 3, 406 from RabbitMQ 4
}
