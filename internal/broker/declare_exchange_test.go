package broker

import (
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

func TestExchangeDeclareRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exchange("x", "direct", amqp.Table{"alternate-exchange": "ae"})
	r.delayedExchange("d", "topic")
	durable := func(name, kind string, args amqp.Table) ExchangeSpec {
		return ExchangeSpec{Name: name, Type: kind, Durable: true, Args: args}
	}
	ae := amqp.Table{"alternate-exchange": "ae"}
	for _, c := range []struct {
		name string
		spec ExchangeSpec
		code uint16
		text string
	}{
		{"default", durable("", "direct", nil), amqp.AccessRefused, "operation not permitted on the default exchange"},
		{"reserved", durable("amq.mine", "direct", nil), amqp.AccessRefused, "exchange name 'amq.mine' contains reserved prefix 'amq.*'"},
		{"unknown type", durable("y", "nonsense", nil), amqp.PreconditionFailed, "unknown exchange type 'nonsense'"},
		{"passive and not there", ExchangeSpec{Name: "y", Passive: true}, amqp.NotFound, "no exchange 'y' in vhost '/'"},
		{"other type", durable("x", "fanout", ae), amqp.PreconditionFailed,
			"inequivalent arg 'type' for exchange 'x' in vhost '/': received 'fanout' but current is 'direct'"},
		{"not durable", ExchangeSpec{Name: "x", Type: "direct", Args: ae}, amqp.PreconditionFailed,
			"inequivalent arg 'durable' for exchange 'x' in vhost '/': received 'false' but current is 'true'"},
		{"auto-delete", ExchangeSpec{Name: "x", Type: "direct", Durable: true, AutoDelete: true, Args: ae},
			amqp.PreconditionFailed, "inequivalent arg 'auto_delete'"},
		{"internal", ExchangeSpec{Name: "x", Type: "direct", Durable: true, Internal: true, Args: ae},
			amqp.PreconditionFailed, "inequivalent arg 'internal'"},
		{"no alternate exchange", durable("x", "direct", nil), amqp.PreconditionFailed,
			"inequivalent arg 'alternate-exchange' for exchange 'x' in vhost '/': " +
				"received none but current is the value 'ae' of type 'longstr'"},
		{"alternate exchange is a number", durable("y", "direct", amqp.Table{"alternate-exchange": int32(1)}),
			amqp.PreconditionFailed, "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'y' in vhost '/'"},
		{"other inner type", durable("d", delayedType, amqp.Table{"x-delayed-type": "direct"}), amqp.PreconditionFailed,
			"inequivalent arg 'x-delayed-type' for exchange 'd' in vhost '/': " +
				"received 'direct' but current is 'topic'"},
		{"no inner type", durable("y", delayedType, nil), amqp.PreconditionFailed,
			"invalid arg 'x-delayed-type' for exchange 'y' in vhost '/': received none"},
		{"inner type is a number", durable("y", delayedType, amqp.Table{"x-delayed-type": int32(1)}),
			amqp.PreconditionFailed, "received the value '1' of type 'signedint'"},
		{"inner type is delayed", durable("y", delayedType, amqp.Table{"x-delayed-type": delayedType}),
			amqp.PreconditionFailed, "received the value 'x-delayed-message' of type 'longstr'"},
		{"unknown inner type", durable("y", delayedType, amqp.Table{"x-delayed-type": "nonsense"}),
			amqp.PreconditionFailed, "x-delayed-type"},
	} {
		t.Run(c.name, func(t *testing.T) { wantError(t, r.ExchangeDeclare(c.spec), c.code, c.text) })
	}
	if r.vhost.exchange("y") != nil {
		t.Error("a refused exchange was created")
	}
}

func TestExchangeDeclareOfWhatIsThere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exchange("x", "topic", nil)
	r.exchange("x", "topic", amqp.Table{"other": "arguments do not count"})
	r.exchange("x\r\n", "topic", nil)
	r.exchange("amq.topic", "topic", nil)
	if err := r.ExchangeDeclare(ExchangeSpec{Name: "amq.fanout", Passive: true}); err != nil {
		t.Error(err)
	}
}

func TestExchangeDelete(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exchange("x", "direct", nil)
	r.exchange("y", "direct", nil)
	r.queue("q", nil)
	r.bind("q", "x", "k")
	r.bindExchange("x", "y", "k")
	wantError(t, r.ExchangeDelete("", false), amqp.AccessRefused, "operation not permitted on the default exchange")
	wantError(t, r.ExchangeDelete("amq.direct", false), amqp.AccessRefused,
		"deletion of system exchange 'amq.direct' in vhost '/' not allowed")
	wantError(t, r.ExchangeDelete("x", true), amqp.PreconditionFailed, "exchange 'x' in vhost '/' in use")
	if err := r.ExchangeDelete("x", false); err != nil {
		t.Error(err)
	}
	if err := r.ExchangeDelete("x", false); err != nil {
		t.Errorf("deleting what is not there: %v", err)
	}
	if r.publish("y", "k", "a").Routed {
		t.Error("a binding to a deleted exchange leads somewhere")
	}
	_, err := r.p.Publish(newMessage("x", "k", "a"))
	wantError(t, err, amqp.NotFound, "no exchange 'x' in vhost '/'")
	r.exchange("x", "direct", nil)
	if r.publish("x", "k", "a").Routed {
		t.Error("an exchange declared anew has the bindings of the old one")
	}
}

func TestAutoDeleteExchangeGoesWithLastBinding(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range []string{"a", "b"} {
		err := r.ExchangeDeclare(ExchangeSpec{Name: name, Type: "fanout", AutoDelete: true})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.queue("q", nil)
	r.queue("p", nil)
	r.bindExchange("b", "a", "")
	r.bind("q", "b", "")
	r.bind("p", "b", "")
	if _, err := r.QueueDelete("p", false, false); err != nil {
		t.Fatal(err)
	}
	if r.vhost.exchange("b") == nil {
		t.Fatal("gone with a binding left")
	}
	if err := r.QueueUnbind(Binding{Source: "b", Destination: "q"}); err != nil {
		t.Fatal(err)
	}
	// b goes with its last binding, and with it the last binding of a.
	for _, name := range []string{"a", "b"} {
		if r.vhost.exchange(name) != nil {
			t.Errorf("exchange %s is still there", name)
		}
	}
}
