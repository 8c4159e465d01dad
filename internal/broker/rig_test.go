package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/delay"
	"github.com/duepost/duepost/internal/store"
)

// rig is a broker over a store in a directory of its own, and one session.
type rig struct {
	t       testing.TB
	dir     string
	clock   delay.Clock
	limits  Limits
	compat  Compat
	log     *slog.Logger
	options store.Options
	disk    store.FS // the real one if nil

	store  *store.Store
	alarms *delay.Alarms
	engine *delay.Engine
	*Broker
	*Session
	p *Publisher
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), clock: delay.SystemClock{}}
	r.options = store.Options{SegmentBytes: 1 << 20}
	r.start()
	t.Cleanup(r.stop)
	return r
}

func (r *rig) start() {
	r.t.Helper()
	if r.disk == nil {
		r.disk = store.OS()
	}
	s, err := store.Open(r.disk, r.dir, r.options)
	if err != nil {
		r.t.Fatal(err)
	}
	r.store = s
	r.alarms = delay.NewAlarms(r.clock, nil)
	r.engine = delay.New(delay.Config{Store: s, Alarms: r.alarms, Clock: r.clock})
	r.Broker, err = Open(Config{
		Store: s, Engine: r.engine, Alarms: r.alarms, Clock: r.clock, Limits: r.limits, Compat: r.compat, Logger: r.log,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.alarms.Start()
	r.engine.Start(r.Broker)
	r.Session = r.connect("guest")
	r.p = r.Session.NewPublisher()
}

func (r *rig) connect(user string) *Session {
	r.t.Helper()
	s, err := r.Connect("/", user, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// stop ends everything in order. It is idempotent.
func (r *rig) stop() {
	r.t.Helper()
	if r.store == nil {
		return
	}
	r.Session.Close()
	r.engine.Stop()
	r.alarms.Stop()
	if err := r.Broker.Close(); err != nil {
		r.t.Error(err)
	}
	if err := r.store.Close(); err != nil {
		r.t.Error(err)
	}
	r.store = nil
}

// restart stops in order and starts again.
func (r *rig) restart() {
	r.t.Helper()
	r.stop()
	r.start()
}

// crash stops as kill -9 would, once all that was done is durable, and starts again.
func (r *rig) crash() {
	r.t.Helper()
	lsn, err := r.ids.mark()
	if err != nil || r.wait(lsn) != nil {
		r.t.Fatalf("make durable what was done: %v", err)
	}
	r.kill()
}

// kill stops as kill -9 would, at once, and starts again.
func (r *rig) kill() {
	r.t.Helper()
	r.die()
	r.start()
}

// die stops as kill -9 would.
func (r *rig) die() {
	r.store.Abandon()
	r.engine.Stop()
	r.alarms.Stop()
	_ = r.Broker.Close() // the store refuses to note anything
}

// declareQueue makes a queue and returns it. Options follow the name: "durable", "exclusive",
// "auto-delete".
func (r *rig) queue(name string, args amqp.Table, options ...string) *Queue {
	r.t.Helper()
	info, err := r.QueueDeclare(QueueSpec{
		Name:       name,
		Durable:    slices.Contains(options, "durable"),
		Exclusive:  slices.Contains(options, "exclusive"),
		AutoDelete: slices.Contains(options, "auto-delete"),
		Args:       args,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.find(info.Name)
}

// find returns a queue that exists.
func (r *rig) find(name string) *Queue {
	r.t.Helper()
	q, err := r.Session.Queue(name)
	if err != nil {
		r.t.Fatal(err)
	}
	return q
}

// exchange makes a durable exchange.
func (r *rig) exchange(name, kind string, args amqp.Table) {
	r.t.Helper()
	err := r.ExchangeDeclare(ExchangeSpec{Name: name, Type: kind, Durable: true, Args: args})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) delayedExchange(name, inner string) {
	r.t.Helper()
	r.exchange(name, delayedType, amqp.Table{argDelayedType: inner})
}

func (r *rig) bind(queue, exchange, key string) {
	r.t.Helper()
	if err := r.QueueBind(Binding{Source: exchange, Destination: queue, RoutingKey: key}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) bindExchange(destination, source, key string) {
	r.t.Helper()
	err := r.ExchangeBind(Binding{Source: source, Destination: destination, RoutingKey: key})
	if err != nil {
		r.t.Fatal(err)
	}
}

// option changes a message before it is published.
type option func(*amqp.Properties)

func withHeaders(t amqp.Table) option {
	return func(p *amqp.Properties) {
		b, err := amqp.AppendTable(nil, t)
		if err != nil {
			panic(err)
		}
		p.SetHeaders(b[4:])
	}
}

func withDelay(ms int64) option { return withHeaders(amqp.Table{"x-delay": ms}) }

func withExpiration(ms string) option {
	return func(p *amqp.Properties) {
		p.Expiration = []byte(ms)
		p.Set(amqp.FlagExpiration)
	}
}

func transient(p *amqp.Properties) { p.Clear(amqp.FlagDeliveryMode) }

// newMessage is a persistent message.
func newMessage(exchange, key, body string, options ...option) *Message {
	p := &amqp.Properties{Flags: amqp.FlagDeliveryMode, DeliveryMode: amqp.Persistent}
	for _, o := range options {
		o(p)
	}
	m := &Message{
		Exchange: []byte(exchange), RoutingKey: []byte(key), Body: []byte(body),
		Props: p.Append(nil), Properties: new(amqp.Properties),
	}
	if err := m.Properties.Decode(m.Props); err != nil {
		panic(err)
	}
	return m
}

// publish publishes what must be accepted.
func (r *rig) publish(exchange, key, body string, options ...option) Result {
	r.t.Helper()
	res, err := r.p.Publish(newMessage(exchange, key, body, options...))
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

// get takes the first message and acknowledges it; "" if there is none.
func (r *rig) get(queue string) string {
	r.t.Helper()
	d, _, ok, err := r.find(queue).Get(true)
	if err != nil {
		r.t.Fatal(err)
	}
	if !ok {
		return ""
	}
	return string(d.Record.Body)
}

// drain takes all messages.
func (r *rig) drain(queue string) []string {
	r.t.Helper()
	bodies := []string{}
	for {
		body := r.get(queue)
		if body == "" {
			return bodies
		}
		bodies = append(bodies, body)
	}
}

func (r *rig) wantDrained(queue string, want ...string) {
	r.t.Helper()
	if got := r.drain(queue); !slices.Equal(got, want) {
		r.t.Errorf("queue %s: got %d messages %.500q, want %d %.500q", queue, len(got), got[:min(len(got), 20)],
			len(want), want[:min(len(want), 20)])
	}
}

// wantError checks code and part of the text of a protocol error.
func wantError(t testing.TB, err error, code uint16, text string) {
	t.Helper()
	var e *amqp.Error
	if !errors.As(err, &e) {
		t.Errorf("got error %v, want %d %q", err, code, text)
		return
	}
	if e.Code != code || !strings.Contains(e.Text, text) {
		t.Errorf("got %d %q, want %d %q", e.Code, e.Text, code, text)
	}
}

// fakeReceiver is a consumer's far end that remembers what it gets.
type fakeReceiver struct {
	mu        sync.Mutex
	credit    int  // negative: unlimited
	gone      bool // gives no credit and takes nothing
	deaf      bool // gives credit and takes nothing
	cancelled bool
	got       []received
	arrived   func(d *Delivery) // called without lock, if set
}

// received is a copy of a delivery.
type received struct {
	pos         uint64
	body        string
	exchange    string
	key         string
	redelivered bool
	headers     amqp.Table
	props       amqp.Properties
}

func copyDelivery(d *Delivery) received {
	r := received{
		pos: d.Pos, body: string(d.Record.Body), redelivered: d.Redelivered,
		exchange: string(d.Record.Exchange), key: string(d.Record.RoutingKey),
	}
	if err := r.props.Decode(slices.Clone(d.Record.Props)); err != nil {
		panic(err)
	}
	if len(r.props.Headers) > 0 {
		r.headers, _ = r.props.Headers.Decode()
	}
	return r
}

func (f *fakeReceiver) Reserve() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.credit == 0 || f.gone {
		return false
	}
	if f.credit > 0 {
		f.credit--
	}
	return true
}

func (f *fakeReceiver) Release() { f.add(1) }

func (f *fakeReceiver) add(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.credit >= 0 {
		f.credit += n
	}
}

func (f *fakeReceiver) Deliver(d *Delivery) bool {
	f.mu.Lock()
	if f.gone || f.deaf {
		f.mu.Unlock()
		return false
	}
	f.got = append(f.got, copyDelivery(d))
	arrived := f.arrived
	f.mu.Unlock()
	if arrived != nil {
		arrived(d)
	}
	return true
}

func (f *fakeReceiver) Cancelled() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancelled = true
}

// take returns what came since the last take.
func (f *fakeReceiver) take() []received {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.got
	f.got = nil
	return got
}

func (f *fakeReceiver) bodies() []string {
	bodies := []string{}
	for _, d := range f.take() {
		bodies = append(bodies, d.body)
	}
	return bodies
}

// consume adds a consumer with credit and wakes it.
func (r *rig) consume(queue string, credit int, spec ConsumerSpec) (*fakeReceiver, *Consumer) {
	r.t.Helper()
	f := &fakeReceiver{credit: credit}
	spec.Receiver = f
	c, err := r.find(queue).Consume(spec)
	if err != nil {
		r.t.Fatal(err)
	}
	c.Wake()
	return f, c
}

func wantBodies(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, i)
	}
	return names
}
