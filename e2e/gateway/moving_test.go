package gateway

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/requirement"
	"github.com/duepost/duepost/internal/testbroker"
)

// TestMoving plays what docs/guide/move-to-the-relay.md says: ways to the relay and back, with
// messages that wait, on a RabbitMQ that has the old topology and the new one side by side.
func TestMoving(t *testing.T) {
	t.Parallel()
	all, err := testbroker.InstalledRabbitMQs()
	must(t, err)
	if len(all) == 0 {
		requirement.Missing(t, "RabbitMQ", "Debian package rabbitmq-server")
	}
	duepost, err := testbroker.BuildDuepost(t.Context(), "", t.TempDir())
	must(t, err)
	for _, installed := range all {
		t.Run(installed.Version, func(t *testing.T) {
			t.Parallel()
			b, err := installed.Start(t.Context(), testbroker.Options{Dir: t.TempDir(), Management: true})
			must(t, err)
			t.Cleanup(func() { must(t, b.Kill()) })
			p := startProgram(t, duepost, "relay", "--rabbitmq", b.URL(), "--management", "http://"+b.HTTPAddr, "--gateway", "127.0.0.1:0")
			p.url = "amqp://guest:guest@" + p.addr + "/"
			m := &move{program: duepost, broker: b.URL(), gateway: p}
			t.Run("from the plugin", m.fromThePlugin)
			t.Run("from wait queues", m.fromWaitQueues)
			t.Run("from a ladder", m.fromALadder)
		})
	}
}

// move is a broker with a relay and a gateway.
type move struct {
	program, broker string
	gateway         *gatewayProgram
}

// direct is a client of RabbitMQ itself.
func (m *move) direct(t *testing.T) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(m.broker)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return channel(t, conn)
}

