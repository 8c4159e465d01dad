package server

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// inBubble runs a test with virtual time. When it ends, every goroutine that a
// connection started must be gone, or synctest fails it.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe()
		p.write([]byte(wire.ProtocolHeader))
		var start wire.ConnectionStart
		p.expect(0, &start)
		if start.VersionMajor != 0 || start.VersionMinor != 9 || start.Locales != "en_US" {
			t.Errorf("start = %+v", start)
		}
		if start.Mechanisms != "PLAIN AMQPLAIN" {
			t.Errorf("mechanisms = %q", start.Mechanisms)
		}
		properties, err := start.ServerProperties.Decode()
		if err != nil {
			t.Fatal(err)
		}
		if properties["product"] != "Duepost" {
			t.Errorf("product = %v", properties["product"])
		}
		capabilities, _ := properties["capabilities"].(amqp.Table)
		for _, name := range []string{
			"publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify",
			"connection.blocked", "consumer_priorities", "authentication_failure_close", "per_consumer_qos", "direct_reply_to",
		} {
			if capabilities[name] != true {
				t.Errorf("capability %s = %v", name, capabilities[name])
			}
		}
		p.send(0, &wire.ConnectionStartOk{
			ClientProperties: clientProperties(t), Mechanism: "PLAIN", Response: "\x00guest\x00guest",
		})
		var tune wire.ConnectionTune
		p.expect(0, &tune)
		if tune.ChannelMax != 2047 || tune.FrameMax != 131072 || tune.Heartbeat != 60 {
			t.Errorf("tune = %+v", tune)
		}
		p.send(0, &wire.ConnectionTuneOk{ChannelMax: 10, FrameMax: 4096, Heartbeat: 0})
		p.send(0, &wire.ConnectionOpen{VirtualHost: "/"})
		p.expect(0, &wire.ConnectionOpenOk{})
		infos := s.Connections()
		if len(infos) != 1 {
			t.Fatalf("%d connections, want 1", len(infos))
		}
		i := infos[0]
		if i.User != "guest" || i.VHost != "/" || i.State != "running" || i.ProvidedName != "script" ||
			i.ChannelMax != 10 || i.FrameMax != 4096 || i.Mechanism != "PLAIN" {
			t.Errorf("info = %+v", i)
		}
		p.close()
	})
}

func TestAMQPLAIN(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		p := newTestServer(t).pipe()
		p.write([]byte(wire.ProtocolHeader))
		p.expect(0, &wire.ConnectionStart{})
		b, _ := amqp.AppendTable(nil, amqp.Table{"LOGIN": "guest", "PASSWORD": "guest"})
		p.send(0, &wire.ConnectionStartOk{Mechanism: "AMQPLAIN", Response: string(b[4:])})
		p.expect(0, &wire.ConnectionTune{})
	})
}

