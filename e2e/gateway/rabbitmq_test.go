package gateway

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/gateway"
	"github.com/duepost/duepost/internal/relay/topology"
	"github.com/duepost/duepost/internal/requirement"
	"github.com/duepost/duepost/internal/testbroker"
)

func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	all, err := testbroker.InstalledRabbitMQs()
	must(t, err)
	if len(all) == 0 {
		requirement.Missing(t, "RabbitMQ", "Debian package rabbitmq-server")
	}
	for _, installed := range all {
		t.Run(installed.Version, func(t *testing.T) {
			t.Parallel()
			b, err := installed.Start(t.Context(), testbroker.Options{Dir: t.TempDir()})
			must(t, err)
			t.Cleanup(func() {
				if err := b.Kill(); err != nil {
					t.Error(err)
				}
			})
			r := &rig{broker: b, addr: serve(t, b)}
			// In this order: the last ones disturb the others.
			for _, story := range []struct {
				name string
				play func(*rig, *testing.T)
			}{
				{"the type is there", (*rig).theTypeIsThere}, {"bindings", (*rig).bindings},
				{"mandatory", (*rig).mandatory}, {"permissions", (*rig).permissions},
				{"halves", (*rig).halves}, {"history", (*rig).history},
				{"large bodies", (*rig).largeBodies}, {"heartbeats", (*rig).heartbeats},
				{"blocked", (*rig).blocked}, {"killed", (*rig).killed},
			} {
				t.Run(story.name, func(t *testing.T) { story.play(r, t) })
			}
		})
	}
}

// rig is a broker and a gateway in front of it.
type rig struct {
	broker *testbroker.Broker
	addr   string
}

