package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost"
)

const (
	bodyBytes  = 256
	publishers = 100 // goroutines
	prefetch   = 100
)

// client is what is compared. Each has a queue of its own.
type client interface {
	publish(ctx context.Context, n int) error
	consume(ctx context.Context, n int) error // the n that were published before
}

// together runs one for each of n messages on several goroutines.
func together(n int, one func() error) error {
	var left atomic.Int64
	left.Store(int64(n))
	errs := make([]error, publishers)
	var all sync.WaitGroup
	for i := range publishers {
		all.Go(func() {
			for errs[i] == nil && left.Add(-1) >= 0 {
				errs[i] = one()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// bare is the client library, used with care.
type bare struct {
	conn    *amqp.Connection
	ch      *amqp.Channel
	returns chan amqp.Return
	body    []byte
}

func newBare(url string) (*bare, error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	b := &bare{conn: conn, body: make([]byte, bodyBytes)}
	if b.ch, err = conn.Channel(); err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	if err := b.ch.Confirm(false); err != nil {
		return nil, fmt.Errorf("select confirms: %w", err)
	}
	b.returns = b.ch.NotifyReturn(make(chan amqp.Return, 1))
	if _, err := b.ch.QueueDeclare("bare", true, false, false, false, nil); err != nil {
		return nil, fmt.Errorf("declare queue: %w", err)
	}
	return b, nil
}

func (b *bare) publish(ctx context.Context, n int) error {
	return together(n, func() error {
		confirm, err := b.ch.PublishWithDeferredConfirmWithContext(ctx, "", "bare", true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, Body: b.body, Timestamp: time.Now(),
			MessageId: "01234567890123456789012345",
		})
		if err != nil {
			return err
		}
		ok, err := confirm.WaitContext(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("nack")
		}
		return nil
	})
}

func (b *bare) consume(ctx context.Context, n int) error {
	ch, err := b.conn.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return err
	}
	all, err := ch.ConsumeWithContext(ctx, "bare", "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for range n {
		d := <-all
		if err := handle(ctx, len(d.Body)); err != nil {
			return err
		}
		if err := d.Ack(false); err != nil {
			return err
		}
	}
	return nil
}

func (b *bare) close() { b.conn.Close() }

// handle is the work of a handler.
func handle(ctx context.Context, size int) error {
	if size != bodyBytes {
		return errors.New("wrong size")
	}
	return ctx.Err()
}

// sdk is the SDK as it is out of the box.
type sdk struct {
	client *duepost.Client
	body   []byte
}

func newSDK(ctx context.Context, url string) (*sdk, error) {
	c, err := duepost.Connect(ctx, duepost.Options{URL: url})
	if err != nil {
		return nil, err
	}
	return &sdk{client: c, body: make([]byte, bodyBytes)},
		c.Declare(ctx, duepost.Topology{Queues: []duepost.Queue{{Name: "sdk"}}})
}

func (s *sdk) publish(ctx context.Context, n int) error {
	return together(n, func() error {
		_, err := s.client.Publish(ctx, duepost.Message{RoutingKey: "sdk", Body: s.body})
		return err
	})
}

func (s *sdk) consume(ctx context.Context, n int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := n
	return s.client.Consume(ctx, duepost.Consumer{Queue: "sdk", Prefetch: prefetch},
		func(ctx context.Context, d *duepost.Delivery) error {
			if left--; left == 0 {
				cancel()
			}
			return handle(ctx, len(d.Body))
		})
}

func (s *sdk) close() { s.client.Close() }
