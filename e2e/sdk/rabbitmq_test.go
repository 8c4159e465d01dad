package sdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/internal/requirement"
	"github.com/duepost/duepost/internal/testbroker"
)

// slack is how late a message may be on a machine that does other work.
const slack = 5 * time.Second

// maxMessageSize is what the brokers are told to take.
const maxMessageSize = 1 << 20

// TestMain has RabbitMQ try soon again what it could not dead-letter. It tries every three minutes
// unless set, also what fell due while it was down: it begins before its exchanges are there.
func TestMain(m *testing.M) {
	os.Setenv("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-rabbit dead_letter_worker_publisher_confirm_timeout 1000")
	os.Exit(m.Run())
}

func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	all, err := testbroker.InstalledRabbitMQs()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		requirement.Missing(t, "RabbitMQ", "Debian package rabbitmq-server")
	}
	for _, installed := range all {
		t.Run(installed.Version, func(t *testing.T) {
			t.Parallel()
			b, err := installed.Start(t.Context(), testbroker.Options{
				Dir: t.TempDir(), Config: fmt.Sprintf("max_message_size = %d\n", maxMessageSize),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := b.Kill(); err != nil {
					t.Error(err)
				}
			})
			for _, story := range []struct {
				name string
				play func(*rig)
			}{
				{"found", (*rig).found}, {"delays", (*rig).delays}, {"classic", (*rig).classic},
				{"bare consumer", (*rig).bareConsumer}, {"retries", (*rig).retries}, {"deaths", (*rig).deaths},
				{"mistakes", (*rig).mistakes}, {"no permission", (*rig).noPermission},
				{"blocked", (*rig).blocked}, {"operator", (*rig).operator}, {"killed", (*rig).killed},
			} {
				t.Run(story.name, func(t *testing.T) {
					r := &rig{T: t, broker: b}
					r.client = r.connect(duepost.Options{})
					story.play(r)
				})
			}
		})
	}
}

// rig is a client of a broker that all stories share. Each has names of its own.
type rig struct {
	*testing.T
	broker *testbroker.Broker
	client *duepost.Client
}

func (r *rig) connect(o duepost.Options) *duepost.Client {
	r.Helper()
	if o.URL == "" {
		o.URL = r.broker.URL()
	}
	if o.Wait.Tiers == nil { // stories should not take long
		o.Wait.Tiers = []time.Duration{100 * time.Millisecond, time.Second}
	}
	o.Reconnect = duepost.Backoff{First: 20 * time.Millisecond, Cap: 200 * time.Millisecond}
	c, err := duepost.Connect(r.Context(), o)
	if err != nil {
		r.Fatalf("connect: %v", err)
	}
	r.Cleanup(func() { c.Close() })
	return c
}

// name makes a name of this test's own.
func (r *rig) name(s string) string { return strings.ReplaceAll(r.Name(), "/", ".") + "." + s }

func (r *rig) queue(args map[string]any) string {
	r.Helper()
	q := duepost.Queue{Name: r.name("q"), Type: duepost.Quorum, Args: args}
	if err := r.client.Declare(r.Context(), duepost.Topology{Queues: []duepost.Queue{q}}); err != nil {
		r.Fatalf("declare: %v", err)
	}
	return q.Name
}

func (r *rig) publish(m duepost.Message) duepost.Receipt {
	r.Helper()
	receipt, err := r.client.Publish(r.Context(), m)
	if err != nil {
		r.Fatalf("publish: %v", err)
	}
	return receipt
}

// consume runs h for a queue until the test ends.
func (r *rig) consume(o duepost.Consumer, h duepost.Handler) {
	r.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- r.client.Consume(ctx, o, h) }()
	r.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			r.Errorf("consume: %v", err)
		}
	})
}

// deliveries consumes a queue into a channel.
func (r *rig) deliveries(queue string) <-chan *duepost.Delivery {
	all := make(chan *duepost.Delivery, 100_000)
	r.consume(duepost.Consumer{Queue: queue}, func(_ context.Context, d *duepost.Delivery) error {
		all <- d
		return nil
	})
	return all
}

func next[T any](r *rig, ch <-chan T) T {
	r.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(time.Minute):
		r.Fatal("nothing came in a minute")
		panic("unreachable")
	}
}

func (r *rig) control(args ...string) {
	r.Helper()
	if out, err := r.broker.Control(r.Context(), args...); err != nil {
		r.Fatalf("rabbitmqctl %q: %v\n%s", args, err, out)
	}
}

