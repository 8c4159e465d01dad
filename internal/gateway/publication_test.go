package gateway

import (
	"bytes"
	"io"
	"strings"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/wire"
)

func TestBadDelayIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.dial(t)
	ch, err := conn.Channel()
	must(t, err)
	must(t, declareDelayed(ch, "x", "fanout"))
	for _, tc := range []struct {
		headers amqp091.Table
		want    string
	}{
		{amqp091.Table{"x-delay": "soon"}, "x-delay"},
		{amqp091.Table{"x-delay": true}, "x-delay"},
		{amqp091.Table{"x-delay": nil}, "x-delay"},
		{amqp091.Table{"x-delay": int64(1) << 60}, "x-delay"},
		{amqp091.Table{"x-opt-delivery-time": []any{int32(1)}}, "x-opt-delivery-time"},
	} {
		ch, err := conn.Channel()
		must(t, err)
		closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
		// With a body, which comes when the channel is closed already.
		must(t, ch.Publish("x", "", false, false, amqp091.Publishing{Headers: tc.headers, Body: make([]byte, 300_000)}))
		if got := <-closed; got == nil || got.Code != 406 || !strings.Contains(got.Reason, "'"+tc.want+"'") {
			t.Errorf("%v: got %v, want 406 and %s", tc.headers, got, tc.want)
		}
	}
	if q, err := ch.QueueDeclarePassive(intake, true, false, false, false, nil); err != nil || q.Messages != 0 {
		t.Errorf("intake: %d messages and %v, want none", q.Messages, err)
	}
	if got := r.Stats().Refused; got != 5 {
		t.Errorf("got %d refused, want 5", got)
	}
	// To exchanges that are not delayed the headers mean nothing.
	must(t, ch.Publish("amq.fanout", "", false, false, amqp091.Publishing{Headers: amqp091.Table{"x-delay": "soon"}}))
	must(t, ch.Publish("", "nobody", false, false, amqp091.Publishing{Headers: amqp091.Table{"x-delay": "soon"}}))
	_, err = ch.QueueDeclarePassive(intake, true, false, false, false, nil)
	must(t, err)
}

func TestWhatHasNoDelayPassesTheRelay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ch := r.channel(t)
	must(t, declareDelayed(ch, "x", "direct"))
	_, err := ch.QueueDeclare("q", false, true, false, false, nil)
	must(t, err)
	must(t, ch.QueueBind("q", "k", "x", false, nil))
	returned := ch.NotifyReturn(make(chan amqp091.Return, 1))
	in, err := ch.Consume("q", "", true, false, false, false, nil)
	must(t, err)
	for _, value := range []any{int32(0), int64(-7000), "-1", 0.5} { // and there is no relay
		must(t, ch.Publish("x", "k", true, false, amqp091.Publishing{Headers: amqp091.Table{"x-delay": value}, Body: []byte("b")}))
		if d := receive(t, in); d.Headers["x-delay"] != value || len(d.Headers) != 1 || d.Exchange != "x" || string(d.Body) != "b" {
			t.Errorf("%v: got %+v", value, d)
		}
		must(t, ch.Publish("x", "nobody", true, false, amqp091.Publishing{Headers: amqp091.Table{"x-delay": value}}))
		if got := <-returned; got.Exchange != "x" || got.RoutingKey != "nobody" {
			t.Errorf("%v: returned %+v", value, got)
		}
	}
	// A time in the past is the relay's business: it shows how late the message is.
	must(t, ch.Publish("x", "k", true, false, amqp091.Publishing{Headers: amqp091.Table{"x-opt-delivery-time": int64(1)}}))
	if d := getDelivery(t, ch, intake); d.Headers["x-duepost-accepted"] == nil {
		t.Errorf("got %v", d.Headers)
	}
}

// What a client says against the protocol comes to the broker as it was said.
func TestPublishWithoutItsContentPasses(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	client, broker := s.connect(t, wire.ProtocolHeader)
	s.exchanges.note(exchangeKey{"", "x"}, delayed)
	publish := wire.AppendMethod(nil, 1, &wire.BasicPublish{Exchange: []byte("x"), RoutingKey: []byte("k")})
	for _, next := range [][]byte{
		publish,
		wire.AppendMethod(nil, 1, &wire.BasicAck{DeliveryTag: 1}),
		wire.AppendFrame(nil, wire.FrameBody, 1, []byte("body")),
		wire.AppendFrame(nil, wire.FrameHeader, 1, []byte("not a header")),
		wire.AppendFrame(nil, wire.FrameHeader, 1, make([]byte, mostSeen)), // too large to be seen
	} {
		said := append(bytes.Clone(publish), next...)
		go func() { _, _ = client.Write(said) }()
		expect(t, broker, said)
	}
}

// The broker has closed the channel and would not expect a body, and other channels go on.
func TestBodyOfRefusedMessageIsDropped(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	client, broker := s.connect(t, wire.ProtocolHeader)
	s.exchanges.note(exchangeKey{"", "x"}, delayed)
	other := wire.AppendFrame(nil, wire.FrameBody, 2, []byte("other"))
	b := wire.AppendMethod(nil, 1, &wire.BasicPublish{Exchange: []byte("x")})
	b = wire.AppendContentHeader(b, 1, 60, 10, []byte("\x20\x00\x00\x00\x00\x0a\x07x-delayt\x01"))
	b = wire.AppendFrame(b, wire.FrameBody, 1, []byte("123456"))
	b = append(b, other...)
	_, err := client.Write(b)
	must(t, err)
	refusal := wire.AppendMethod(nil, 1, &wire.ExchangeDeclare{Exchange: s.nowhere, Type: "headers", Passive: true})
	expect(t, broker, append(refusal, other...))
	_, err = broker.Write(wire.AppendMethod(nil, 1, &wire.ChannelClose{ReplyCode: 404}))
	must(t, err)
	reason := make([]byte, headSize+idSize+2)
	_, err = io.ReadFull(client, reason)
	must(t, err)
	if code := int(reason[headSize+idSize])<<8 | int(reason[headSize+idSize+1]); code != 406 {
		t.Errorf("got code %d, want 406", code)
	}
	next := wire.AppendMethod(nil, 1, &wire.ChannelCloseOk{})
	_, err = client.Write(append(wire.AppendFrame(nil, wire.FrameBody, 1, []byte("7890")), next...))
	must(t, err)
	expect(t, broker, next)
}
