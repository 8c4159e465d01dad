package main

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/duepost/duepost/internal/wire"
)

// frameRules are mistakes below what a client library does.
func frameRules() []rule {
	// after sends bytes on an open channel 1.
	after := func(b func() []byte) func(*probe) {
		return func(p *probe) {
			r := p.raw()
			r.bytes(b())
			p.note("answer", "%s", r.ending())
		}
	}
	method := func(channel uint16, m wire.Method) func() []byte {
		return func() []byte { return wire.AppendMethod(nil, channel, m) }
	}
	frame := func(kind uint8, channel uint16, payload ...byte) func() []byte {
		return func() []byte { return wire.AppendFrame(nil, kind, channel, payload) }
	}
	publish := wire.AppendMethod(nil, 1, &wire.BasicPublish{RoutingKey: []byte("q")})
	header := func(class uint16, size uint64) []byte {
		return wire.AppendContentHeader(nil, 1, class, size, []byte{0, 0})
	}
	join := func(parts ...[]byte) func() []byte {
		var all []byte
		for _, part := range parts {
			all = append(all, part...)
		}
		return func() []byte { return all }
	}
	broken := wire.AppendMethod(nil, 1, &wire.BasicGet{Queue: "q"})
	broken[len(broken)-1] = 0
	rules := []rule{
		{"frame: wrong end", after(join(broken))},
		{"frame: unknown type", after(frame(7, 1, 0))},
		{"frame: method that is unknown", after(frame(wire.FrameMethod, 1, 0, 60, 0, 199))},
		{"frame: class that is unknown", after(frame(wire.FrameMethod, 1, 0, 199, 0, 10))},
		{"frame: method cut short", after(frame(wire.FrameMethod, 1, 0, 60, 0, 70, 0))},
		{"frame: method of the server", after(method(1, &wire.QueueDeclareOk{}))},
		{"frame: method of the connection on a channel", after(method(1, &wire.ConnectionTuneOk{}))},
		{"frame: method of a channel on channel 0", after(method(0, &wire.BasicGet{Queue: "q"}))},
		{"frame: channel that is not open", after(method(2, &wire.BasicGet{Queue: "q"}))},
		{"frame: channel that is open already", after(method(1, &wire.ChannelOpen{}))},
		{"frame: channel above channel-max", after(method(101, &wire.ChannelOpen{}))},
		{"frame: header without a publish", after(join(header(60, 1)))},
		{"frame: body without a publish", after(frame(wire.FrameBody, 1, 'x'))},
		{"frame: method instead of a header", after(join(publish, wire.AppendMethod(nil, 1, &wire.BasicGet{Queue: "q"})))},
		{"frame: method instead of a body", after(join(publish, header(60, 3), wire.AppendMethod(nil, 1, &wire.BasicGet{Queue: "q"})))},
		{"frame: header of another class", after(join(publish, header(50, 1)))},
		{"frame: more body than announced", after(join(publish, header(60, 1), wire.AppendFrame(nil, wire.FrameBody, 1, []byte("too long"))))},
		{"frame: above frame-max", after(join(publish, header(60, 20000), wire.AppendFrame(nil, wire.FrameBody, 1, make([]byte, 20000))))},
		{"frame: message above the limit", after(join(publish, header(60, 1<<40)))},
		{"frame: heartbeat on a channel", after(frame(wire.FrameHeartbeat, 1))},
		{"frame: access.request", after(method(1, &wire.AccessRequest{Realm: "/data"}))},
		{"frame: second connection.open", after(method(0, &wire.ConnectionOpen{VirtualHost: "/"}))},
		{"frame: table with an unknown type", after(badTable)},
	}
	return append(rules, handshakeRules()...)
}

// badTable is a queue.declare with an argument of a type that is none.
func badTable() []byte {
	return wire.AppendMethod(nil, 1, &wire.QueueDeclare{Queue: "q", Arguments: []byte("\x01a?x")})
}