// serve starts a gateway in front of b.
func serve(t *testing.T, b *testbroker.Broker) (addr string) {
	t.Helper()
	upstream, err := gateway.NewUpstream([]string{b.URL()}, nil)
	must(t, err)
	made := gateway.NewBrokered(upstream.Connect)
	g, err := gateway.New(gateway.Config{Topology: made, Dial: upstream.Dial})
	must(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- g.Serve(ln) }()
	t.Cleanup(func() {
		must(t, g.Close())
		if err := <-served; !errors.Is(err, gateway.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
		_ = made.Close() // of a broker that was killed
	})
	return ln.Addr().String()
}

// connect is a client through the gateway.
func (r *rig) connect(t *testing.T, user string) *amqp.Connection {
	t.Helper()
	return r.connectWith(t, user, 10*time.Second)
}

func (r *rig) connectWith(t *testing.T, user string, heartbeat time.Duration) *amqp.Connection {
	t.Helper()
	conn, err := amqp.DialConfig("amqp://"+user+":"+user+"@"+r.addr+"/",
		amqp.Config{Heartbeat: heartbeat, Locale: "en_US"})
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func channel(t *testing.T, conn *amqp.Connection) *amqp.Channel {
	t.Helper()
	ch, err := conn.Channel()
	must(t, err)
	return ch
}

func declare(ch *amqp.Channel, name, kind, alternate string) error {
	args := amqp.Table{"x-delayed-type": kind}
	if alternate != "" {
		args["alternate-exchange"] = alternate
	}
	return ch.ExchangeDeclare(name, "x-delayed-message", true, false, false, false, args)
}

// theTypeIsThere plays a program that was written for the plugin.
func (r *rig) theTypeIsThere(t *testing.T) {
	ch := channel(t, r.connect(t, "guest"))
	must(t, declare(ch, "orders", "direct", ""))
	must(t, declare(ch, "orders", "direct", "")) // as each start of a program does
	q, err := ch.QueueDeclare("orders.due", true, false, false, false, nil)
	must(t, err)
	must(t, ch.QueueBind(q.Name, "order", "orders", false, nil))
	must(t, ch.Confirm(false))
	for _, headers := range []amqp.Table{{"x-delay": int32(30_000), "BCC": []any{"b"}}, nil} {
		confirm, err := ch.PublishWithDeferredConfirm("orders", "order", true, false, amqp.Publishing{
			ContentType: "application/json", Headers: headers, Body: []byte("{}"), Expiration: "1000",
		})
		must(t, err)
		if !confirm.Wait() {
			t.Error("not confirmed")
		}
	}
	if d := next(t, ch, q.Name); d.Exchange != "orders" || d.Headers != nil || d.Expiration != "1000" {
		t.Errorf("without a delay: got %+v", d)
	}
	// What a relay takes from here on.
	d := next(t, ch, topology.Intake)
	for _, name := range []string{"x-delay", "x-duepost-accepted", "x-duepost-bcc"} {
		if d.Headers[name] == nil {
			t.Errorf("intake: no header %s in %v", name, d.Headers)
		}
	}
	if d.Expiration != "" || d.Headers["x-duepost-expiration"] != "1000" {
		t.Errorf("intake: expiration %q, headers %v", d.Expiration, d.Headers)
	}
	must(t, ch.Publish("orders.duepost", "order", false, false, amqp.Publishing{}))
	if d := next(t, ch, q.Name); d.Exchange != "orders" {
		t.Errorf("released: exchange is %q", d.Exchange)
	}
	wantError(t, declare(ch, "orders", "topic", ""), 406, "inequivalent arg 'type'")
}

func (r *rig) bindings(t *testing.T) {
	conn := r.connect(t, "guest")
	ch := channel(t, conn)
	must(t, declare(ch, "b", "topic", "amq.fanout"))
	must(t, ch.ExchangeDeclare("after", "fanout", false, false, false, false, nil))
	must(t, ch.ExchangeBind("after", "a.#", "b", false, nil))
	q, err := ch.QueueDeclare("", false, false, true, false, nil)
	must(t, err)
	must(t, ch.QueueBind(q.Name, "", "after", false, nil))
	must(t, ch.Publish("b", "a.x", false, false, amqp.Publishing{}))
	// What came over an exchange keeps the name it was published to.
	if d := next(t, ch, q.Name); d.Exchange != "b" {
		t.Errorf("got exchange %q", d.Exchange)
	}
	wantError(t, ch.ExchangeDelete("b", true, false), 406, "in use")
	ch = channel(t, conn)
	must(t, ch.ExchangeUnbind("after", "a.#", "b", false, nil))
	must(t, ch.ExchangeDelete("b", true, false))
	wantError(t, ch.ExchangeDeclarePassive("b", "headers", true, false, false, false, nil), 404, "no exchange 'b'")
	ch = channel(t, conn)
	must(t, ch.ExchangeDeclare("taken", "direct", false, true, false, false, nil))
	wantError(t, declare(ch, "taken", "direct", ""), 406, "'taken'")
	wantError(t, declare(channel(t, conn), "b", "", ""), 406, "type is")
}

func (r *rig) mandatory(t *testing.T) {
	ch := channel(t, r.connect(t, "guest"))
	must(t, declare(ch, "m", "direct", ""))
	returned := ch.NotifyReturn(make(chan amqp.Return, 1))
	must(t, ch.Publish("m", "nobody", true, false, amqp.Publishing{MessageId: "1"}))
	if got := <-returned; got.Exchange != "m" || got.MessageId != "1" || got.ReplyCode != 312 {
		t.Errorf("got %+v", got)
	}
}

// permissions shows that the client's own count, not the relay's.
func (r *rig) permissions(t *testing.T) {
	for _, args := range [][]string{
		{"add_user", "maker", "maker"}, {"set_permissions", "maker", "^mine", "^mine", "^mine"},
		{"add_user", "reader", "reader"}, {"set_permissions", "reader", "^$", "^$", ".*"},
	} {
		_, err := r.broker.Control(t.Context(), args...)
		must(t, err)
	}
	maker := r.connect(t, "maker")
	must(t, declare(channel(t, maker), "mine", "direct", ""))
	wantError(t, declare(channel(t, maker), "other", "direct", ""), 403, "'other'")
	wantError(t, declare(channel(t, maker), "mine2", "direct", "amq.topic"), 403, "'amq.topic'")
	reader := r.connect(t, "reader")
	wantError(t, declare(channel(t, reader), "mine", "direct", ""), 403, "'mine'")
	wantError(t, channel(t, reader).ExchangeDelete("mine", false, false), 403, "mine")
	_, err := amqp.Dial("amqp://maker:wrong@" + r.addr + "/")
	wantError(t, err, 403, "")
}

// halves shows that a declaration that was refused leaves nothing, and that one that was cut off is
// completed by the next.
func (r *rig) halves(t *testing.T) {
	for _, args := range [][]string{
		{"add_user", "narrow", "narrow"}, {"set_permissions", "narrow", "^narrow$", "^narrow", "^narrow"},
	} {
		_, err := r.broker.Control(t.Context(), args...)
		must(t, err)
	}
	conn := r.connect(t, "guest")
	narrow := r.connect(t, "narrow")
	wantError(t, declare(channel(t, narrow), "narrow", "direct", ""), 403, "'narrow.duepost'")
	ch := channel(t, conn) // the client was told when all was cleared up
	wantError(t, ch.ExchangeDeclarePassive("narrow", "headers", true, false, false, false, nil), 404, "'narrow'")
	must(t, declare(channel(t, conn), "narrow", "direct", ""))
	wantError(t, declare(channel(t, narrow), "narrow", "direct", ""), 403, "'narrow.duepost'")
	ch = channel(t, conn)
	// What is whole is not cleared up.
	must(t, ch.ExchangeDeclarePassive("narrow", "headers", true, false, false, false, nil))

	must(t, ch.ExchangeDeclare("half", "headers", true, false, false, false, amqp.Table(topology.OuterArguments(
		topology.Exchange{Name: "half", Type: "direct"}))))
	must(t, declare(ch, "half", "direct", ""))
	q, err := ch.QueueDeclare("", false, false, true, false, nil)
	must(t, err)
	must(t, ch.QueueBind(q.Name, "k", "half", false, nil))
	must(t, ch.Publish("half", "k", false, false, amqp.Publishing{MessageId: "plain"}))
	if d := next(t, ch, q.Name); d.MessageId != "plain" {
		t.Errorf("got %q", d.MessageId)
	}
	must(t, ch.Publish("half", "k", false, false, amqp.Publishing{MessageId: "delayed", Headers: amqp.Table{"x-delay": 1}}))
	if d := next(t, ch, topology.Intake); d.MessageId != "delayed" {
		t.Errorf("intake: got %q", d.MessageId)
	}
}

// history shows the names in what was dead-lettered.
func (r *rig) history(t *testing.T) {
	ch := channel(t, r.connect(t, "guest"))
	must(t, declare(ch, "h", "fanout", ""))
	dead, err := ch.QueueDeclare("", false, false, true, false, nil)
	must(t, err)
	q, err := ch.QueueDeclare("", false, false, true, false, amqp.Table{
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.Name})
	must(t, err)
	must(t, ch.QueueBind(q.Name, "", "h", false, nil))
	must(t, ch.Publish("h.duepost", "", false, false, amqp.Publishing{Expiration: "1", MessageId: "m"}))
	d := next(t, ch, dead.Name)
	deaths, _ := d.Headers["x-death"].([]any)
	if len(deaths) != 1 || deaths[0].(amqp.Table)["exchange"] != "h" || d.Headers["x-first-death-exchange"] != "h" {
		t.Errorf("got %v", d.Headers)
	}
}

func (r *rig) largeBodies(t *testing.T) {
	ch := channel(t, r.connect(t, "guest"))
	must(t, declare(ch, "large", "fanout", ""))
	q, err := ch.QueueDeclare("", false, false, true, false, nil)
	must(t, err)
	must(t, ch.QueueBind(q.Name, "", "large", false, nil))
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	must(t, ch.Publish("large", "", false, false, amqp.Publishing{Body: body}))
	if d := next(t, ch, q.Name); !bytes.Equal(d.Body, body) {
		t.Errorf("got %d octets, or others", len(d.Body))
	}
}

// heartbeats lets a client be silent for longer than either side suffers without any.
func (r *rig) heartbeats(t *testing.T) {
	closed := r.connectWith(t, "guest", 3*time.Second).NotifyClose(make(chan *amqp.Error, 1))
	select {
	case err := <-closed:
		t.Errorf("connection closed: %v", err)
	case <-time.After(12 * time.Second):
	}
}

// blocked shows connection.blocked, while which others go on.
func (r *rig) blocked(t *testing.T) {
	conn := r.connect(t, "guest")
	ch := channel(t, conn)
	blockings := conn.NotifyBlocked(make(chan amqp.Blocking, 2))
	_, err := r.broker.Control(t.Context(), "set_vm_memory_high_watermark", "0.000001")
	must(t, err)
	must(t, ch.Publish("amq.fanout", "", false, false, amqp.Publishing{}))
	if b := <-blockings; !b.Active {
		t.Errorf("got %+v", b)
	}
	_, err = r.broker.Control(t.Context(), "set_vm_memory_high_watermark", "0.8")
	must(t, err)
	if b := <-blockings; b.Active {
		t.Errorf("got %+v", b)
	}
}

// killed shows that clients see a broker end, and that the gateway serves again when it is back.
func (r *rig) killed(t *testing.T) {
	closed := r.connect(t, "guest").NotifyClose(make(chan *amqp.Error, 1))
	must(t, r.broker.Kill())
	<-closed
	if _, err := amqp.Dial("amqp://guest:guest@" + r.addr + "/"); err == nil {
		t.Error("connected though there is no broker")
	}
	must(t, r.broker.Start(t.Context()))
	ch := channel(t, r.connect(t, "guest"))
	must(t, declare(ch, "orders", "direct", ""))
	must(t, ch.QueueBind("orders.due", "again", "orders", false, nil))
}

// next takes one message of a queue.
func next(t *testing.T, ch *amqp.Channel, queue string) amqp.Delivery {
	t.Helper()
	in, err := ch.Consume(queue, queue, false, false, false, false, nil)
	must(t, err)
	select {
	case d := <-in:
		must(t, d.Ack(false))
		must(t, ch.Cancel(queue, false))
		return d
	case <-time.After(15 * time.Second):
		t.Fatalf("queue %q: nothing came in 15 s", queue)
		return amqp.Delivery{}
	}
}

func wantError(t *testing.T, err error, code int, text string) {
	t.Helper()
	var e *amqp.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Reason, text) {
		t.Errorf("got %v, want code %d and %q", err, code, text)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