// TestBadHandshakes plays what can go wrong before a connection is open.
func TestBadHandshakes(t *testing.T) {
	t.Parallel()
	startOk := func(change func(*wire.ConnectionStartOk)) *wire.ConnectionStartOk {
		m := &wire.ConnectionStartOk{Mechanism: "PLAIN", Response: "\x00guest\x00guest",
			ClientProperties: clientProperties(t)}
		change(m)
		return m
	}
	started := func(p *script) {
		p.write([]byte(wire.ProtocolHeader))
		p.expect(0, &wire.ConnectionStart{})
	}
	tuned := func(ok wire.ConnectionTuneOk) func(p *script) {
		return func(p *script) {
			p.login()
			p.send(0, &ok)
		}
	}
	for _, tt := range []struct {
		name   string
		play   func(p *script)
		header bool // our protocol header is the answer
		code   uint16
		text   string
		count  func(Stats) uint64
	}{
		{name: "garbage", play: func(p *script) { p.write([]byte("GET / HTTP/1.1\r\n\r\n")) },
			header: true, count: func(s Stats) uint64 { return s.WrongHeaders }},
		{name: "AMQP 1.0", play: func(p *script) { p.write([]byte("AMQP\x00\x01\x00\x00")) },
			header: true, count: func(s Stats) uint64 { return s.WrongHeaders }},
		{name: "TLS", play: func(p *script) { p.write([]byte("\x16\x03\x01\x02\x00\x01\x00\x01")) },
			header: true, count: func(s Stats) uint64 { return s.WrongHeaders }},
		{name: "silence", play: func(*script) {},
			count: func(s Stats) uint64 { return s.HandshakeTimeouts }},
		{name: "silence after the header", play: started,
			count: func(s Stats) uint64 { return s.HandshakeTimeouts }},
		{name: "half a frame", play: func(p *script) { started(p); p.write([]byte{1, 0}) },
			count: func(s Stats) uint64 { return s.HandshakeTimeouts }},
		{name: "wrong frame end", play: func(p *script) {
			started(p)
			b := wire.AppendMethod(nil, 0, startOk(func(*wire.ConnectionStartOk) {}))
			b[len(b)-1] = 0
			p.write(b)
		}, code: amqp.FrameError, count: func(s Stats) uint64 { return s.FrameErrors }},
		{name: "huge frame", play: func(p *script) {
			started(p)
			p.write([]byte{1, 0, 0, 0xff, 0xff, 0xff, 0xff})
		}, code: amqp.FrameError, count: func(s Stats) uint64 { return s.FrameErrors }},
		{name: "another method", play: func(p *script) { started(p); p.send(0, &wire.ConnectionTuneOk{}) },
			code: amqp.ChannelError, text: "unexpected method in connection state starting",
			count: func(s Stats) uint64 { return s.ConnectionErrors }},
		{name: "a channel", play: func(p *script) { started(p); p.send(1, &wire.ChannelOpen{}) },
			code: amqp.UnexpectedFrame, count: func(s Stats) uint64 { return s.ConnectionErrors }},
		{name: "unknown mechanism", play: func(p *script) {
			started(p)
			p.send(0, startOk(func(m *wire.ConnectionStartOk) { m.Mechanism = "CRAM-MD5" }))
		}, code: amqp.CommandInvalid, text: "unknown authentication mechanism 'CRAM-MD5'",
			count: func(s Stats) uint64 { return s.ConnectionErrors }},
		{name: "wrong password", play: func(p *script) {
			started(p)
			p.send(0, startOk(func(m *wire.ConnectionStartOk) { m.Response = "\x00guest\x00wrong" }))
		}, code: amqp.AccessRefused, text: "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. " +
			"For details see the broker logfile.",
			count: func(s Stats) uint64 { return s.AuthRefused }},
		{name: "wrong password, client without the capability", play: func(p *script) {
			started(p)
			p.send(0, startOk(func(m *wire.ConnectionStartOk) {
				m.Response = "\x00guest\x00wrong"
				m.ClientProperties = nil
			}))
		}, count: func(s Stats) uint64 { return s.AuthRefused }},
		{name: "frame-max too low", play: tuned(wire.ConnectionTuneOk{ChannelMax: 1, FrameMax: 100}),
			code: amqp.NotAllowed, text: "negotiated frame_max = 100 is lower than the minimum allowed value (4096)",
			count: func(s Stats) uint64 { return s.ConnectionErrors }},
		{name: "frame-max too high", play: tuned(wire.ConnectionTuneOk{ChannelMax: 1, FrameMax: 1 << 20}),
			code: amqp.NotAllowed, text: "negotiated frame_max = 1048576 is higher than the maximum allowed value (131072)",
			count: func(s Stats) uint64 { return s.ConnectionErrors }},
		{name: "no limit of channels", play: tuned(wire.ConnectionTuneOk{FrameMax: 4096}),
			code: amqp.NotAllowed, text: "negotiated channel_max = 0 (no limit) is higher than the maximum allowed value (2047)",
			count: func(s Stats) uint64 { return s.ConnectionErrors }},
		{name: "garbage for client properties", play: func(p *script) {
			started(p)
			p.send(0, startOk(func(m *wire.ConnectionStartOk) { m.ClientProperties = []byte("\x03abcZ") }))
		}, code: amqp.SyntaxError, count: func(s Stats) uint64 { return s.ConnectionErrors }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				s := newTestServer(t)
				p := s.pipe()
				tt.play(p)
				if tt.code != 0 {
					var m wire.ConnectionClose
					p.expect(0, &m)
					if m.ReplyCode != tt.code || !strings.Contains(m.ReplyText, tt.text) {
						t.Errorf("close = %+v, want %d %q", m, tt.code, tt.text)
					}
				}
				p.expectEnd()
				if tt.header && string(p.head) != wire.ProtocolHeader {
					t.Errorf("answer = %q, want our protocol header", p.head)
				}
				if n := tt.count(s.Stats()); n != 1 {
					t.Errorf("counted %d times, want once: %+v", n, s.Stats())
				}
				s.pipe().open(0).channel(1).close()
			})
		})
	}
}

func TestHandshakeTakesHeartbeats(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		p := newTestServer(t).pipe()
		p.login()
		p.write(wire.AppendHeartbeat(nil))
		p.send(0, &wire.ConnectionTuneOk{ChannelMax: 1, FrameMax: 4096})
		p.write(wire.AppendHeartbeat(nil))
		p.send(0, &wire.ConnectionOpen{VirtualHost: "/"})
		p.expect(0, &wire.ConnectionOpenOk{})
		time.Sleep(time.Hour) // without an interval silence is fine
		p.channel(1).close()
	})
}

// TestWrongHeaderIsAnsweredAndHungUpOn: a client that probes for another protocol must not
// wait for a time-out to learn that it is not spoken here. [amqp 4.2.2]
func TestWrongHeaderIsAnsweredAndHungUpOn(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, func(c *Config) { c.CloseTimeout = time.Hour }).listen()
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	// So much that the server has not read all of it when it answers: closing the socket then
	// would make the kernel take the answer back.
	request := append([]byte("GET / HTTP/1.1\r\n"), make([]byte, 256<<10)...)
	if _, err := nc.Write(request); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(nc) // ends with our half of the conversation
	if err != nil || string(got) != wire.ProtocolHeader {
		t.Errorf("got %q, %v, want our protocol header and the end", got, err)
	}
}

// TestSecondCloseOfAChannelIsAnswered as on RabbitMQ: the two may have crossed.
func TestSecondCloseOfAChannelIsAnswered(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		p := newTestServer(t).pipe().open(0).channel(1)
		p.send(1, &wire.ChannelClose{}, &wire.ChannelClose{})
		p.expect(1, &wire.ChannelCloseOk{})
		p.expect(1, &wire.ChannelCloseOk{})
		p.channel(1).close()
	})
}

// TestOpenOfAChannelBeforeItsCloseOk is refused, not passed over: the client would wait for ever.
func TestOpenOfAChannelBeforeItsCloseOk(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		p := newTestServer(t).pipe().open(0).channel(1)
		p.send(1, &wire.QueueDeclare{Queue: "missing", Passive: true})
		p.expect(1, &wire.ChannelClose{})
		p.send(1, &wire.ChannelOpen{})
		var m wire.ConnectionClose
		p.expect(0, &m)
		if m.ReplyCode != amqp.ChannelError || !strings.Contains(m.ReplyText, "second 'channel.open' seen") {
			t.Errorf("got %+v", m)
		}
	})
}
