package server

import (
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// end says why the reader stopped and, where the client is owed an answer, waits
// for it to take it.
func (c *conn) end(err error) {
	switch {
	case errors.Is(err, errClosing):
		c.release()
		c.linger(true)
	case errors.Is(err, errAnswered):
		// It is for the client to close the socket: were we first, it could see the
		// end of the stream before it has taken in close-ok, and report an error.
		c.linger(false)
	case isProtocolError(err):
		// The stream is out of step or the handshake went wrong: nothing that comes
		// now can be understood.
		c.noteFrameError(err)
		c.beginClose(err)
		c.release()
		c.linger(false)
	case phase(c.phase.Load()) == phaseHandshake:
		c.noteHandshake(err)
	case phase(c.phase.Load()) == phaseOpen && c.kill():
		c.noteAbruptClose(err)
	}
}

func (c *conn) noteAbruptClose(err error) {
	c.note(eventAbruptClose, slog.LevelWarn, "client closed the connection without a close method",
		slog.Any("err", err))
}

func isProtocolError(err error) bool {
	var e *amqp.Error
	return errors.As(err, &e)
}

func (c *conn) noteFrameError(err error) {
	ev := eventConnectionError
	var e *amqp.Error
	if errors.As(err, &e) && e.Code == amqp.FrameError {
		ev = eventFrameError
	}
	c.note(ev, slog.LevelWarn, "closing connection: protocol error", slog.Any("err", err))
}

func (c *conn) isKilled() bool {
	select {
	case <-c.killed:
		return true
	default:
		return false
	}
}

// linger reads on after a close method was sent, so that the client gets to see
// it: a socket closed with unread input makes the kernel throw away what is on
// its way out. It ends with close-ok, with the end of the input, or after the
// close timeout.
func (c *conn) linger(framed bool) {
	_ = c.nc.SetReadDeadline(time.Now().Add(c.server.cfg.CloseTimeout))
	for framed {
		f, err := c.rd.Next()
		if err != nil {
			if !isProtocolError(err) {
				return
			}
			break
		}
		if !c.stillOpen(f) {
			return
		}
	}
	_, _ = io.Copy(io.Discard, c.nc)
}

// hangUp ends our side of the conversation at once, once what was said is
// written, and reads on so that the client gets to see it.
func (c *conn) hangUp() {
	c.out.finish(time.Now().Add(c.server.cfg.CloseTimeout))
	<-c.written
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		c.linger(false)
	}
}

// stillOpen answers the methods that count after a close method was sent. It
// returns false when the conversation is over. [amqp connection.close]
func (c *conn) stillOpen(f wire.Frame) bool {
	if f.Channel != 0 || f.Type != wire.FrameMethod {
		return true
	}
	id, _, err := wire.CutMethodID(f.Payload)
	switch {
	case err != nil || id == wire.ConnectionCloseOkID:
		return false
	case id == wire.ConnectionCloseID:
		c.out.endSealed(wire.AppendMethod(c.out.begin(), 0, &wire.ConnectionCloseOk{}))
	}
	return true
}

// release lets go of all the connection holds in the broker: channels with their
// consumers and unacknowledged deliveries, then exclusive queues.
func (c *conn) release() {
	c.watch.stop()
	for _, ch := range c.channels {
		ch.release()
	}
	c.mu.Lock()
	clear(c.channels)
	c.mu.Unlock()
	c.last, c.settling = nil, nil
	if c.session != nil {
		c.session.Close()
		c.session = nil
	}
}

// recoverPanic keeps a mistake in the handling of one connection from ending the
// others.
func (c *conn) recoverPanic() {
	r := recover()
	if r == nil {
		return
	}
	c.note(eventPanic, slog.LevelError, "closing connection: panic",
		slog.Any("err", r), slog.String("stack", string(debug.Stack())))
	c.beginClose(amqp.Errorf(amqp.InternalError, "internal error"))
}
