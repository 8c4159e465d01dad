package server

import (
	"io"
	"net"
	"testing"

	"github.com/duepost/duepost/internal/wire"
)

// FuzzConnection sends octets to a connection with an open channel, a queue and a
// consumer. Whatever they are, nothing panics and the connection ends.
func FuzzConnection(f *testing.F) {
	publish := wire.AppendMethod(nil, 1, &wire.BasicPublish{RoutingKey: []byte("fuzz")})
	whole := wire.AppendContent(publish, 1, []byte{0, 0}, []byte("body"), 0)
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(wire.AppendAck(whole, 1, 1, false))
	f.Add(wire.AppendMethod(nil, 1, &wire.BasicNack{Multiple: true, Requeue: true}))
	f.Add(wire.AppendMethod(nil, 1, &wire.TxSelect{}))
	f.Add(wire.AppendMethod(whole, 1, &wire.ChannelClose{}))
	f.Add(wire.AppendMethod(nil, 0, &wire.ConnectionClose{}))
	f.Add(wire.AppendMethod(nil, 1, &wire.QueueDelete{Queue: "fuzz"}))
	for _, tt := range badInputs() {
		rec := &recorder{}
		tt.play(&script{t: &testing.T{}, nc: rec, frames: openedChannels()})
		f.Add(rec.sent)
	}
	s, err := New(Config{Broker: newTestBroker(f), Authenticator: panicAuth{}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	hello := wire.AppendMethod([]byte(wire.ProtocolHeader), 0, &wire.ConnectionStartOk{
		Mechanism: "PLAIN", Response: "\x00guest\x00guest",
	})
	hello = wire.AppendMethod(hello, 0, &wire.ConnectionTuneOk{ChannelMax: 10, FrameMax: 4096})
	hello = wire.AppendMethod(hello, 0, &wire.ConnectionOpen{VirtualHost: "/"})
	hello = wire.AppendMethod(hello, 1, &wire.ChannelOpen{})
	hello = wire.AppendMethod(hello, 1, &wire.QueueDeclare{Queue: "fuzz", AutoDelete: true})
	hello = wire.AppendMethod(hello, 1, &wire.BasicConsume{Queue: "fuzz"})
	f.Fuzz(func(t *testing.T, input []byte) {
		ours, theirs := net.Pipe()
		ended := make(chan struct{})
		go func() {
			s.ServeConn(ours)
			close(ended)
		}()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		_, _ = theirs.Write(hello)
		_, _ = theirs.Write(input)
		theirs.Close()
		<-ended
		if n := s.Stats().Panics; n != 0 {
			t.Fatalf("%d panics", n)
		}
	})
}

// recorder is a connection that keeps what is written.
type recorder struct {
	net.Conn
	sent []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.sent = append(r.sent, b...)
	return len(b), nil
}

// openedChannels answers a script that opens a channel.
func openedChannels() chan wire.Frame {
	frames := make(chan wire.Frame, 1)
	m := wire.AppendMethod(nil, 3, &wire.ChannelOpenOk{})
	frames <- wire.Frame{Type: wire.FrameMethod, Channel: 3, Payload: m[7 : len(m)-1]}
	return frames
}