// relay runs a verb of the relay's and returns what it prints.
func (m *move) relay(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(m.program, append([]string{"relay", "--rabbitmq", m.broker}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// fromThePlugin has an exchange under the name that is not the relay's, moves programs to the
// gateway, and back to RabbitMQ's own port while messages wait.
func (m *move) fromThePlugin(t *testing.T) {
	old := m.direct(t)
	// In the place of the plugin's, which is not installed here: an exchange of another type.
	must(t, old.ExchangeDeclare("orders", "direct", true, false, false, false, nil))
	q := queue(t, old, "orders.due", nil)
	must(t, old.QueueBind(q, "due", "orders", false, nil))

	ch := channel(t, m.gateway.dial(t))
	wantError(t, declare(ch, "orders", "direct", ""), 406, "inequivalent arg 'type' for exchange 'orders'")
	must(t, old.ExchangeDelete("orders", false, false))
	ch = channel(t, m.gateway.dial(t))
	must(t, declare(ch, "orders", "direct", ""))
	must(t, ch.QueueBind(q, "due", "orders", false, nil))
	delayed(t, ch, "orders", "due", "1", 1500)
	// Back: what waits comes to consumers on RabbitMQ's own port, under the longer name.
	if d := next(t, old, q); d.MessageId != "1" || d.Exchange != "orders.duepost" {
		t.Errorf("got %q from %q", d.MessageId, d.Exchange)
	}
	// An exchange that is deleted too early: what waits is parked, not lost.
	delayed(t, ch, "orders", "due", "2", 500)
	m.relay(t, "exchange", "delete", "orders")
	if d := next(t, old, "duepost.parked"); d.MessageId != "2" {
		t.Errorf("parked: got %q", d.MessageId)
	}
	must(t, old.ExchangeDeclare("orders", "direct", true, false, false, false, nil)) // the name is free
}

// fromWaitQueues has a queue with a time to live and a dead-letter exchange, and moves the publisher
// to a delayed exchange and back.
func (m *move) fromWaitQueues(t *testing.T) {
	ch := m.direct(t)
	must(t, ch.ExchangeDeclare("close", "direct", true, false, false, false, nil))
	q := queue(t, ch, "close.q", nil)
	must(t, ch.QueueBind(q, "order.close", "close", false, nil))
	wait := queue(t, ch, "wait.q", amqp.Table{"x-dead-letter-exchange": "close", "x-dead-letter-routing-key": "order.close"})
	waiting := func(id, ms string) {
		must(t, ch.Publish("", wait, false, false, amqp.Publishing{MessageId: id, Expiration: ms, DeliveryMode: amqp.Persistent}))
	}
	waiting("old long", "2500")
	waiting("old short", "500") // stands behind the long one

	m.relay(t, "exchange", "declare", "order.delay", "--type", "direct")
	must(t, ch.QueueBind(q, "order.close", "order.delay.duepost", false, nil))
	delayed(t, ch, "order.delay", "order.close", "new long", 1900)
	delayed(t, ch, "order.delay", "order.close", "new short", 900)
	waiting("back", "3000") // the publisher goes back, with messages in both
	in, err := ch.Consume(q, "", true, false, false, false, nil)
	must(t, err)
	// Which way is faster is chance: each has its own order.
	var byRelay, byQueue []string
	for range 5 {
		d := receive(t, in)
		if d.Headers["x-death"] != nil {
			byQueue = append(byQueue, d.MessageId)
		} else {
			byRelay = append(byRelay, d.MessageId)
		}
	}
	if !slices.Equal(byRelay, []string{"new short", "new long"}) || !slices.Equal(byQueue, []string{"old long", "old short", "back"}) {
		t.Errorf("by the relay came %q, by the wait queue %q", byRelay, byQueue)
	}
	n, err := ch.QueueDelete(wait, false, true, false) // if it is empty
	must(t, err)
	if n != 0 {
		t.Errorf("%d messages were left", n)
	}
	m.relay(t, "exchange", "delete", "order.delay")
}

// fromALadder has queues whose times to live are powers of two, each of which a message passes or
// goes around as its routing key says.
func (m *move) fromALadder(t *testing.T) {
	ch := m.direct(t)
	levels := []string{"ladder.0", "ladder.1"} // 500 ms and 1,000 ms
	must(t, ch.ExchangeDeclare("ladder.end", "topic", true, false, false, false, nil))
	q := queue(t, ch, "work", nil)
	must(t, ch.QueueBind(q, "#.work", "ladder.end", false, nil))
	below := "ladder.end"
	for i, name := range levels {
		must(t, ch.ExchangeDeclare(name, "topic", true, false, false, false, nil))
		queue(t, ch, name, amqp.Table{"x-message-ttl": int32(500 << i), "x-dead-letter-exchange": below})
		bit := strings.Repeat("*.", len(levels)-1-i)
		must(t, ch.QueueBind(name, bit+"1.#", name, false, nil))
		must(t, ch.ExchangeBind(below, bit+"0.#", name, false, nil))
		below = name
	}
	began := time.Now()
	must(t, ch.Publish("ladder.1", "1.1.work", false, false, amqp.Publishing{MessageId: "old"})) // 1,500 ms

	m.relay(t, "exchange", "declare", "later", "--type", "topic")
	must(t, ch.QueueBind(q, "#.work", "later.duepost", false, nil))
	delayed(t, ch, "later", "work", "new", 700)
	in, err := ch.Consume(q, "", true, false, false, false, nil)
	must(t, err)
	due := map[string]time.Duration{"new": 700 * time.Millisecond, "old": 1500 * time.Millisecond}
	for len(due) > 0 {
		d := receive(t, in)
		if least, took := due[d.MessageId], time.Since(began); least == 0 || took < least {
			t.Errorf("got %q after %v, want not before %v, and once", d.MessageId, took, least)
		}
		delete(due, d.MessageId)
	}
	for _, name := range levels {
		_, err := ch.QueueDelete(name, true, true, false) // if nobody uses it and it is empty
		must(t, err)
		must(t, ch.ExchangeDelete(name, false, false))
	}
}

// queue declares a durable queue.
func queue(t *testing.T, ch *amqp.Channel, name string, args amqp.Table) string {
	t.Helper()
	q, err := ch.QueueDeclare(name, true, false, false, false, args)
	must(t, err)
	return q.Name
}

// delayed publishes a message and waits until the broker has it.
func delayed(t *testing.T, ch *amqp.Channel, exchange, key, id string, ms int32) {
	t.Helper()
	must(t, ch.Confirm(false))
	confirm, err := ch.PublishWithDeferredConfirm(exchange, key, true, false, amqp.Publishing{
		MessageId: id, DeliveryMode: amqp.Persistent, Headers: amqp.Table{"x-delay": ms}})
	must(t, err)
	if !confirm.Wait() {
		t.Fatalf("%s: not confirmed", id)
	}
}
