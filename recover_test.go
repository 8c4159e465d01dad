package duepost_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/duepostest"
	"github.com/duepost/duepost/internal/proxy"
)

// Methods of the protocol. [amqp 1.1]
const (
	classConnection, classBasic             = 10, 60
	methodBlocked, methodUnblocked          = 60, 61
	methodPublish, methodDeliver, methodAck = 40, 60, 80
)

// newProxiedRig is newRig with a proxy between client and broker.
func newProxiedRig(t *testing.T, o duepost.Options) (*rig, *proxy.Proxy) {
	t.Helper()
	r := &rig{t: t, broker: duepostest.Start(t)}
	p := proxy.Start(t, r.addr())
	o.URL = strings.Replace(r.broker.URL, r.addr(), p.Addr, 1)
	r.client = r.connect(o)
	return r, p
}

func (r *rig) addr() string { return addrOf(r.broker) }

// addrOf is the host and port of a broker.
func addrOf(b *duepostest.Broker) string {
	_, addr, _ := strings.Cut(strings.TrimSuffix(b.URL, "/"), "@")
	return addr
}

func TestEverythingComesBackOnAnotherBroker(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, o duepost.Options) {
		r, p := newProxiedRig(t, o)
		targets := r.targets()
		got := r.deliveries("q")
		empty := duepostest.Start(t)
		for range 2 {
			for _, m := range targets {
				r.publishWhole(m)
				next(t, got)
				m.Delay = 10 * time.Millisecond
				r.publish(m)
				next(t, got)
			}
			p.To(addrOf(empty))
			p.CutAll()
		}
	})
}

// publishWhole publishes until the broker says that it has the message.
func (r *rig) publishWhole(m duepost.Message) {
	r.t.Helper()
	_, err := r.client.Publish(r.t.Context(), m)
	for errors.Is(err, duepost.ErrUnconfirmed) {
		_, err = r.client.Publish(r.t.Context(), m)
	}
	if err != nil {
		r.t.Fatalf("publish: %v", err)
	}
}

func TestConsumerGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	began, finish := make(chan string), make(chan bool)
	r.consume(duepost.Consumer{Queue: "q"}, func(_ context.Context, d *duepost.Delivery) error {
		began <- string(d.Body)
		<-finish
		return nil
	})
	r.publish(duepost.Message{RoutingKey: "q", Body: []byte("first")})
	next(t, began)
	r.broker.Kill()
	r.broker.Restart()
	finish <- true // too late: its ack has nowhere to go
	if again := next(t, began); again != "first" {
		t.Errorf("got %q, want the message again that was not acknowledged", again)
	}
	finish <- true
	r.publish(duepost.Message{RoutingKey: "q", Body: []byte("second")})
	if second := next(t, began); second != "second" {
		t.Errorf("got %q, want the second message", second)
	}
	finish <- true
}

func TestSeveralAddresses(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	second := duepostest.Start(t)
	c := r.connect(duepost.Options{URL: "amqp://127.0.0.1:1, " + r.broker.URL + "," + second.URL})
	if _, err := c.Publish(t.Context(), duepost.Message{RoutingKey: "q"}); err != nil {
		t.Fatalf("publish: %v", err)
	}
	r.broker.Kill()
	if err := c.Declare(t.Context(), duepost.Topology{Queues: []duepost.Queue{{Name: "only there"}}}); err != nil {
		t.Fatalf("declare on the second broker: %v", err)
	}
	if _, err := c.Publish(t.Context(), duepost.Message{RoutingKey: "only there"}); err != nil {
		t.Errorf("publish to the second broker: %v", err)
	}
}

func TestConnectGivesUp(t *testing.T) {
	t.Parallel()
	b := duepostest.Start(t)
	for name, c := range map[string]struct {
		o    duepost.Options
		want error
		code int
	}{
		"no such user":  {o: duepost.Options{URL: strings.Replace(b.URL, "guest:guest", "guest:wrong", 1)}, code: amqp.AccessRefused},
		"no such vhost": {o: duepost.Options{URL: b.URL + "nowhere"}, code: amqp.NotAllowed},
		"nobody there":  {o: duepost.Options{URL: "amqp://127.0.0.1:1", ConnectTimeout: 20 * time.Millisecond}, want: duepost.ErrDisconnected},
		"no URL":        {o: duepost.Options{URL: "http://localhost"}, want: duepost.ErrInvalid},
		"no mode":       {o: duepost.Options{URL: b.URL, Mode: "magic"}, want: duepost.ErrInvalid},
		"no window":     {o: duepost.Options{URL: b.URL, MaxInFlight: -1}, want: duepost.ErrInvalid},
		"no tier":       {o: duepost.Options{URL: b.URL, Wait: duepost.WaitQueues{Tiers: []time.Duration{1}}}, want: duepost.ErrInvalid},
		"no queue type": {o: duepost.Options{URL: b.URL, Wait: duepost.WaitQueues{Type: "stream"}}, want: duepost.ErrInvalid},
	} {
		_, err := duepost.Connect(t.Context(), c.o)
		var answer *amqp.Error
		if c.want != nil && !errors.Is(err, c.want) || c.want == nil && !(errors.As(err, &answer) && answer.Code == c.code) {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: a password is in the error: %v", name, err)
		}
	}
}

