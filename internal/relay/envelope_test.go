package relay

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestWrappedAndBack: what waits on the wheel has nothing that RabbitMQ acts upon, and comes out of
// it as it went in.
func TestWrappedAndBack(t *testing.T) {
	t.Parallel()
	d := amqp.Delivery{
		Exchange: "x", RoutingKey: "k", Expiration: "700", UserId: "alice", Priority: 3, MessageId: "m",
		Headers: amqp.Table{"x-delay": int8(100), "CC": []any{"cc"}, "x-duepost-bcc": []any{"bcc"},
			"x-delivery-count": int64(2), "x-duepost-due": int64(1), "mine": amqp.Table{"a": true}},
		Body: []byte("body"),
	}
	it := arrive(d, now, "id")
	if it.reason != "" || it.due != now+101 {
		t.Fatalf("due in %d, parked for %q, want 101, for now is rounded up", it.due-now, it.reason)
	}
	w := it.waitsIn(slot{0, 7})
	if w.Expiration != "" || w.UserId != "" || w.Headers["CC"] != nil || w.Headers["BCC"] != nil {
		t.Errorf("RabbitMQ acts upon %+v", w)
	}
	back := unwrap(amqp.Delivery{Headers: with(w.Headers, amqp.Table{"x-acquired-count": int64(1)}),
		Priority: w.Priority, MessageId: w.MessageId, Body: w.Body})
	if back.slot != 7 || back.due != it.due || back.exchange != "x" || back.key != "k" || back.id != "id" || back.reason != "" {
		t.Errorf("came back as %+v", back)
	}
	want := amqp.Publishing{
		Headers: amqp.Table{"x-delay": int64(-100), "CC": []any{"cc"}, "BCC": []any{"bcc"},
			"mine": amqp.Table{"a": true}, headerID: "id"},
		Expiration: "700", UserId: "alice", Priority: 3, MessageId: "m", Body: []byte("body"),
	}
	if diff := cmp.Diff(want, back.released()); diff != "" {
		t.Errorf("released (-want +got):\n%s", diff)
	}
}

func TestArrive(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		headers    amqp.Table
		expiration string
		due        int64 // from now
		fault      string
	}{
		"text":             {amqp.Table{"x-delay": "5"}, "", 6, ""},
		"instant":          {amqp.Table{"x-opt-delivery-time": now + 9}, "", 9, ""},
		"stamped":          {amqp.Table{"x-delay": 500, "timestamp_in_ms": now - 200}, "", 301, ""},
		"by the gateway":   {amqp.Table{"x-delay": 500, "x-duepost-accepted": now - 200, "timestamp_in_ms": now}, "", 300, ""},
		"from the future":  {amqp.Table{"x-delay": 500, "timestamp_in_ms": now + 9000}, "", 501, ""},
		"served":           {amqp.Table{"x-delay": int64(-5)}, "", 0, ""},
		"none":             {amqp.Table{"x-delay": 0}, "", 0, ""},
		"table":            {amqp.Table{"x-delay": amqp.Table{}}, "", 0, "'x-delay' has type"},
		"void":             {amqp.Table{"x-delay": nil}, "", 0, "'x-delay' has type void"},
		"decimal":          {amqp.Table{"x-delay": amqp.Decimal{}}, "", 0, "'x-delay' has type"},
		"too long":         {amqp.Table{"x-delay": int64(1) << 60}, "", 0, "100 years"},
		"bad expiration":   {amqp.Table{"x-delay": 5}, "+5", 0, "expiration \"+5\""},
		"no number":        {amqp.Table{"x-delay": 5}, "soon", 0, "expiration \"soon\""},
		"great expiration": {amqp.Table{"x-delay": 5}, "4294967296", 0, "expiration"},
	} {
		it := arrive(amqp.Delivery{Headers: tc.headers, Expiration: tc.expiration}, now, "id")
		if it.due-now != tc.due || !strings.Contains(it.reason, tc.fault) || (it.reason == "") != (tc.fault == "") {
			t.Errorf("%s: due in %d, parked for %q; want %d and %q", name, it.due-now, it.reason, tc.due, tc.fault)
		}
	}
}

// TestRescued: what dead-lettering wrote in the intake is undone, what it wrote before is not.
func TestRescued(t *testing.T) {
	t.Parallel()
	earlier := amqp.Table{"queue": "theirs", "reason": "rejected"}
	d := rescued(amqp.Delivery{Exchange: "duepost.rescue", RoutingKey: "k", Headers: amqp.Table{
		"x-death": []any{amqp.Table{"queue": "duepost.intake", "exchange": "x", "routing-keys": []any{"first", "cc"},
			"original-expiration": "700"}, earlier},
		"x-first-death-queue": "theirs", "x-first-death-reason": "rejected",
		"x-last-death-queue": "duepost.intake", "x-last-death-reason": "expired", "x-last-death-exchange": "x",
	}})
	want := amqp.Delivery{Exchange: "x", RoutingKey: "first", Expiration: "700", Headers: amqp.Table{
		"x-death": []any{earlier}, "x-first-death-queue": "theirs", "x-first-death-reason": "rejected"}}
	if diff := cmp.Diff(want.Headers, d.Headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if d.Exchange != want.Exchange || d.RoutingKey != want.RoutingKey || d.Expiration != want.Expiration {
		t.Errorf("got %q, %q, %q", d.Exchange, d.RoutingKey, d.Expiration)
	}
}

func TestUserID(t *testing.T) {
	t.Parallel()
	it := &item{userID: "alice"}
	if it.faultOf("relay", true) != "" || it.faultOf("alice", false) != "" || (&item{}).faultOf("relay", false) != "" {
		t.Error("parked though RabbitMQ takes it")
	}
	if fault := it.faultOf("relay", false); !strings.Contains(fault, "impersonator") {
		t.Errorf("got %q", fault)
	}
}
