package e2e

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestKeys replaces and cancels what waits by the publisher's key, with any client's means,
// over a kill of the broker.
func TestKeys(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	ch := keyChannel(t, b)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(ch.ExchangeDeclare("keys", "x-delayed-message", true, false, false, false, amqp.Table{"x-delayed-type": "fanout"}))
	_, err := ch.QueueDeclare("keys", true, false, false, false, nil)
	must(err)
	must(ch.QueueBind("keys", "", "keys", false, nil))
	must(ch.Confirm(false))
	returns := ch.NotifyReturn(make(chan amqp.Return, 1))

	publish := func(body string, h amqp.Table) {
		t.Helper()
		c, err := ch.PublishWithDeferredConfirm("keys", "", true, false, amqp.Publishing{Headers: h, Body: []byte(body)})
		must(err)
		if ok, err := c.WaitContext(t.Context()); !ok || err != nil {
			t.Fatalf("publish %s: confirmed %v, %v", body, ok, err)
		}
	}
	wantReturn := func(body string) {
		t.Helper()
		select {
		case r := <-returns: // it came before the confirm
			if string(r.Body) != body || r.ReplyCode != 312 || r.ReplyText != "NOT_PENDING" {
				t.Fatalf("returned %d %s %q", r.ReplyCode, r.ReplyText, r.Body)
			}
		default:
			t.Fatalf("%s was not returned before its confirm", body)
		}
	}
	publish("too early", amqp.Table{"x-delay": 500, "x-delay-key": "replaced"})
	publish("replaced", amqp.Table{"x-delay": 3_600_000, "x-delay-key": "replaced"})
	publish("cancelled", amqp.Table{"x-delay": 500, "x-delay-key": "cancelled"})
	publish("cancel", amqp.Table{"x-delay-key": "cancelled", "x-delay-cancel": true})
	publish("cancel again", amqp.Table{"x-delay-key": "cancelled", "x-delay-cancel": true})
	wantReturn("cancel again")

	b.kill(t)
	b.start(t)
	ch = keyChannel(t, b)
	must(ch.Confirm(false))
	returns = ch.NotifyReturn(make(chan amqp.Return, 1))
	publish("last", amqp.Table{"x-delay": 500, "x-delay-key": "replaced"})
	publish("cancel after the kill", amqp.Table{"x-delay-key": "cancelled", "x-delay-cancel": true})
	wantReturn("cancel after the kill")
	deliveries, err := ch.Consume("keys", "", true, false, false, false, nil)
	must(err)
	publish("end", amqp.Table{"x-delay": 1500})
	for _, want := range []string{"last", "end"} {
		select {
		case d := <-deliveries:
			if string(d.Body) != want {
				t.Fatalf("got %q, want %q", d.Body, want)
			}
		case <-time.After(readyWithin):
			t.Fatalf("%q did not come", want)
		}
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	must(ch.Publish("keys", "", false, false, amqp.Publishing{Headers: amqp.Table{"x-delay-key": int32(1)}}))
	if err := <-closed; err == nil || err.Code != amqp.PreconditionFailed {
		t.Fatalf("a key that is no text: channel closed with %v", err)
	}
}

func keyChannel(t *testing.T, b *broker) *amqp.Channel {
	t.Helper()
	ch, err := b.dial(t).Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}
