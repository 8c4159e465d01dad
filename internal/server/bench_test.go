package server

import (
	"bufio"
	"bytes"
	"net"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// rawClient is a client that costs next to nothing, so that a benchmark measures
// the server: it writes prepared octets and reads frames without looking into
// them.
type rawClient struct {
	b  *testing.B
	nc net.Conn
	rd *wire.Reader
}

func dialRaw(b *testing.B, addr string) *rawClient {
	b.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { nc.Close() })
	c := &rawClient{b: b, nc: nc, rd: wire.NewReader(bufio.NewReaderSize(nc, 256<<10), 0)}
	hello := wire.AppendMethod([]byte(wire.ProtocolHeader), 0, &wire.ConnectionStartOk{
		Mechanism: "PLAIN", Response: "\x00guest\x00guest",
	})
	hello = wire.AppendMethod(hello, 0, &wire.ConnectionTuneOk{ChannelMax: 10, FrameMax: 131072})
	hello = wire.AppendMethod(hello, 0, &wire.ConnectionOpen{VirtualHost: "/"})
	hello = wire.AppendMethod(hello, 1, &wire.ChannelOpen{})
	c.write(hello)
	c.await(wire.ChannelOpenOkID)
	return c
}

func (c *rawClient) write(p []byte) {
	if _, err := c.nc.Write(p); err != nil {
		c.b.Error(err)
	}
}

func (c *rawClient) call(m wire.Method, reply wire.MethodID) {
	c.write(wire.AppendMethod(nil, 1, m))
	c.await(reply)
}

// await reads frames until a method frame of that id and returns its payload.
func (c *rawClient) await(id wire.MethodID) []byte {
	for {
		f, err := c.rd.Next()
		if err != nil {
			c.b.Fatal(err)
		}
		if f.Type != wire.FrameMethod {
			continue
		}
		if got, _, err := wire.CutMethodID(f.Payload); err != nil || got == id {
			return f.Payload
		}
	}
}

// publishes returns n publishes of 256 octets as they go over the wire.
func publishes(n int, queue string, props amqp.Properties) []byte {
	one := wire.AppendMethod(nil, 1, &wire.BasicPublish{RoutingKey: []byte(queue)})
	one = wire.AppendContent(one, 1, props.Append(nil), make([]byte, 256), 0)
	return bytes.Repeat(one, n)
}

// BenchmarkTransient sends messages through a queue to a consumer without acks.
func BenchmarkTransient(b *testing.B) {
	s := benchServer(b)
	pub, con := dialRaw(b, s), dialRaw(b, s)
	con.call(&wire.QueueDeclare{Queue: "q"}, wire.QueueDeclareOkID)
	con.call(&wire.BasicConsume{Queue: "q", NoAck: true}, wire.BasicConsumeOkID)
	const batch = 100
	block := publishes(batch, "q", amqp.Properties{})
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		for range b.N/batch + 1 {
			pub.write(block)
		}
	}()
	for range b.N {
		con.await(wire.BasicDeliverID)
	}
}

// BenchmarkPersistent sends durable messages with confirms to a consumer that
// acks every hundredth.
func BenchmarkPersistent(b *testing.B) {
	s := benchServer(b)
	pub, con := dialRaw(b, s), dialRaw(b, s)
	con.call(&wire.QueueDeclare{Queue: "q", Durable: true}, wire.QueueDeclareOkID)
	con.call(&wire.BasicQos{PrefetchCount: 2000}, wire.BasicQosOkID)
	con.call(&wire.BasicConsume{Queue: "q"}, wire.BasicConsumeOkID)
	pub.call(&wire.ConfirmSelect{}, wire.ConfirmSelectOkID)
	const batch, window = 100, 1000
	block := publishes(batch, "q", persistent())
	confirmed := make(chan uint64, 1<<16)
	go func() {
		for {
			f, err := pub.rd.Next()
			if err != nil {
				return
			}
			var m wire.BasicAck
			if id, args, _ := wire.CutMethodID(f.Payload); id != wire.BasicAckID || m.Decode(args) != nil {
				b.Errorf("got %s instead of a confirm", id)
				return
			}
			confirmed <- m.DeliveryTag
		}
	}()
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		sent, acked := 0, uint64(0)
		for sent < b.N {
			for sent-int(acked) > window-batch {
				acked = max(acked, <-confirmed)
			}
			pub.write(block)
			sent += batch
		}
	}()
	for n := range b.N {
		con.await(wire.BasicDeliverID)
		if n%100 == 99 {
			con.write(wire.AppendAck(nil, 1, uint64(n+1), true))
		}
	}
}

func benchServer(b *testing.B) (addr string) {
	b.Helper()
	s, err := New(Config{Broker: newTestBroker(b), Authenticator: panicAuth{}})
	if err != nil {
		b.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = s.Serve(ln) }()
	b.Cleanup(func() { s.Close() })
	return ln.Addr().String()
}
