package gateway

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/duepostest"
)

// fakeTopology makes delayed exchanges on a broker as the relay does, with one queue as wheel.
type fakeTopology struct {
	url string

	mu   sync.Mutex
	conn *amqp091.Connection // guarded by mu
	fail error               // guarded by mu
	hold chan struct{}       // guarded by mu; Declare and IsDelayed wait for it
}

const intake = "duepost.intake"

func (f *fakeTopology) channel(ctx context.Context) (*amqp091.Channel, error) {
	f.mu.Lock()
	hold, fail := f.hold, f.fail
	f.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if fail != nil {
		return nil, fail
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn == nil {
		conn, err := amqp091.Dial(f.url)
		if err != nil {
			return nil, err
		}
		f.conn = conn
	}
	return f.conn.Channel()
}

func (f *fakeTopology) set(fail error, hold chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail, f.hold = fail, hold
}

func (f *fakeTopology) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn != nil {
		f.conn.Close()
	}
}

func (f *fakeTopology) Attach(ctx context.Context, _, exchange string) error {
	ch, err := f.channel(ctx)
	if err != nil {
		return err
	}
	defer ch.Close()
	if _, err := ch.QueueDeclare(intake, true, false, false, false, nil); err != nil {
		return err
	}
	return ch.QueueBind(intake, "", exchange, false, amqp091.Table{
		"x-match": "any-with-x", "x-delay": nil, "x-opt-delivery-delay": nil, "x-opt-delivery-time": nil,
	})
}

func (f *fakeTopology) Discard(ctx context.Context, vhost, exchange string) error {
	if is, err := f.IsDelayed(ctx, vhost, exchange); is || err != nil {
		return err
	}
	ch, err := f.channel(ctx)
	if err != nil {
		return err
	}
	defer ch.Close()
	return ch.ExchangeDelete(exchange, false, false)
}

func (f *fakeTopology) IsDelayed(ctx context.Context, _, exchange string) (bool, error) {
	ch, err := f.channel(ctx)
	if err != nil {
		return false, err
	}
	defer ch.Close()
	err = ch.ExchangeDeclarePassive(exchange+dueSuffix, "direct", true, false, false, false, nil)
	return err == nil, nil
}

// relay moves what comes into the intake on at once, as if it were due.
func (f *fakeTopology) relay(t testing.TB) {
	t.Helper()
	ch, err := f.channel(t.Context())
	must(t, err)
	_, err = ch.QueueDeclare(intake, true, false, false, false, nil)
	must(t, err)
	in, err := ch.Consume(intake, "", true, false, false, false, nil)
	must(t, err)
	go func() {
		for d := range in {
			_ = ch.Publish(d.Exchange+dueSuffix, d.RoutingKey, false, false, amqp091.Publishing{
				Headers: d.Headers, Body: d.Body, Expiration: d.Expiration, MessageId: d.MessageId,
			})
		}
	}()
}

// rig is a gateway in front of a broker.
type rig struct {
	*Gateway
	addr     string
	topology *fakeTopology
}

func (r *rig) url() string { return "amqp://guest:guest@" + r.addr + "/" }

// newRig starts Duepost and a gateway in front of it.
func newRig(t testing.TB) *rig {
	t.Helper()
	return newRigAt(t, duepostest.Start(t).URL)
}

// newRigAt starts a gateway in front of the broker at a URL.
func newRigAt(t testing.TB, url string) *rig {
	t.Helper()
	uri, err := amqp091.ParseURI(url)
	must(t, err)
	target := net.JoinHostPort(uri.Host, itoa(uri.Port))
	topology := &fakeTopology{url: url}
	t.Cleanup(topology.close)
	return serve(t, topology, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", target)
	})
}

// serve starts a gateway that dials as given.
func serve(t testing.TB, topology *fakeTopology, dial func(context.Context) (net.Conn, error)) *rig {
	t.Helper()
	return serveConfig(t, topology, Config{Dial: dial, Topology: topology})
}

func serveConfig(t testing.TB, topology *fakeTopology, cfg Config) *rig {
	t.Helper()
	g, err := New(cfg)
	must(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- g.Serve(ln) }()
	t.Cleanup(func() {
		must(t, g.Close())
		if err := <-served; err != ErrClosed {
			t.Errorf("serve: got %v, want ErrClosed", err)
		}
	})
	return &rig{Gateway: g, addr: ln.Addr().String(), topology: topology}
}

// dial connects a client through the gateway.
func (r *rig) dial(t testing.TB) *amqp091.Connection {
	t.Helper()
	conn, err := amqp091.Dial(r.url())
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// channel opens a channel of a client of its own.
func (r *rig) channel(t testing.TB) *amqp091.Channel {
	t.Helper()
	ch, err := r.dial(t).Channel()
	must(t, err)
	return ch
}

func declareDelayed(ch *amqp091.Channel, name, kind string) error {
	return ch.ExchangeDeclare(name, "x-delayed-message", true, false, false, false,
		amqp091.Table{"x-delayed-type": kind})
}

// receive waits for a delivery.
func receive(t testing.TB, in <-chan amqp091.Delivery) amqp091.Delivery {
	t.Helper()
	select {
	case d, ok := <-in:
		if !ok {
			t.Fatal("the consumer was closed")
		}
		return d
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came in 10 s")
	}
	return amqp091.Delivery{}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
