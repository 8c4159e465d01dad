package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/relay/topology"
)

// Brokered is a [Topology] on connections of the relay's own, one for each virtual host, made when
// it is needed and again when it broke. Made by NewBrokered; safe for concurrent use.
type Brokered struct {
	dial func(vhost string) (*amqp091.Connection, error)

	mu     sync.Mutex // guards hosts and closed
	hosts  map[string]*brokeredHost
	closed bool
}

// brokeredHost is the connection of a virtual host.
type brokeredHost struct {
	turn chan struct{}       // who has it may use conn; capacity 1
	conn *amqp091.Connection // nil before the first use
}

// NewBrokered returns a topology that connects by dial.
func NewBrokered(dial func(vhost string) (*amqp091.Connection, error)) *Brokered {
	return &Brokered{dial: dial, hosts: map[string]*brokeredHost{}}
}

// Attach implements Topology.
func (b *Brokered) Attach(ctx context.Context, vhost, exchange string) error {
	return b.do(ctx, vhost, func(conn *amqp091.Connection) error {
		return topology.Attach(conn, exchange)
	})
}

// Discard implements Topology.
func (b *Brokered) Discard(ctx context.Context, vhost, exchange string) error {
	return b.do(ctx, vhost, func(conn *amqp091.Connection) error {
		return topology.Discard(conn, exchange)
	})
}

// IsDelayed implements Topology.
func (b *Brokered) IsDelayed(ctx context.Context, vhost, exchange string) (isDelayed bool, err error) {
	err = b.do(ctx, vhost, func(conn *amqp091.Connection) (err error) {
		if isDelayed, err = topology.IsDelayed(conn, exchange); isDelayed {
			// Somebody else's exchange may have such a name.
			isDelayed, err = topology.HasExchange(conn, exchange)
		}
		return err
	})
	return isDelayed && err == nil, err
}

// do runs f on the connection of a virtual host. The client library knows no contexts: if ctx ends
// first, the connection does, and f with it.
func (b *Brokered) do(ctx context.Context, vhost string, f func(*amqp091.Connection) error) error {
	h, err := b.host(vhost)
	if err != nil {
		return err
	}
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for the relay's connection: %w", ctx.Err())
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-h.turn }()
		if h.conn == nil || h.conn.IsClosed() {
			if h.conn, err = b.dial(vhost); err != nil {
				h.conn = nil
				done <- fmt.Errorf("connect the relay: %w", err)
				return
			}
		}
		stop := context.AfterFunc(ctx, func() { _ = h.conn.Close() })
		err := f(h.conn)
		stop() // before the caller goes on and ends ctx
		done <- err
	}()
	select {
	case err := <-done:
		return asSaid(err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Brokered) host(vhost string) (*brokeredHost, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	h := b.hosts[vhost]
	if h == nil {
		h = &brokeredHost{turn: make(chan struct{}, 1)}
		b.hosts[vhost] = h
	}
	return h, nil
}

// Close ends the connections, after what is under way on them.
func (b *Brokered) Close() error {
	b.mu.Lock()
	b.closed = true
	hosts := b.hosts
	b.hosts = nil
	b.mu.Unlock()
	var all []error
	for _, h := range hosts {
		h.turn <- struct{}{} // for good
		if h.conn != nil && !h.conn.IsClosed() {
			all = append(all, h.conn.Close())
		}
	}
	return errors.Join(all...)
}

// asSaid makes of what the broker has said to the relay what it would have said to the client.
func asSaid(err error) error {
	var said *amqp091.Error
	if !errors.As(err, &said) || !said.Server {
		return err
	}
	code := uint16(said.Code)
	return &amqp.Error{Code: code, Text: strings.TrimPrefix(said.Reason, amqp.CodeName(code)+" - ")}
}