func (r *rig) found() {
	b := r.client.Broker()
	if b.Product != "RabbitMQ" || !strings.HasPrefix(b.Version, strings.TrimPrefix(r.broker.Name, "RabbitMQ ")) ||
		b.Mode != duepost.ModeWaitQueues || b.Keys {
		r.Errorf("found %+v on %s", b, r.broker.Name)
	}
}

// What was published with delays of one hop and of many comes on time, with what its publisher gave.
func (r *rig) delays() {
	queue, exchange := r.queue(nil), r.name("x")
	err := r.client.Declare(r.Context(), duepost.Topology{
		Exchanges: []duepost.Exchange{{Name: exchange, Kind: duepost.Topic}},
		Bindings:  []duepost.Binding{{Exchange: exchange, Queue: queue, Key: "order.*"}},
	})
	if err != nil {
		r.Fatalf("declare: %v", err)
	}
	got := r.deliveries(queue)
	sent := map[string]duepost.Message{}
	began := map[string]time.Time{}
	for _, delay := range []time.Duration{1, 100, 101, 250, 700, 1000, 1500, 3150} {
		for _, m := range []duepost.Message{
			{RoutingKey: queue},
			{Exchange: exchange, RoutingKey: "order.placed", Headers: map[string]any{"a": "b"}},
			{Exchange: exchange, RoutingKey: "nothing", Headers: map[string]any{"CC": []any{"order.copied"}}},
		} {
			m.Delay = delay * time.Millisecond
			start := time.Now()
			id := r.publish(m).MessageID
			sent[id], began[id] = m, start
		}
	}
	for range sent {
		d := next(r, got)
		m := sent[d.MessageID]
		if took := d.Received.Sub(began[d.MessageID]); took < m.Delay || took > m.Delay+slack {
			r.Errorf("delay %v: came after %v", m.Delay, took)
		}
		if d.Exchange != m.Exchange || d.RoutingKey != m.RoutingKey || fmt.Sprint(d.Headers) != fmt.Sprint(m.Headers) {
			r.Errorf("got exchange %q, key %q, headers %v; want those of %+v", d.Exchange, d.RoutingKey, d.Headers, m)
		}
		if death, died := d.Death(); died {
			r.Errorf("the delay counts as a death: %+v", death)
		}
	}
}

// Classic queues to wait in, which stand beside the quorum ones.
func (r *rig) classic() {
	queue := r.queue(nil)
	c := r.connect(duepost.Options{Wait: duepost.WaitQueues{
		Type: duepost.Classic, Tiers: []time.Duration{100 * time.Millisecond, time.Second},
	}})
	got := r.deliveries(queue)
	for _, delay := range []time.Duration{time.Second, 500 * time.Millisecond} {
		start := time.Now()
		if _, err := c.Publish(r.Context(), duepost.Message{RoutingKey: queue, Delay: delay}); err != nil {
			r.Fatalf("publish: %v", err)
		}
		if took := next(r, got).Received.Sub(start); took < delay || took > delay+slack {
			r.Errorf("delay %v: came after %v", delay, took)
		}
	}
}

// A consumer that does not use the SDK gets the routing key and the headers, with others added.
func (r *rig) bareConsumer() {
	queue, exchange := r.queue(nil), r.name("x")
	err := r.client.Declare(r.Context(), duepost.Topology{
		Exchanges: []duepost.Exchange{{Name: exchange, Kind: duepost.Fanout}},
		Bindings:  []duepost.Binding{{Exchange: exchange, Queue: queue}},
	})
	if err != nil {
		r.Fatalf("declare: %v", err)
	}
	conn, err := amqp.Dial(r.broker.URL())
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		r.Fatal(err)
	}
	got, err := ch.Consume(queue, "", true, false, false, false, nil)
	if err != nil {
		r.Fatal(err)
	}
	r.publish(duepost.Message{
		Exchange: exchange, RoutingKey: "k", Headers: map[string]any{"a": "b"}, Delay: 300 * time.Millisecond,
	})
	d := next(r, got)
	if d.RoutingKey != "k" || d.Headers["a"] != "b" {
		r.Errorf("got key %q, headers %v", d.RoutingKey, d.Headers)
	}
	for name := range d.Headers {
		if name != "a" && !strings.HasPrefix(name, "x-") {
			r.Errorf("header %s was added", name)
		}
	}
}