// handshakeRules are about how a connection begins.
func handshakeRules() []rule {
	// at goes as far as tune or open and then does something.
	start := func(p *probe) *raw {
		r := p.connect()
		r.bytes([]byte(wire.ProtocolHeader))
		r.expect(wire.ConnectionStartID)
		return r
	}
	login := func(p *probe) *raw {
		r := start(p)
		r.methods(0, r.startOk("PLAIN", "\x00guest\x00guest"))
		r.expect(wire.ConnectionTuneID)
		return r
	}
	tuned := func(tune *wire.ConnectionTuneOk, vhost string) func(*probe) {
		return func(p *probe) {
			r := login(p)
			r.methods(0, tune, &wire.ConnectionOpen{VirtualHost: vhost})
			p.note("answer", "%s", r.opening())
		}
	}
	sasl := func(mechanism, response string) func(*probe) {
		return func(p *probe) {
			r := start(p)
			r.methods(0, r.startOk(mechanism, response))
			p.note("answer", "%s", r.opening())
		}
	}
	return []rule{
		{"handshake: other protocol", func(p *probe) {
			for _, text := range []string{"AMQP\x00\x01\x00\x00", "GET / HTTP/1.1\r\n\r\n", "AMQP\x01\x01\x09\x01"} {
				r := p.connect()
				r.bytes([]byte(text))
				answer := make([]byte, 8)
				n, _ := r.conn.Read(answer)
				p.note(fmt.Sprintf("%q", text), "%q", answer[:n])
			}
		}},
		{"handshake: what is offered", func(p *probe) {
			r := p.connect()
			r.bytes([]byte(wire.ProtocolHeader))
			s := r.expect(wire.ConnectionStartID).(*wire.ConnectionStart)
			p.note("version", "%d.%d", s.VersionMajor, s.VersionMinor)
			p.note("mechanisms", "%s", strings.Join(sorted(strings.Fields(s.Mechanisms)), " "))
			p.note("locales", "%s", s.Locales)
			if v, ok := s.ServerProperties.Lookup("capabilities"); ok {
				names, _ := v.Table()
				for name, value := range names.All() {
					p.note("capability "+string(name), "%s", ordered(value))
				}
			}
			r.methods(0, r.startOk("PLAIN", "\x00guest\x00guest"))
			tune := r.expect(wire.ConnectionTuneID).(*wire.ConnectionTune)
			p.note("tune", "channel-max %d, frame-max %d, heartbeat %d", tune.ChannelMax, tune.FrameMax, tune.Heartbeat)
		}},
		{"handshake: wrong password", sasl("PLAIN", "\x00guest\x00wrong")},
		{"handshake: no such user", sasl("PLAIN", "\x00nobody\x00wrong")},
		{"handshake: unknown mechanism", sasl("NONSENSE", "")},
		{"handshake: bad response", sasl("PLAIN", "guest")},
		{"handshake: AMQPLAIN", sasl("AMQPLAIN", "\x05LOGINS\x00\x00\x00\x05guest\x08PASSWORDS\x00\x00\x00\x05guest")},
		{"handshake: no such virtual host", tuned(&wire.ConnectionTuneOk{ChannelMax: 100, FrameMax: 8192}, "nowhere")},
		{"handshake: frame-max too high", tuned(&wire.ConnectionTuneOk{ChannelMax: 100, FrameMax: 1 << 30}, "/")},
		{"handshake: frame-max too low", tuned(&wire.ConnectionTuneOk{ChannelMax: 100, FrameMax: 100}, "/")},
		{"handshake: channel-max too high", tuned(&wire.ConnectionTuneOk{ChannelMax: 65535, FrameMax: 8192}, "/")},
		{"handshake: method before open", func(p *probe) {
			r := login(p)
			r.methods(0, &wire.ConnectionTuneOk{ChannelMax: 100, FrameMax: 8192})
			r.methods(1, &wire.ChannelOpen{})
			p.note("answer", "%s", r.opening())
		}},
		{"handshake: frame above 4096 before tune", func(p *probe) {
			r := start(p)
			frame := make([]byte, 7, 6000)
			frame[0] = wire.FrameMethod
			binary.BigEndian.PutUint32(frame[3:], 5000)
			r.bytes(append(frame[:7], make([]byte, 5001)...))
			p.note("answer", "%s", r.opening())
		}},
	}
}
