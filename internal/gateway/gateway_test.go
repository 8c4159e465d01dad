package gateway

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestProgramThatDeclaresTheDelayedTypeWorksUnchanged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.topology.relay(t)
	ch := r.channel(t)
	must(t, declareDelayed(ch, "orders", "direct"))
	q, err := ch.QueueDeclare("orders.due", true, false, false, false, nil)
	must(t, err)
	must(t, ch.QueueBind(q.Name, "order", "orders", false, nil))
	in, err := ch.Consume(q.Name, "", true, false, false, false, nil)
	must(t, err)

	before := time.Now()
	for _, headers := range []amqp091.Table{{"x-delay": int32(5), "a": "b"}, nil} {
		must(t, ch.Publish("orders", "order", false, false, amqp091.Publishing{
			Headers: headers, Body: []byte("42"), Expiration: "60000",
		}))
		d := receive(t, in)
		if d.Exchange != "orders" || d.RoutingKey != "order" || string(d.Body) != "42" {
			t.Errorf("got exchange %q, key %q, body %q", d.Exchange, d.RoutingKey, d.Body)
		}
		accepted, marked := d.Headers["x-duepost-accepted"].(int64)
		if headers == nil {
			if marked || d.Expiration != "60000" {
				t.Errorf("plain message: got %v and expiration %q", d.Headers, d.Expiration)
			}
			continue
		}
		if d.Headers["a"] != "b" || d.Headers["x-delay"] != int32(5) {
			t.Errorf("got headers %v", d.Headers)
		}
		if !marked || accepted < before.UnixMilli() || accepted > time.Now().UnixMilli()+1 {
			t.Errorf("accepted at %v, want between %d and now", d.Headers["x-duepost-accepted"], before.UnixMilli())
		}
		if d.Expiration != "" || d.Headers["x-duepost-expiration"] != "60000" {
			t.Errorf("got expiration %q, held %v", d.Expiration, d.Headers["x-duepost-expiration"])
		}
	}
	got, ok, err := ch.Get(q.Name, true)
	must(t, err)
	if ok {
		t.Errorf("one more: %v", got)
	}
}

func TestBCCGoesToAHeaderOfOurs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ch := r.channel(t)
	must(t, declareDelayed(ch, "x", "direct"))
	must(t, ch.Publish("x", "k", false, false, amqp091.Publishing{
		Headers: amqp091.Table{
			"x-delay": int64(1), "BCC": []any{"b1", "b2"}, "CC": []any{"c"}, "x-duepost-accepted": int64(7),
		},
	}))
	d := getDelivery(t, ch, intake)
	bcc, _ := d.Headers["x-duepost-bcc"].([]any)
	if len(bcc) != 2 || bcc[0] != "b1" || bcc[1] != "b2" || d.Headers["BCC"] != nil || d.Headers["CC"] == nil {
		t.Errorf("got headers %v", d.Headers)
	}
	if d.Headers["x-duepost-accepted"] == int64(7) {
		t.Error("a client's own instant of acceptance was believed")
	}
}

// getDelivery gets what a queue holds, once it is there.
func getDelivery(t testing.TB, ch *amqp091.Channel, queue string) amqp091.Delivery {
	t.Helper()
	in, err := ch.Consume(queue, "", true, false, false, false, nil)
	must(t, err)
	return receive(t, in)
}

func TestWhatIsKnownIsFoundOutAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	must(t, declareDelayed(r.channel(t), "x", "topic"))
	// Another gateway that knows nothing, and another client.
	other := newRigAt(t, r.topology.url)
	ch := other.channel(t)
	must(t, ch.Publish("x", "k", false, false, amqp091.Publishing{Headers: amqp091.Table{"x-delay": 1}}))
	if d := getDelivery(t, ch, intake); d.Headers["x-duepost-accepted"] == nil {
		t.Errorf("got headers %v", d.Headers)
	}
	_, err := ch.QueueDeclare("q", false, true, false, false, nil)
	must(t, err)
	must(t, ch.QueueBind("q", "a.*", "x", false, nil))
	must(t, ch.Publish("x", "a.b", false, false, amqp091.Publishing{}))
	if d := getDelivery(t, ch, "q"); d.Exchange != "x" {
		t.Errorf("got exchange %q, want x", d.Exchange)
	}
	must(t, ch.QueueUnbind("q", "a.*", "x", nil))
	if err := ch.ExchangeDelete("x", true, false); err != nil {
		t.Errorf("delete an exchange that nobody uses: %v", err)
	}
	err = ch.ExchangeDeclarePassive("x", "headers", true, false, false, false, nil)
	wantCode(t, err, 404, "x")
}

func TestDeleteIfUnusedMeansTheClientsBindings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.dial(t)
	ch, err := conn.Channel()
	must(t, err)
	must(t, declareDelayed(ch, "x", "direct"))
	must(t, ch.ExchangeDeclare("y", "direct", false, true, false, false, nil))
	must(t, ch.ExchangeBind("y", "k", "x", false, nil))
	wantCode(t, ch.ExchangeDelete("x", true, false), 406, "in use")
	ch, err = conn.Channel()
	must(t, err)
	must(t, ch.ExchangeUnbind("y", "k", "x", false, nil))
	must(t, ch.ExchangeDelete("x", true, false))
	must(t, ch.ExchangeDelete("x", false, true)) // gone already
	must(t, declareDelayed(ch, "x", "fanout"))
}

// wantCode checks that err is a protocol error with a code and a text in it.
func wantCode(t testing.TB, err error, code int, text string) {
	t.Helper()
	var e *amqp091.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Reason, text) {
		t.Errorf("got %v, want code %d and %q", err, code, text)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.dial(t)
	for _, tc := range []struct {
		name string
		do   func(*amqp091.Channel) error
		code int
		text string
	}{
		{"no inner type", func(ch *amqp091.Channel) error {
			return ch.ExchangeDeclare("x", "x-delayed-message", true, false, false, false, nil)
		}, 406, "'x-delayed-type' must be"},
		{"itself as inner type", func(ch *amqp091.Channel) error {
			return declareDelayed(ch, "x", "x-delayed-message")
		}, 406, "allowed are direct"},
		{"reserved name", func(ch *amqp091.Channel) error {
			return declareDelayed(ch, "x.duepost", "direct")
		}, 406, "the relay's own"},
		{"name too long", func(ch *amqp091.Channel) error {
			return declareDelayed(ch, strings.Repeat("n", 250), "direct")
		}, 406, "250 bytes"},
		{"the broker's own reason", func(ch *amqp091.Channel) error {
			return declareDelayed(ch, "amq.direct", "direct")
		}, 406, "amq.direct"},
		{"no such exchange", func(ch *amqp091.Channel) error {
			_, err := ch.QueueDeclare("q", false, true, false, false, nil)
			must(t, err)
			return ch.QueueBind("q", "", "nowhere", false, nil)
		}, 404, "no exchange 'nowhere'"},
	} {
		ch, err := conn.Channel()
		must(t, err)
		err = tc.do(ch)
		var e *amqp091.Error
		if !errors.As(err, &e) || e.Code != tc.code || !strings.Contains(e.Reason, tc.text) {
			t.Errorf("%s: got %v, want code %d and %q", tc.name, err, tc.code, tc.text)
		}
	}
	// The connection is sound, and so is a new channel with an old number.
	ch, err := conn.Channel()
	must(t, err)
	must(t, declareDelayed(ch, "x", "direct"))
}

