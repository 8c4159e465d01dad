package server

import (
	"bytes"
	"io"
	"net"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// script is a client made of frames: it sends what it is told to, in order or
// not, and expects answers.
type script struct {
	t      *testing.T
	nc     net.Conn
	frames chan wire.Frame // closed at the end of the input
	head   []byte          // what came before the first frame, if it was no frame
}

// newScript returns a script on an open connection that has said nothing yet.
func newScript(t *testing.T, nc net.Conn) *script {
	t.Helper()
	p := &script{t: t, nc: nc, frames: make(chan wire.Frame, 1<<16)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.listen()
	}()
	t.Cleanup(func() {
		nc.Close()
		<-done
	})
	return p
}

// listen takes in all that comes, so that the server never waits for us.
func (p *script) listen() {
	defer close(p.frames)
	var head [8]byte
	if _, err := io.ReadFull(p.nc, head[:]); err != nil {
		return
	}
	p.head = head[:]
	if bytes.HasPrefix(p.head, []byte("AMQP")) {
		return
	}
	rd := wire.NewReader(io.MultiReader(bytes.NewReader(head[:]), p.nc), 0)
	for {
		f, err := rd.Next()
		if err != nil {
			return
		}
		f.Payload = slices.Clone(f.Payload)
		p.frames <- f
	}
}

// write sends octets. That the server has hung up shows in what it answers.
func (p *script) write(b []byte) {
	_, _ = p.nc.Write(b)
}

func (p *script) send(channel uint16, methods ...wire.Method) {
	var b []byte
	for _, m := range methods {
		b = wire.AppendMethod(b, channel, m)
	}
	p.write(b)
}

// publish sends a whole publish.
func (p *script) publish(channel uint16, m *wire.BasicPublish, props amqp.Properties, body string) {
	b := wire.AppendMethod(nil, channel, m)
	p.write(wire.AppendContent(b, channel, props.Append(nil), []byte(body), 0))
}

// next returns the next frame that is no heartbeat; ok is false at the end of the
// input.
func (p *script) next() (f wire.Frame, ok bool) {
	p.t.Helper()
	for {
		select {
		case f, ok = <-p.frames:
			if !ok || f.Type != wire.FrameHeartbeat {
				return f, ok
			}
		case <-time.After(30 * time.Second):
			p.t.Fatal("nothing came for 30 s")
		}
	}
}

// expect decodes the next frame, which must be that method, into m.
func (p *script) expect(channel uint16, m wire.Method) {
	p.t.Helper()
	f, ok := p.next()
	if !ok {
		p.t.Fatalf("connection ended, expected %T", m)
	}
	if f.Type != wire.FrameMethod || f.Channel != channel {
		p.t.Fatalf("got frame of type %d on channel %d, expected %T on %d", f.Type, f.Channel, m, channel)
	}
	got, err := wire.Parse(f.Payload)
	if err != nil {
		p.t.Fatal(err)
	}
	if got.ID() != m.ID() {
		p.t.Fatalf("got %s %+v, expected %s", got.ID(), got, m.ID())
	}
	reflect.ValueOf(m).Elem().Set(reflect.ValueOf(got).Elem())
}

// expectContent reads a header and its body.
func (p *script) expectContent(channel uint16) (props amqp.Properties, body string) {
	p.t.Helper()
	f, ok := p.next()
	if !ok || f.Type != wire.FrameHeader || f.Channel != channel {
		p.t.Fatalf("got %+v, %v, expected a content header on channel %d", f, ok, channel)
	}
	var h wire.ContentHeader
	if err := h.Decode(f.Payload); err != nil {
		p.t.Fatal(err)
	}
	if err := props.Decode(h.Properties); err != nil {
		p.t.Fatal(err)
	}
	for uint64(len(body)) < h.BodySize {
		f, ok = p.next()
		if !ok || f.Type != wire.FrameBody || f.Channel != channel {
			p.t.Fatalf("got %+v, %v, expected a body frame on channel %d", f, ok, channel)
		}
		body += string(f.Payload)
	}
	return props, body
}

// expectEnd expects the server to hang up without another word.
func (p *script) expectEnd() {
	p.t.Helper()
	if f, ok := p.next(); ok {
		m, _ := wire.Parse(f.Payload)
		p.t.Fatalf("got frame of type %d on channel %d, %+v, expected the end", f.Type, f.Channel, m)
	}
}

// clientProperties are those of a client that understands everything.
func clientProperties(t *testing.T) amqp.RawTable {
	b, err := amqp.AppendTable(nil, amqp.Table{
		"connection_name": "script",
		"capabilities": amqp.Table{
			"connection.blocked":           true,
			"consumer_cancel_notify":       true,
			"authentication_failure_close": true,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b[4:]
}

// login does the handshake up to tune.
func (p *script) login() wire.ConnectionTune {
	p.t.Helper()
	p.write([]byte(wire.ProtocolHeader))
	p.expect(0, &wire.ConnectionStart{})
	p.send(0, &wire.ConnectionStartOk{
		ClientProperties: clientProperties(p.t),
		Mechanism:        "PLAIN",
		Response:         "\x00guest\x00guest",
		Locale:           "en_US",
	})
	var tune wire.ConnectionTune
	p.expect(0, &tune)
	return tune
}

// open does the whole handshake, with a heartbeat interval in seconds.
func (p *script) open(heartbeat uint16) *script {
	p.t.Helper()
	tune := p.login()
	p.send(0, &wire.ConnectionTuneOk{
		ChannelMax: tune.ChannelMax, FrameMax: tune.FrameMax, Heartbeat: heartbeat,
	}, &wire.ConnectionOpen{VirtualHost: "/"})
	p.expect(0, &wire.ConnectionOpenOk{})
	return p
}

// channel opens a channel.
func (p *script) channel(number uint16) *script {
	p.t.Helper()
	p.send(number, &wire.ChannelOpen{})
	p.expect(number, &wire.ChannelOpenOk{})
	return p
}

// declare makes a transient queue.
func (p *script) declare(channel uint16, queue string) {
	p.t.Helper()
	p.send(channel, &wire.QueueDeclare{Queue: queue})
	p.expect(channel, &wire.QueueDeclareOk{})
}

// close ends the connection in good order.
func (p *script) close() {
	p.t.Helper()
	p.send(0, &wire.ConnectionClose{ReplyCode: amqp.ReplySuccess})
	p.expect(0, &wire.ConnectionCloseOk{})
	p.nc.Close() // the client's part; the broker waits for it
}