func TestBlockedBrokerHoldsPublishersBack(t *testing.T) {
	t.Parallel()
	r, p := newProxiedRig(t, duepost.Options{})
	r.queue("q")
	p.Inject(proxy.Method(classConnection, methodBlocked, 3, 'l', 'o', 'w'))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	blocked := func() error {
		_, err := r.client.Publish(ctx, duepost.Message{RoutingKey: "q"})
		return err
	}
	err := blocked()
	for err == nil { // until the client has read it
		err = blocked()
	}
	if !errors.Is(err, duepost.ErrBlocked) || !errors.Is(err, context.DeadlineExceeded) || !duepost.SafeToRetry(err) {
		t.Errorf("publish to a blocked broker: got %v, want ErrBlocked, surely not sent", err)
	}
	done := make(chan error)
	go func() {
		_, err := r.client.Publish(t.Context(), duepost.Message{RoutingKey: "q"})
		done <- err
	}()
	p.Inject(proxy.Method(classConnection, methodUnblocked))
	if err := next(t, done); err != nil {
		t.Errorf("publish when it is not blocked any more: %v", err)
	}
}

func TestNoConnection(t *testing.T) {
	t.Parallel()
	r, p := newProxiedRig(t, duepost.Options{})
	r.queue("q")
	p.Down()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := errors.New("none yet")
	for !errors.Is(err, duepost.ErrDisconnected) { // until the client has noticed
		_, err = r.client.Publish(ctx, duepost.Message{RoutingKey: "q"})
		if err == nil {
			t.Fatal("publish without a connection: confirmed")
		}
	}
	if !duepost.SafeToRetry(err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("publish without a connection: got %v, want it surely not sent", err)
	}
	p.Up()
	r.publish(duepost.Message{RoutingKey: "q"})
}

// A broker that neither reads nor writes any more is given up after some heartbeats, also while a
// publish is stuck half-way in its socket.
func TestDeafBroker(t *testing.T) {
	t.Parallel()
	r, p := newProxiedRig(t, duepost.Options{Heartbeat: time.Second})
	r.queue("q")
	r.publish(duepost.Message{RoutingKey: "q"})
	hears := make(chan bool)
	p.Judge(func(proxy.Direction, proxy.Frame) proxy.Verdict {
		<-hears
		return proxy.Pass
	})
	_, err := r.client.Publish(t.Context(), duepost.Message{RoutingKey: "q", Body: make([]byte, 32<<20)})
	if !errors.Is(err, duepost.ErrUnconfirmed) {
		t.Errorf("publish to a broker that does not read: got %v, want ErrUnconfirmed", err)
	}
	close(hears)
	r.publishWhole(duepost.Message{RoutingKey: "q"})
}

// The broker has the message, and its word that it has does not arrive.
func TestKilledBetweenPublishAndConfirm(t *testing.T) {
	t.Parallel()
	r, p := newProxiedRig(t, duepost.Options{})
	r.queue("q")
	p.Judge(func(_ proxy.Direction, f proxy.Frame) proxy.Verdict {
		if !f.Is(classBasic, methodAck) {
			return proxy.Pass
		}
		return proxy.Cut
	})
	_, err := r.client.Publish(t.Context(), duepost.Message{RoutingKey: "q"})
	if !errors.Is(err, duepost.ErrUnconfirmed) || duepost.SafeToRetry(err) {
		t.Errorf("publish: got %v, want ErrUnconfirmed", err)
	}
	p.Judge(nil)
	r.broker.Kill()
	r.broker.Restart()
	if n := r.count("q"); n != 1 {
		t.Errorf("%d messages in the queue, want the one without a confirm", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.client.Publish(ctx, duepost.Message{RoutingKey: "q"}); !duepost.SafeToRetry(err) {
		t.Errorf("publish with a context that has ended: got %v, want it surely not sent", err)
	}
}