func TestRelayThatFailsIsTheReasonOfTheRefusal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.dial(t)
	r.topology.set(errors.New("wheel is broken"), nil)
	ch, err := conn.Channel()
	must(t, err)
	wantCode(t, declareDelayed(ch, "x", "direct"), 406, "wheel is broken")
	ch, err = conn.Channel()
	must(t, err)
	_, err = ch.QueueDeclare("q", false, true, false, false, nil)
	must(t, err)
	must(t, ch.ExchangeDeclare("y", "direct", false, true, false, false, nil))
	wantCode(t, ch.QueueBind("q", "k", "y", false, nil), 406, "cannot tell")

	// A delayed message goes on without its mark; nobody is refused for want of an answer.
	ch, err = conn.Channel()
	must(t, err)
	must(t, ch.ExchangeDeclare("z", "fanout", false, true, false, false, nil))
	r.topology.set(nil, nil)
	must(t, ch.QueueBind("q", "", "z", false, nil))
	r.topology.set(errors.New("wheel is broken"), nil)
	must(t, ch.Publish("z", "", false, false, amqp091.Publishing{Headers: amqp091.Table{"x-delay": 1}}))
	if d := getDelivery(t, ch, "q"); d.Headers["x-duepost-accepted"] != nil {
		t.Errorf("marked though nobody could tell: %v", d.Headers)
	}
}

func TestOtherChannelsGoOnWhileOneIsHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.dial(t)
	held, err := conn.Channel()
	must(t, err)
	other, err := conn.Channel()
	must(t, err)
	_, err = other.QueueDeclare("q", false, true, false, false, nil)
	must(t, err)
	must(t, declareDelayed(other, "x", "fanout"))

	hold := make(chan struct{})
	r.topology.set(nil, hold)
	bound := make(chan error, 1)
	go func() { bound <- held.QueueBind("q", "", "x", false, nil) }()
	for range 100 {
		must(t, other.Publish("", "q", false, false, amqp091.Publishing{Body: bytes.Repeat([]byte("x"), 4000)}))
	}
	in, err := other.Consume("q", "", true, false, false, false, nil)
	must(t, err)
	for range 100 {
		receive(t, in)
	}
	select {
	case err := <-bound:
		t.Fatalf("bound while the topology had not answered: %v", err)
	default:
	}
	close(hold)
	must(t, <-bound)
	must(t, held.Publish("x", "", false, false, amqp091.Publishing{}))
	receive(t, in)
}

func TestOrderOnAHeldChannelStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	must(t, declareDelayed(r.channel(t), "x", "direct"))
	other := newRigAt(t, r.topology.url) // does not know x
	ch := other.channel(t)
	_, err := ch.QueueDeclare("q", false, true, false, false, nil)
	must(t, err)
	must(t, ch.QueueBind("q", "k", "amq.direct", false, nil))
	must(t, ch.Confirm(false))
	confirms := ch.NotifyPublish(make(chan amqp091.Confirmation, 500))
	hold := make(chan struct{})
	other.topology.set(nil, hold)
	// The first message of x is held, and what follows with it, beyond what is kept.
	must(t, ch.Publish("x", "k", false, false, amqp091.Publishing{Headers: amqp091.Table{"x-delay": 1}}))
	const n = 300
	var published sync.WaitGroup
	published.Go(func() {
		for i := range n {
			if err := ch.Publish("amq.direct", "k", false, false, amqp091.Publishing{
				MessageId: itoa(i), Body: bytes.Repeat([]byte("x"), 1000*(i%3)),
			}); err != nil {
				t.Error(err)
			}
		}
		close(hold)
	})
	published.Wait()
	for tag := range n + 1 {
		if c := <-confirms; !c.Ack || c.DeliveryTag != uint64(tag+1) {
			t.Fatalf("got %v, want ack %d", c, tag+1)
		}
	}
	in, err := ch.Consume("q", "", true, false, false, false, nil)
	must(t, err)
	for i := range n {
		if d := receive(t, in); d.MessageId != itoa(i) || len(d.Body) != 1000*(i%3) {
			t.Fatalf("got message %s with %d octets, want %d", d.MessageId, len(d.Body), i)
		}
	}
	if d := getDelivery(t, ch, intake); d.Headers["x-duepost-accepted"] == nil {
		t.Errorf("got %v", d.Headers)
	}
}
