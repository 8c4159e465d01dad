package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// longEnough is what a broker may take to end a connection because of another channel.
const longEnough = 500 * time.Millisecond

// raw is a connection without a client library: it can make mistakes that a library does not make,
// and it sees headers in the order in which they came.
type raw struct {
	p    *probe
	conn net.Conn
	r    *wire.Reader
}

// connect opens a connection on which nothing was sent.
func (p *probe) connect() *raw {
	conn, err := net.Dial("tcp", p.b.AMQPAddr)
	p.must(err)
	p.must(conn.SetDeadline(time.Now().Add(awaitTimeout)))
	p.ending = append(p.ending, func() { conn.Close() })
	return &raw{p, conn, wire.NewReader(conn, 0)}
}

// raw opens a connection and channel 1.
func (p *probe) raw() *raw {
	r := p.connect()
	r.login("/")
	r.methods(1, &wire.ChannelOpen{})
	r.expect(wire.ChannelOpenOkID)
	return r
}

// login goes through the handshake.
func (r *raw) login(vhost string) {
	r.bytes([]byte(wire.ProtocolHeader))
	r.expect(wire.ConnectionStartID)
	r.methods(0, r.startOk("PLAIN", "\x00guest\x00guest"))
	r.expect(wire.ConnectionTuneID)
	r.methods(0, &wire.ConnectionTuneOk{ChannelMax: 100, FrameMax: 8192},
		&wire.ConnectionOpen{VirtualHost: vhost})
	r.expect(wire.ConnectionOpenOkID)
}

// startOk is what a client with RabbitMQ's usual abilities says.
func (r *raw) startOk(mechanism, response string) *wire.ConnectionStartOk {
	properties, err := amqp.AppendField(nil, "capabilities", amqp.Table{
		"authentication_failure_close": true, "basic.nack": true, "consumer_cancel_notify": true})
	r.p.must(err)
	return &wire.ConnectionStartOk{ClientProperties: properties, Mechanism: mechanism, Response: response, Locale: "en_US"}
}

func (r *raw) bytes(b []byte) {
	_, err := r.conn.Write(b)
	r.p.must(err)
}

func (r *raw) methods(channel uint16, methods ...wire.Method) {
	var b []byte
	for _, m := range methods {
		b = wire.AppendMethod(b, channel, m)
	}
	r.bytes(b)
}

// publish sends a message to a queue, with headers in their order.
func (r *raw) publish(queue string, headers amqp.RawTable, body string) {
	props := amqp.Properties{DeliveryMode: amqp.Transient}
	props.Set(amqp.FlagDeliveryMode)
	if headers != nil {
		props.SetHeaders(headers)
	}
	b := wire.AppendMethod(nil, 1, &wire.BasicPublish{RoutingKey: []byte(queue)})
	r.bytes(wire.AppendContent(b, 1, props.Append(nil), []byte(body), 0))
}

// method reads the next method, whatever it is.
func (r *raw) method() (wire.Method, error) {
	for {
		f, err := r.r.Next()
		if err != nil {
			return nil, err
		}
		if f.Type == wire.FrameMethod {
			return wire.Parse(bytes.Clone(f.Payload))
		}
	}
}

// expect reads a method that must come.
func (r *raw) expect(id wire.MethodID) wire.Method {
	m, err := r.method()
	r.p.must(err)
	if m.ID() != id {
		r.p.fatal("got %+v, want %v", m, id)
	}
	return m
}

// ending reads to the end of the channel or of the connection, or to the answer to a passive
// declaration that is sent for that, and tells which it was.
func (r *raw) ending() string {
	r.p.pause(longEnough)
	r.conn.Write(wire.AppendMethod(nil, 1, &wire.QueueDeclare{Queue: "ending", Passive: true}))
	for {
		m, err := r.method()
		var netErr net.Error
		switch m := m.(type) {
		case nil:
			if errors.As(err, &netErr) && netErr.Timeout() {
				return "silence"
			}
			return "closed without a word"
		case *wire.ChannelClose:
			if strings.Contains(m.ReplyText, "'ending'") {
				return "ok"
			}
			return fmt.Sprintf("%d %s (channel, %d.%d)", m.ReplyCode, m.ReplyText, m.ClassID, m.MethodID)
		case *wire.ConnectionClose:
			return fmt.Sprintf("%d %s (connection, %d.%d)", m.ReplyCode, m.ReplyText, m.ClassID, m.MethodID)
		}
	}
}

// headers gets a message as soon as there is one and returns its headers as they came.
func (r *raw) headers(queue string) []string {
	var found []string
	if !r.p.eventually(func() bool {
		r.methods(1, &wire.BasicGet{Queue: queue, NoAck: true})
		m, err := r.method()
		r.p.must(err)
		if m.ID() != wire.BasicGetOkID {
			return false
		}
		f, err := r.r.Next()
		r.p.must(err)
		var header wire.ContentHeader
		r.p.must(header.Decode(f.Payload))
		var props amqp.Properties
		r.p.must(props.Decode(header.Properties))
		for key, v := range props.Headers.All() {
			found = append(found, string(key)+" "+ordered(v))
		}
		if props.Has(amqp.FlagExpiration) {
			found = append(found, "expiration is there")
		}
		for read := uint64(0); read < header.BodySize; {
			f, err := r.r.Next()
			r.p.must(err)
			read += uint64(len(f.Payload))
		}
		return true
	}) {
		r.p.fatal("no message in %s within %v", queue, awaitTimeout)
	}
	return found
}

// ordered is a field value with its type; pairs of tables in their order. A time has no value that
// is the same twice.
func ordered(v amqp.RawValue) string {
	var parts []string
	if t, ok := v.Table(); ok {
		for key, value := range t.All() {
			parts = append(parts, string(key)+"="+ordered(value))
		}
		return "{" + strings.Join(parts, " ") + "}"
	}
	if v.Type == amqp.TypeArray {
		for value := range v.Elements() {
			parts = append(parts, ordered(value))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	if _, ok := v.Time(); ok {
		return "timestamp"
	}
	return fmt.Sprintf("%s:%v", amqp.TypeName(v.Type), v.Decode())
}

// sorted is the lines in an order that does not depend on the broker.
func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}

// opening reads the answer to the last step of a handshake.
func (r *raw) opening() string {
	m, err := r.method()
	switch m := m.(type) {
	case nil:
		var netErr net.Error
		if errors.As(err, &netErr) && netErr.Timeout() {
			return "silence"
		}
		return "closed without a word"
	case *wire.ConnectionClose:
		return fmt.Sprintf("%d %s (%d.%d)", m.ReplyCode, m.ReplyText, m.ClassID, m.MethodID)
	case *wire.ConnectionTune:
		return "tune"
	case *wire.ConnectionOpenOk:
		return "open"
	}
	return fmt.Sprintf("%T", m)
}

// consume starts a consumer with a tag that a library would not let be used twice.
func (r *raw) consume(queue, tag string) {
	r.methods(1, &wire.BasicConsume{Queue: queue, ConsumerTag: tag})
}