// Each retry goes through the same wait queue again, which RabbitMQ would drop as a cycle if it
// could see it.
func (r *rig) retries() {
	queue := r.queue(nil)
	attempts := make(chan int, 10)
	r.consume(duepost.Consumer{
		Queue: queue,
		Retry: duepost.Retry{Attempts: 4, Backoff: duepost.Backoff{First: 300 * time.Millisecond, Factor: 1, Jitter: -1}},
	}, func(_ context.Context, d *duepost.Delivery) error {
		attempts <- d.Attempt
		return errors.New("no")
	})
	r.publish(duepost.Message{RoutingKey: queue, Delay: 300 * time.Millisecond, Headers: map[string]any{"a": "b"}})
	for want := 1; want <= 4; want++ {
		if got := next(r, attempts); got != want {
			r.Errorf("attempt %d, want %d", got, want)
		}
	}
	d := next(r, r.deliveries(queue+".parked"))
	if p, _ := d.Parked(); p.Reason != "no" || p.Attempts != 4 || d.RoutingKey != queue || fmt.Sprint(d.Headers) != "map[a:b]" {
		r.Errorf("parked as %+v: %+v", p, d)
	}
}

// A message whose time to live ends is told from one that was rejected, though both were delayed
// in wait queues before.
func (r *rig) deaths() {
	dead := r.queue(nil)
	args := func(more map[string]any) map[string]any {
		more["x-dead-letter-exchange"], more["x-dead-letter-routing-key"] = "", dead
		return more
	}
	err := r.client.Declare(r.Context(), duepost.Topology{Queues: []duepost.Queue{
		{Name: r.name("expired"), Args: args(map[string]any{"x-message-ttl": 100})},
		{Name: r.name("maxlen"), Args: args(map[string]any{"x-max-length": 1})},
	}})
	if err != nil {
		r.Fatalf("declare: %v", err)
	}
	for _, reason := range []string{"expired", "maxlen", "maxlen"} {
		r.publish(duepost.Message{RoutingKey: r.name(reason), Delay: 300 * time.Millisecond})
	}
	got := r.deliveries(dead)
	for range 2 {
		d := next(r, got)
		death, _ := d.Death()
		if r.name(death.Reason) != death.Queue || death.Count != 1 || len(d.Headers) != 0 {
			r.Errorf("death %+v, headers %v", death, d.Headers)
		}
	}
}

// Each mistake is an error of its own kind and does no harm to those who publish beside it.
func (r *rig) mistakes() {
	queue := r.queue(nil)
	full := r.name("full")
	err := r.client.Declare(r.Context(), duepost.Topology{Queues: []duepost.Queue{
		{Name: full, Args: map[string]any{"x-max-length": 1, "x-overflow": "reject-publish"}},
	}})
	if err != nil {
		r.Fatalf("declare: %v", err)
	}
	r.publish(duepost.Message{RoutingKey: full})
	for _, c := range []struct {
		m    duepost.Message
		want error
	}{
		{duepost.Message{RoutingKey: r.name("nobody")}, duepost.ErrUnroutable},
		{duepost.Message{RoutingKey: r.name("nobody"), Delay: time.Second}, duepost.ErrUnroutable},
		{duepost.Message{Exchange: r.name("nowhere")}, duepost.ErrUnknownExchange},
		{duepost.Message{Exchange: r.name("nowhere"), Delay: time.Second}, duepost.ErrUnknownExchange},
		{duepost.Message{RoutingKey: full}, duepost.ErrRefused},
		{duepost.Message{RoutingKey: queue, Body: make([]byte, maxMessageSize+1)}, duepost.ErrTooLarge},
		{duepost.Message{RoutingKey: queue, Delay: 50 * 365 * 24 * time.Hour}, duepost.ErrDelayTooLong},
		{duepost.Message{RoutingKey: queue, Key: "k", Delay: time.Second}, duepost.ErrNotSupported},
	} {
		beside := make(chan error)
		go func() {
			_, err := r.client.Publish(r.Context(), duepost.Message{RoutingKey: queue})
			beside <- err
		}()
		if _, err := r.client.Publish(r.Context(), c.m); !errors.Is(err, c.want) {
			r.Errorf("publish to %q %q: got %v, want %v", c.m.Exchange, c.m.RoutingKey, err, c.want)
		}
		if err := <-beside; err != nil && !errors.Is(err, duepost.ErrUnconfirmed) {
			r.Errorf("publish beside %v: %v", c.want, err)
		}
	}
}

