package server

import (
	"errors"
	"log/slog"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// fail is where an error becomes a close method: channel.close if that is the
// error's scope and it arose on a channel, connection.close otherwise. An error
// that is none of the protocol's is 541 and its text is not for clients. It
// returns an error if the connection is over. [amqp 1.2]
func (c *conn) fail(ch *channel, err error) error {
	if errors.Is(err, errClosing) || errors.Is(err, errAnswered) || errors.Is(err, errDone) {
		return err
	}
	var e *amqp.Error
	if !errors.As(err, &e) {
		c.note(eventConnectionError, slog.LevelError, "closing connection: internal error",
			slog.Any("err", err))
		e = &amqp.Error{Code: amqp.InternalError, Text: "internal error"}
	} else if ch != nil && e.Scope() == amqp.ScopeChannel {
		level := slog.LevelWarn
		if errors.As(err, new(*absentError)) {
			level = slog.LevelDebug
		}
		c.note(eventChannelError, level, "closing channel: error",
			slog.Int("chan", int(ch.number)), slog.Any("err", err))
		ch.fail(e)
		return nil
	} else {
		c.note(eventConnectionError, slog.LevelWarn, "closing connection: error", slog.Any("err", err))
	}
	c.release() // before the client is told, as in RabbitMQ
	c.beginClose(e)
	return errClosing
}

// absentError is the answer to a client that asked whether something exists, with a
// passive declare: channel.close like any error, but nothing to warn of.
type absentError struct{ error }

func (e *absentError) Unwrap() error { return e.error }

// passively marks the answer no to a passive declare.
func passively(passive bool, err error) error {
	var e *amqp.Error
	if passive && errors.As(err, &e) && e.Code == amqp.NotFound {
		return &absentError{err}
	}
	return err
}

// beginClose sends connection.close, after which nothing else is sent, and gives
// the client the close timeout to answer. A client in the handshake is told only
// if it can be expected to understand. Any goroutine; the reader notices by the
// phase.
func (c *conn) beginClose(err error) {
	old := phase(c.phase.Swap(int32(phaseClosing)))
	if old == phaseClosing {
		return
	}
	var e *amqp.Error
	if !errors.As(err, &e) {
		e = &amqp.Error{Code: amqp.InternalError, Text: "internal error"}
	}
	c.out.endSealed(wire.AppendMethod(c.out.begin(), 0, &wire.ConnectionClose{
		ReplyCode: e.Code, ReplyText: e.ReplyText(), ClassID: e.Class, MethodID: e.Method,
	}))
	_ = c.nc.SetReadDeadline(time.Now().Add(c.server.cfg.CloseTimeout))
	c.wakeReader()
}

// force closes the connection on the operator's behalf. A client that has not got
// through the handshake is just cut off. Any goroutine.
func (c *conn) force(reason string) {
	if phase(c.phase.Load()) == phaseHandshake {
		c.kill()
		return
	}
	c.beginClose(amqp.Errorf(amqp.ConnectionForced, "%s", reason))
}
