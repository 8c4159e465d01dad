package duepost

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ask runs f with a channel of its own on the present connection, and again on the next if that
// ends meanwhile. f may ruin the channel, and may run once more while it still runs.
func (l *link) ask(ctx context.Context, f func(*amqp.Channel) error) error {
	for {
		s, err := l.session(ctx)
		if err != nil {
			return err
		}
		if err = s.ask(ctx, f); errors.Is(err, errHeldBack) {
			err = l.askElsewhere(ctx, f)
		}
		if !s.isEnd(ctx, err) {
			return namePermission(err)
		}
	}
}

// namePermission makes the broker's refusal an ErrNotPermitted.
func namePermission(err error) error {
	if hasCode(err, amqp.AccessRefused) {
		return fmt.Errorf("%w: %w", ErrNotPermitted, err)
	}
	return err
}

// errHeldBack: a broker that takes no messages reads nothing from the connection on which they
// come. [rmq alarms]
var errHeldBack = errors.New("connection is held back")

// ask runs f with a channel of its own, until ctx ends or the connection is held back.
func (s *session) ask(ctx context.Context, f func(*amqp.Channel) error) error {
	now := s.gate.now.Load()
	if now.shut {
		return errHeldBack
	}
	done := make(chan error, 1)
	go func() { done <- s.scratch(f) }()
	select {
	case err := <-done:
		return err
	case <-now.changed:
		return errHeldBack
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// scratch runs f with a channel of its own, which f may ruin.
func (s *session) scratch(f func(*amqp.Channel) error) error { return scratch(s.conn, f) }

func scratch(conn *amqp.Connection, f func(*amqp.Channel) error) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	err = f(ch)
	_ = ch.Close() // ended already if f ruined it
	return err
}

// askElsewhere runs f on a connection made for it.
func (l *link) askElsewhere(ctx context.Context, f func(*amqp.Channel) error) error {
	conn, err := l.dialer.round(ctx, "control")
	if err != nil {
		return fmt.Errorf("connect to declare: %w", err)
	}
	defer conn.Close()
	return scratch(conn, f)
}