// A user who may declare nothing can publish and consume, and is told about delays.
func (r *rig) noPermission() {
	queue := r.queue(nil)
	r.control("add_user", "reader", "secret")
	r.control("set_permissions", "reader", "", ".*", ".*")
	c := r.connect(duepost.Options{URL: strings.Replace(r.broker.URL(), "guest:guest", "reader:secret", 1)})
	if _, err := c.Publish(r.Context(), duepost.Message{RoutingKey: queue}); err != nil {
		r.Errorf("publish: %v", err)
	}
	_, err := c.Publish(r.Context(), duepost.Message{RoutingKey: queue, Delay: time.Second})
	if !errors.Is(err, duepost.ErrNotPermitted) || !duepost.SafeToRetry(err) {
		r.Errorf("publish with a delay: got %v, want ErrNotPermitted", err)
	}
	r.control("set_permissions", "reader", "", "nothing", ".*")
	c = r.connect(duepost.Options{URL: strings.Replace(r.broker.URL(), "guest:guest", "reader:secret", 1)}) // 3.10 remembers
	_, err = c.Publish(r.Context(), duepost.Message{RoutingKey: queue})
	if !errors.Is(err, duepost.ErrNotPermitted) {
		r.Errorf("publish without permission: got %v, want ErrNotPermitted", err)
	}
}

// A broker that is short of memory holds publishers back and lets consumers go on.
func (r *rig) blocked() {
	queue := r.queue(nil)
	r.publish(duepost.Message{RoutingKey: queue})
	r.control("set_vm_memory_high_watermark", "absolute", "1")
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	var err error
	for err == nil { // the first ones get through
		_, err = r.client.Publish(ctx, duepost.Message{RoutingKey: queue})
		if errors.Is(err, duepost.ErrUnconfirmed) {
			ctx, cancel = context.WithTimeout(r.Context(), time.Second)
			defer cancel()
			_, err = r.client.Publish(ctx, duepost.Message{RoutingKey: queue})
		}
	}
	if !errors.Is(err, duepost.ErrBlocked) || !duepost.SafeToRetry(err) {
		r.Errorf("publish to a blocked broker: got %v, want ErrBlocked", err)
	}
	next(r, r.deliveries(queue))
	r.control("set_vm_memory_high_watermark", "0.4")
	r.publish(duepost.Message{RoutingKey: queue})
}

// An operator closes all connections: the client comes back.
func (r *rig) operator() {
	queue := r.queue(nil)
	got := r.deliveries(queue)
	r.publish(duepost.Message{RoutingKey: queue})
	next(r, got)
	r.control("close_all_connections", "why not")
	_, err := r.client.Publish(r.Context(), duepost.Message{RoutingKey: queue})
	for errors.Is(err, duepost.ErrUnconfirmed) {
		_, err = r.client.Publish(r.Context(), duepost.Message{RoutingKey: queue})
	}
	if err != nil {
		r.Errorf("publish: %v", err)
	}
	next(r, got)
}

// The broker dies while messages wait and while others are published: what was confirmed comes.
//
// The queues are some seconds old by then: kill -9 makes RabbitMQ forget a quorum queue that was
// declared a moment ago, with the messages that it has confirmed.
func (r *rig) killed() {
	queue := r.queue(nil)
	delay := func(i int) time.Duration { return time.Duration(i%50) * 100 * time.Millisecond }
	for i := range 50 {
		r.publish(duepost.Message{RoutingKey: queue, Delay: delay(i)})
	}
	got := r.deliveries(queue)
	for range 50 {
		next(r, got)
	}
	confirmed := map[string]bool{}
	stop := make(chan bool)
	published := make(chan string, 100_000)
	half := make(chan bool)
	go func() {
		defer close(published)
		for i := 0; ; i++ {
			if i == 500 {
				close(half)
			}
			select {
			case <-stop:
				return
			default:
			}
			m := duepost.Message{RoutingKey: queue, Delay: delay(i)}
			receipt, err := r.client.Publish(r.Context(), m)
			if err == nil {
				published <- receipt.MessageID
			} else if !errors.Is(err, duepost.ErrUnconfirmed) {
				r.Errorf("publish: got %v, want nil or ErrUnconfirmed", err)
			}
		}
	}()
	next(r, half)
	if err := r.broker.Kill(); err != nil {
		r.Fatal(err)
	}
	if err := r.broker.Start(r.Context()); err != nil {
		r.Fatal(err)
	}
	after := r.publish(duepost.Message{RoutingKey: queue})
	close(stop)
	confirmed[after.MessageID] = true
	for id := range published {
		confirmed[id] = true
	}
	n := len(confirmed)
	for len(confirmed) > 0 {
		d := next(r, got)
		if d.Received.Before(d.Due) {
			r.Errorf("came %v early", d.Due.Sub(d.Received))
		}
		delete(confirmed, d.MessageID)
	}
	r.Logf("%d messages, all there", n)
}
