package relay

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A message has the same name whenever it comes out of the intake, whichever relay takes it, and two
// messages have two.
func TestIdentity(t *testing.T) {
	t.Parallel()
	a, b := New(Config{}), New(Config{})
	first := amqp.Delivery{
		Exchange: "x", RoutingKey: "k", MessageId: "m", Body: []byte("body"),
		Headers: amqp.Table{"x-delay": int64(5), "a": int32(1), "b": "2", "c": amqp.Table{"d": true}},
	}
	again := first
	again.DeliveryTag, again.Redelivered = 7, true
	again.Headers = amqp.Table{"x-delivery-count": int64(3), "x-acquired-count": int64(3), "c": amqp.Table{"d": true}}
	for name, v := range first.Headers {
		again.Headers[name] = v
	}
	id := a.identity(first)
	if got := b.identity(again); got != id {
		t.Errorf("again it is %q, want %q", got, id)
	}
	for what, change := range map[string]func(*amqp.Delivery){
		"exchange":   func(d *amqp.Delivery) { d.Exchange = "y" },
		"key":        func(d *amqp.Delivery) { d.RoutingKey = "l" },
		"message-id": func(d *amqp.Delivery) { d.MessageId = "n" },
		"body":       func(d *amqp.Delivery) { d.Body = []byte("other") },
		"header":     func(d *amqp.Delivery) { d.Headers = amqp.Table{"x-delay": int64(6)} },
		"expiration": func(d *amqp.Delivery) { d.Expiration = "5" },
	} {
		other := first
		change(&other)
		if got := a.identity(other); got == id {
			t.Errorf("with another %s it is the same", what)
		}
	}
	first.MessageId = ""
	if x, y := a.identity(first), a.identity(first); x == y {
		t.Errorf("two messages without a message-id are both %q", x)
	}
}
