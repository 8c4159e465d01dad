package gateway

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/wire"
)

// scripted is a gateway whose broker is the test.
type scripted struct {
	*rig
	brokers chan net.Conn
}

// newScripted starts one; between gateway and broker there is a real socket.
func newScripted(t testing.TB) *scripted {
	t.Helper()
	return newScriptedConfig(t, Config{})
}

func newScriptedConfig(t testing.TB, cfg Config) *scripted {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { ln.Close() })
	s := &scripted{brokers: make(chan net.Conn, 16)}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.brokers <- conn
		}
	}()
	topology := &fakeTopology{}
	cfg.Topology = topology
	cfg.Dial = func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
	}
	s.rig = serveConfig(t, topology, cfg)
	return s
}

// connect returns both ends of a link that has said hello.
func (s *scripted) connect(t testing.TB, greeting string) (client, broker net.Conn) {
	t.Helper()
	client, err := net.Dial("tcp", s.addr)
	must(t, err)
	t.Cleanup(func() { client.Close() })
	_, err = client.Write([]byte(greeting))
	must(t, err)
	broker = <-s.brokers
	t.Cleanup(func() { broker.Close() })
	expect(t, broker, []byte(greeting))
	for _, c := range []net.Conn{client, broker} {
		must(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	}
	return client, broker
}

// expect reads exactly these octets.
func expect(t testing.TB, from io.Reader, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil {
		t.Fatalf("read %d octets: %v", len(want), err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// expectEnd reads the end of a connection.
func expectEnd(t testing.TB, from net.Conn) {
	t.Helper()
	n, err := io.Copy(io.Discard, from)
	if n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %d octets and %v, want the end", n, err)
	}
}

func TestEndOfOneSidePassesAndTheOtherMayStillTalk(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	for _, byClient := range []bool{true, false} {
		near, far := s.connect(t, wire.ProtocolHeader)
		if !byClient {
			near, far = far, near
		}
		must(t, near.(*net.TCPConn).CloseWrite())
		expectEnd(t, far)
		heartbeat := wire.AppendHeartbeat(nil)
		_, err := far.Write(heartbeat)
		must(t, err)
		expect(t, near, heartbeat)
		must(t, far.Close())
		expectEnd(t, near)
	}
}

func TestAbruptEndOfOneSideEndsTheOther(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	for _, byClient := range []bool{true, false} {
		near, far := s.connect(t, wire.ProtocolHeader)
		if !byClient {
			near, far = far, near
		}
		must(t, near.(*net.TCPConn).SetLinger(0)) // a reset
		must(t, near.Close())
		expectEnd(t, far)
	}
}

func TestCloseEndsBothSides(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	client, broker := s.connect(t, wire.ProtocolHeader)
	must(t, s.Close())
	expectEnd(t, client)
	expectEnd(t, broker)
}

func TestOtherProtocolsPassUntouched(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	client, broker := s.connect(t, "AMQP\x00\x01\x00\x00")
	// To AMQP 0-9-1 this would be a delivery to be renamed.
	for _, b := range [][]byte{
		[]byte("AMQP\x00\x01\x00\x00"),
		wire.AppendMethod(nil, 1, &wire.BasicDeliver{ConsumerTag: "t", Exchange: []byte("x.duepost")}),
	} {
		_, err := broker.Write(b)
		must(t, err)
		expect(t, client, b)
	}
}

func TestWhoDoesNotReadIsNotReadFrom(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	client, broker := s.connect(t, wire.ProtocolHeader)
	// More than all sockets between can hold, so a write must wait.
	body := wire.AppendFrame(nil, wire.FrameBody, 1, make([]byte, 1<<20))
	must(t, broker.SetWriteDeadline(time.Now().Add(300*time.Millisecond)))
	sent := 0
	for {
		n, err := broker.Write(body[sent%len(body):])
		sent += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		must(t, err)
		if sent > 256<<20 {
			t.Fatal("a client that reads nothing was sent 256 MiB")
		}
	}
	// Everything comes once it reads, and the other direction was never held up.
	heartbeat := wire.AppendHeartbeat(nil)
	_, err := client.Write(heartbeat)
	must(t, err)
	expect(t, broker, heartbeat)
	if n, err := io.CopyN(io.Discard, client, int64(sent)); err != nil {
		t.Errorf("got %d octets of %d: %v", n, sent, err)
	}
}

func TestNamesOfDelayedExchangesComeBack(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	client, broker := s.connect(t, wire.ProtocolHeader)
	for _, tc := range []struct{ in, want wire.Method }{
		{
			&wire.BasicDeliver{ConsumerTag: "tag", DeliveryTag: 7, Redelivered: true, Exchange: []byte("x.duepost"), RoutingKey: []byte("k")},
			&wire.BasicDeliver{ConsumerTag: "tag", DeliveryTag: 7, Redelivered: true, Exchange: []byte("x"), RoutingKey: []byte("k")},
		},
		{
			&wire.BasicGetOk{DeliveryTag: 7, Exchange: []byte("x.duepost"), RoutingKey: []byte("k"), MessageCount: 9},
			&wire.BasicGetOk{DeliveryTag: 7, Exchange: []byte("x"), RoutingKey: []byte("k"), MessageCount: 9},
		},
		{
			&wire.BasicReturn{ReplyCode: 312, ReplyText: "NO_ROUTE", Exchange: []byte("x.duepost"), RoutingKey: []byte("k")},
			&wire.BasicReturn{ReplyCode: 312, ReplyText: "NO_ROUTE", Exchange: []byte("x"), RoutingKey: []byte("k")},
		},
		{&wire.BasicDeliver{Exchange: []byte(".duepost")}, &wire.BasicDeliver{Exchange: []byte(".duepost")}},
		{&wire.BasicDeliver{RoutingKey: []byte("k.duepost")}, &wire.BasicDeliver{RoutingKey: []byte("k.duepost")}},
	} {
		_, err := broker.Write(wire.AppendMethod(nil, 3, tc.in))
		must(t, err)
		expect(t, client, wire.AppendMethod(nil, 3, tc.want))
	}
	if got := s.Stats().Restored; got != 3 {
		t.Errorf("got %d restored, want 3", got)
	}
}

func TestHeaderThatWouldNotFitPassesAsItIs(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	client, broker := s.connect(t, wire.ProtocolHeader)
	s.exchanges.note(exchangeKey{"v", "x"}, delayed)
	pass := func(b []byte) {
		t.Helper()
		_, err := client.Write(b)
		must(t, err)
		expect(t, broker, b)
	}
	pass(wire.AppendMethod(nil, 0, &wire.ConnectionTuneOk{FrameMax: 4096}))
	pass(wire.AppendMethod(nil, 0, &wire.ConnectionOpen{VirtualHost: "v"}))
	for size := 4020; size <= 4060; size += 10 {
		publish := wire.AppendMethod(nil, 1, &wire.BasicPublish{Exchange: []byte("x")})
		table := append([]byte("\x07x-delayI\x00\x00\x00\x01\x01pS\x00\x00"), byte(size>>8), byte(size))
		table = append(table, make([]byte, size)...)
		props := append([]byte{0x20, 0, 0, 0, byte(len(table) >> 8), byte(len(table))}, table...)
		header := wire.AppendContentHeader(nil, 1, 60, 0, props)
		if size <= 4020 {
			_, err := client.Write(append(publish, header...))
			must(t, err)
			expect(t, broker, publish)
			expect(t, broker, header[:1])
			rest := make([]byte, len(header)+len("\x12x-duepost-acceptedl")+8-1)
			_, err = io.ReadFull(broker, rest)
			must(t, err)
			continue
		}
		pass(append(publish, header...))
	}
	if got := s.Stats(); got.Marked != 1 || got.Unmarked != 4 {
		t.Errorf("got %d marked and %d not, want 1 and 4", got.Marked, got.Unmarked)
	}
}

func TestLimitOfConnections(t *testing.T) {
	t.Parallel()
	s := newScriptedConfig(t, Config{MaxConnections: 1})
	client, _ := s.connect(t, wire.ProtocolHeader)
	second, err := net.Dial("tcp", s.addr)
	must(t, err)
	expectEnd(t, second)
	_ = client
	if got := s.Stats(); got.Turned != 1 || got.Connections != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestNoBrokerEndsTheClient(t *testing.T) {
	t.Parallel()
	r := serve(t, &fakeTopology{}, func(context.Context) (net.Conn, error) { return nil, io.EOF })
	client, err := net.Dial("tcp", r.addr)
	must(t, err)
	_, err = client.Write([]byte(wire.ProtocolHeader))
	must(t, err)
	expectEnd(t, client)
	if got := r.Stats().Unreachable; got != 1 {
		t.Errorf("got %d unreachable, want 1", got)
	}
}

// testTLS makes a certificate for 127.0.0.1 and settings for both sides.
func testTLS(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
}

func TestTLSOnBothSides(t *testing.T) {
	t.Parallel()
	server, client := testTLS(t)
	behind := newRig(t) // TLS ends here, in front of the broker
	ln, err := tls.Listen("tcp", "127.0.0.1:0", server)
	must(t, err)
	go func() { _ = behind.Serve(ln) }()
	front := serve(t, behind.topology, func(ctx context.Context) (net.Conn, error) {
		return (&tls.Dialer{Config: client}).DialContext(ctx, "tcp", ln.Addr().String())
	})
	frontLn, err := tls.Listen("tcp", "127.0.0.1:0", server)
	must(t, err)
	go func() { _ = front.Serve(frontLn) }()

	conn, err := amqp091.DialTLS("amqps://guest:guest@"+frontLn.Addr().String()+"/", client)
	must(t, err)
	ch, err := conn.Channel()
	must(t, err)
	must(t, declareDelayed(ch, "x", "direct"))
	_, err = ch.QueueDeclare("q", false, true, false, false, nil)
	must(t, err)
	must(t, ch.QueueBind("q", "k", "x", false, nil))
	in, err := ch.Consume("q", "", true, false, false, false, nil)
	must(t, err)
	for _, size := range []int{1, 100, 5 << 20} {
		must(t, ch.Publish("x", "k", false, false, amqp091.Publishing{Body: make([]byte, size)}))
		if d := receive(t, in); len(d.Body) != size || d.Exchange != "x" {
			t.Errorf("got %d octets of %q, want %d", len(d.Body), d.Exchange, size)
		}
	}
	must(t, conn.Close())
}

func TestHeldChannelIsReadUpToALimit(t *testing.T) {
	t.Parallel()
	u := newUpward(idleLink(t))
	u.holds[1] = &hold{frames: make([]byte, holdLimit-100)}
	for _, tc := range []struct {
		h    head
		want interest
	}{
		{head{wire.FrameBody, 1, 100 - wire.FrameOverhead}, whole},
		{head{wire.FrameBody, 1, 101 - wire.FrameOverhead}, blocked},
		{head{wire.FrameBody, 1, 1<<32 - 1}, blocked},
		{head{wire.FrameBody, 2, 101 - wire.FrameOverhead}, untouched},
	} {
		if got := u.look(tc.h, 0); got != tc.want {
			t.Errorf("%+v: got %d, want %d", tc.h, got, tc.want)
		}
	}
}
