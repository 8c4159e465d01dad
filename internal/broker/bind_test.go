package broker

import (
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

func TestBindRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil)
	const onDefault = "operation not permitted on the default exchange"
	wantError(t, r.QueueBind(Binding{Source: "", Destination: "q"}), amqp.AccessRefused, onDefault)
	wantError(t, r.QueueUnbind(Binding{Source: "", Destination: "q"}), amqp.AccessRefused, onDefault)
	wantError(t, r.ExchangeBind(Binding{Source: "amq.direct", Destination: ""}), amqp.AccessRefused, onDefault)
	wantError(t, r.QueueBind(Binding{Source: "x", Destination: "q"}), amqp.NotFound, "no exchange 'x' in vhost '/'")
	wantError(t, r.QueueBind(Binding{Source: "x", Destination: "p"}), amqp.NotFound, "no exchange 'x' in vhost '/'")
	wantError(t, r.QueueBind(Binding{Source: "amq.direct", Destination: "p"}), amqp.NotFound, "no queue 'p' in vhost '/'")
	wantError(t, r.ExchangeBind(Binding{Source: "amq.direct", Destination: "x"}), amqp.NotFound, "no exchange 'x'")
	wantError(t, r.QueueBind(Binding{Source: "amq.headers", Destination: "q", Args: amqp.Table{"x-match": "some"}}),
		amqp.PreconditionFailed, "Invalid x-match field value <<\"some\">>; expected all, any, all-with-x, or any-with-x")
	wantError(t, r.QueueBind(Binding{Source: "amq.headers", Destination: "q", Args: amqp.Table{"x-match": true}}),
		amqp.PreconditionFailed, "Invalid x-match field type bool (value true); expected longstr")
	for _, b := range []Binding{
		{Source: "x", Destination: "q"}, {Source: "amq.direct", Destination: "p"}, {Source: "amq.direct", Destination: "q"},
	} {
		if err := r.QueueUnbind(b); err != nil {
			t.Errorf("unbind of what is not bound: %v", err)
		}
	}
}

func TestBindingsDifferByKeyAndArguments(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil)
	one := Binding{Source: "amq.direct", Destination: "q", RoutingKey: "k", Args: amqp.Table{"n": int32(1)}}
	two := Binding{Source: "amq.direct", Destination: "q", RoutingKey: "k", Args: amqp.Table{"n": int32(2)}}
	for _, b := range []Binding{one, one, two} {
		if err := r.QueueBind(b); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Stats().Bindings; got != 2 {
		t.Errorf("got %d bindings, want 2", got)
	}
	r.publish("amq.direct", "k", "once")
	r.wantDrained("q", "once")
	for i, b := range []Binding{one, two} {
		if err := r.QueueUnbind(b); err != nil {
			t.Fatal(err)
		}
		if got := r.publish("amq.direct", "k", "m").Routed; got != (i == 0) {
			t.Errorf("after unbind %d: routed %t", i, got)
		}
	}
}
