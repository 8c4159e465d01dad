//go:build !race

package server

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// Not parallel: testing.AllocsPerRun counts the whole process.

// TestMessageAllocatesNothing takes messages the whole way, from frames through
// the broker into the output of a consumer, with confirm and ack.
func TestMessageAllocatesNothing(t *testing.T) { //nolint:paralleltest // see above
	for _, tt := range []struct {
		name    string
		durable bool
		props   amqp.Properties
	}{
		{"transient", false, amqp.Properties{}},
		{"persistent", true, persistent()},
	} {
		t.Run(tt.name, func(t *testing.T) { //nolint:paralleltest // see above
			c := newFrameConn(t)
			c.feed(wire.AppendMethod(nil, 1, &wire.ChannelOpen{}))
			c.feed(wire.AppendMethod(nil, 1, &wire.ConfirmSelect{}))
			c.feed(wire.AppendMethod(nil, 1, &wire.QueueDeclare{Queue: "q", Durable: tt.durable}))
			c.feed(wire.AppendMethod(nil, 1, &wire.BasicConsume{Queue: "q"}))
			message := publishes(1, "q", tt.props)
			tag := uint64(0)
			var ack []byte
			one := func() {
				for c.out.pending.Load() > 100_000 {
					runtime.Gosched() // else the consumer has no credit
				}
				c.feed(message)
				tag++
				ack = wire.AppendAck(ack[:0], 1, tag, false)
				c.feed(ack)
				c.flush()
			}
			for range 5000 {
				one() // let buffers find their size
			}
			if n := testing.AllocsPerRun(5000, one); n >= 1 {
				t.Errorf("%v allocations per message, want 0", n)
			}
			if got := c.tally.delivered.Load(); got != tag {
				t.Errorf("delivered %d of %d", got, tag)
			}
		})
	}
}

// frameConn is an open connection without a socket: frames are handed to it, and
// what it says is thrown away.
type frameConn struct {
	*conn
	t   *testing.T
	src bytes.Reader
	in  *wire.Reader
}

func newFrameConn(t *testing.T) *frameConn {
	t.Helper()
	s, err := New(Config{Broker: newTestBroker(t), Authenticator: panicAuth{}})
	if err != nil {
		t.Fatal(err)
	}
	c := &frameConn{t: t, conn: newConn(s, newSink())}
	c.in = wire.NewReader(&c.src, 0)
	c.peer.channelMax, c.peer.frameMax = 1, 131072
	c.phase.Store(int32(phaseOpen))
	if c.session, err = s.cfg.Broker.Connect("/", "guest", nil); err != nil {
		t.Fatal(err)
	}
	go c.write()
	t.Cleanup(func() {
		c.release()
		c.kill()
		c.out.finish(c.since)
		<-c.written
	})
	return c
}

// feed handles all frames in b.
func (c *frameConn) feed(b []byte) {
	c.src.Reset(b)
	for {
		f, err := c.in.Next()
		if err == io.EOF {
			return
		}
		if err == nil {
			_, err = c.handle(f)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// sink is a connection that takes everything.
type sink struct{ net.Conn }

func newSink() sink {
	c, _ := net.Pipe()
	return sink{c}
}

func (sink) Write(b []byte) (int, error) { return len(b), nil }
