package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// dialClient connects the client that Go programs use.
func (s *testServer) dialClient() *amqp091.Connection {
	s.t.Helper()
	c, err := amqp091.Dial("amqp://guest:guest@" + s.addr + "/")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

func openChannel(t *testing.T, c *amqp091.Connection) *amqp091.Channel {
	t.Helper()
	ch, err := c.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func declareQueue(t *testing.T, ch *amqp091.Channel, name string, durable bool, args amqp091.Table) {
	t.Helper()
	if _, err := ch.QueueDeclare(name, durable, false, false, false, args); err != nil {
		t.Fatal(err)
	}
}

// receive waits for a delivery with that body.
func receive(t *testing.T, deliveries <-chan amqp091.Delivery, body string) amqp091.Delivery {
	t.Helper()
	select {
	case d, ok := <-deliveries:
		if !ok || string(d.Body) != body {
			t.Fatalf("received %q, %v, want %q", d.Body, ok, body)
		}
		return d
	case <-time.After(20 * time.Second):
		t.Fatalf("%q did not come", body)
	}
	return amqp091.Delivery{}
}

// TestClientManyMessages sends with confirms and receives with acks, durable,
// several publishers and consumers at once.
func TestClientManyMessages(t *testing.T) {
	t.Parallel()
	const publishers, each = 4, 2000
	s := newTestServer(t).listen()
	setup := openChannel(t, s.dialClient())
	declareQueue(t, setup, "work", true, nil)

	received := make(chan string, publishers*each)
	for range 3 {
		ch := openChannel(t, s.dialClient())
		if err := ch.Qos(100, 0, false); err != nil {
			t.Fatal(err)
		}
		deliveries, err := ch.Consume("work", "", false, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for d := range deliveries {
				received <- string(d.Body)
				_ = d.Ack(false)
			}
		}()
	}
	var confirmed sync.WaitGroup // a message may come before its confirm
	defer confirmed.Wait()
	for p := range publishers {
		ch := openChannel(t, s.dialClient())
		if err := ch.Confirm(false); err != nil {
			t.Fatal(err)
		}
		confirms := ch.NotifyPublish(make(chan amqp091.Confirmation, each))
		confirmed.Go(func() {
			for i := range each {
				err := ch.PublishWithContext(t.Context(), "", "work", false, false, amqp091.Publishing{
					DeliveryMode: amqp091.Persistent, Body: fmt.Appendf(nil, "%d-%d", p, i),
				})
				if err != nil {
					t.Errorf("publish: %v", err)
					return
				}
			}
			for range each {
				if c := <-confirms; !c.Ack {
					t.Errorf("publish %d was not confirmed", c.DeliveryTag)
				}
			}
		})
	}
	seen := map[string]bool{}
	for len(seen) < publishers*each {
		select {
		case body := <-received:
			if seen[body] {
				t.Fatalf("%s came twice", body)
			}
			seen[body] = true
		case <-time.After(20 * time.Second):
			t.Fatalf("%d of %d came", len(seen), publishers*each)
		}
	}
}

func TestClientDelayedExchange(t *testing.T) {
	t.Parallel()
	s := newTestServer(t).listen()
	ch := openChannel(t, s.dialClient())
	err := ch.ExchangeDeclare("later", "x-delayed-message", true, false, false, false,
		amqp091.Table{"x-delayed-type": "topic"})
	if err != nil {
		t.Fatal(err)
	}
	declareQueue(t, ch, "due", true, nil)
	if err := ch.QueueBind("due", "order.*", "later", false, nil); err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume("due", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for _, ms := range []int32{400, 100, 200, 0} {
		err := ch.PublishWithContext(t.Context(), "later", "order.close", true, false, amqp091.Publishing{
			Headers: amqp091.Table{"x-delay": ms}, Body: fmt.Append(nil, ms),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, ms := range []int64{0, 100, 200, 400} {
		d := receive(t, deliveries, fmt.Sprint(ms))
		if early := time.Duration(ms)*time.Millisecond - time.Since(start); early > 0 {
			t.Errorf("%d came %v early", ms, early)
		}
		if ms > 0 && d.Headers["x-delay"] != -ms {
			t.Errorf("x-delay = %v, want %d", d.Headers["x-delay"], -ms)
		}
	}
}

// TestClientTTLAndDeadLetters is the delay queue people build without a delayed
// exchange.
func TestClientTTLAndDeadLetters(t *testing.T) {
	t.Parallel()
	s := newTestServer(t).listen()
	ch := openChannel(t, s.dialClient())
	declareQueue(t, ch, "wait", true, amqp091.Table{
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-message-ttl": int32(100),
	})
	declareQueue(t, ch, "dead", true, nil)
	deliveries, err := ch.Consume("dead", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = ch.PublishWithContext(t.Context(), "", "wait", false, false, amqp091.Publishing{Body: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	d := receive(t, deliveries, "x")
	if deaths, ok := d.Headers["x-death"].([]any); !ok || len(deaths) != 1 {
		t.Errorf("x-death = %v", d.Headers["x-death"])
	}
}

func TestClientDirectReplyTo(t *testing.T) {
	t.Parallel()
	s := newTestServer(t).listen()
	server := openChannel(t, s.dialClient())
	declareQueue(t, server, "rpc", false, nil)
	requests, err := server.Consume("rpc", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := openChannel(t, s.dialClient())
	replies, err := client.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = client.PublishWithContext(t.Context(), "", "rpc", false, false, amqp091.Publishing{
		ReplyTo: "amq.rabbitmq.reply-to", CorrelationId: "1", Body: []byte("question"),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := receive(t, requests, "question")
	err = server.PublishWithContext(t.Context(), "", r.ReplyTo, false, false, amqp091.Publishing{
		CorrelationId: r.CorrelationId, Body: []byte("answer"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := receive(t, replies, "answer"); d.CorrelationId != "1" {
		t.Errorf("correlation id = %q", d.CorrelationId)
	}
}

func TestClientLargeMessages(t *testing.T) {
	t.Parallel()
	s := newTestServer(t).listen()
	ch := openChannel(t, s.dialClient())
	declareQueue(t, ch, "large", false, nil)
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB
	err := ch.PublishWithContext(t.Context(), "", "large", false, false, amqp091.Publishing{Body: body})
	if err != nil {
		t.Fatal(err)
	}
	d, ok, err := ch.Get("large", true)
	if err != nil || !ok || !bytes.Equal(d.Body, body) {
		t.Errorf("Get = %d octets, %v, %v", len(d.Body), ok, err)
	}
}

func TestClientErrorsAreRecognised(t *testing.T) {
	t.Parallel()
	s := newTestServer(t).listen()
	c := s.dialClient()
	declareQueue(t, openChannel(t, c), "q", true, nil)
	for _, tt := range []struct {
		name string
		do   func(ch *amqp091.Channel) error
		want string
	}{
		{"missing queue", func(ch *amqp091.Channel) error {
			_, err := ch.QueueDeclarePassive("none", false, false, false, false, nil)
			return err
		}, "NOT_FOUND - no queue 'none' in vhost '/'"},
		{"other durability", func(ch *amqp091.Channel) error {
			_, err := ch.QueueDeclare("q", false, false, false, false, nil)
			return err
		}, "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'"},
		{"reserved name", func(ch *amqp091.Channel) error {
			_, err := ch.QueueDeclare("amq.mine", false, false, false, false, nil)
			return err
		}, "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"},
		{"default exchange", func(ch *amqp091.Channel) error {
			return ch.QueueBind("q", "k", "", false, nil)
		}, "ACCESS_REFUSED - operation not permitted on the default exchange"},
		{"missing exchange", func(ch *amqp091.Channel) error {
			return ch.QueueBind("q", "k", "none", false, nil)
		}, "NOT_FOUND - no exchange 'none' in vhost '/'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var e *amqp091.Error
			if err := tt.do(openChannel(t, c)); !errors.As(err, &e) || e.Reason != tt.want {
				t.Errorf("err = %v, want %s", err, tt.want)
			}
		})
	}
}

func TestClientSeesShutdown(t *testing.T) {
	t.Parallel()
	s := newTestServer(t).listen()
	c := s.dialClient()
	closed := c.NotifyClose(make(chan *amqp091.Error, 1))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	if e := <-closed; e == nil || e.Code != 320 || e.Reason != shutdownText {
		t.Errorf("closed with %v", e)
	}
}

func TestClientWithWrongPassword(t *testing.T) {
	t.Parallel()
	s := newTestServer(t).listen()
	_, err := amqp091.Dial("amqp://guest:wrong@" + s.addr + "/")
	var e *amqp091.Error
	if !errors.As(err, &e) || e.Code != 403 {
		t.Errorf("err = %v, want 403", err)
	}
	if _, err = amqp091.Dial("amqp://guest:guest@" + s.addr + "/nowhere"); err == nil {
		t.Error("got into a virtual host that does not exist")
	}
}
