package gateway

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

func TestHistoryTellsTheNamesThatClientsKnow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.topology.relay(t)
	ch := r.channel(t)
	must(t, declareDelayed(ch, "x", "direct"))
	_, err := ch.QueueDeclare("dead", false, true, false, false, nil)
	must(t, err)
	_, err = ch.QueueDeclare("q", false, true, false, false, amqp091.Table{
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
	must(t, err)
	must(t, ch.QueueBind("q", "k", "x", false, nil))
	must(t, ch.Publish("x", "k", false, false, amqp091.Publishing{
		Headers: amqp091.Table{"x-delay": int32(1), "mine": "x.duepost"}, Body: []byte("b")}))
	in, err := ch.Consume("q", "", false, false, false, false, nil)
	must(t, err)
	must(t, receive(t, in).Reject(false))
	d := getDelivery(t, ch, "dead")
	deaths, _ := d.Headers["x-death"].([]any)
	if len(deaths) != 1 || deaths[0].(amqp091.Table)["exchange"] != "x" || deaths[0].(amqp091.Table)["queue"] != "q" ||
		d.Headers["x-first-death-exchange"] != "x" || d.Headers["mine"] != "x.duepost" || string(d.Body) != "b" {
		t.Errorf("got %v", d.Headers)
	}
}

func TestReturnedMessageIsAsItWasSent(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	client, broker := s.connect(t, wire.ProtocolHeader)
	s.exchanges.note(exchangeKey{"", "x"}, delayed)
	header := func(table amqp.Table, expiration string) []byte {
		b, err := amqp.AppendTable(nil, table)
		must(t, err)
		var p amqp.Properties
		p.SetHeaders(b[4:])
		if expiration != "" {
			p.Set(amqp.FlagExpiration)
			p.Expiration = []byte(expiration)
		}
		return wire.AppendContentHeader(nil, 1, 60, 0, p.Append(nil))
	}
	publish := wire.AppendMethod(nil, 1, &wire.BasicPublish{Exchange: []byte("x")})
	sent := header(amqp.Table{"x-delay": int32(5), "BCC": []any{"b"}}, "700")
	_, err := client.Write(append(publish, sent...))
	must(t, err)
	expect(t, broker, publish)
	marked := frameOf(t, broker)
	if cmp.Equal(marked, sent) {
		t.Fatal("it was not marked")
	}
	back := wire.AppendMethod(nil, 1, &wire.BasicReturn{ReplyCode: 312, Exchange: []byte("x")})
	_, err = broker.Write(append(back, marked...))
	must(t, err)
	expect(t, client, back)
	// The order of headers in their table is not kept.
	var c wire.ContentHeader
	must(t, c.Decode(payload(frameOf(t, client))))
	var p amqp.Properties
	must(t, p.Decode(c.Properties))
	table, err := p.Headers.Decode()
	must(t, err)
	if diff := cmp.Diff(amqp.Table{"x-delay": int32(5), "BCC": []any{"b"}}, table); diff != "" || string(p.Expiration) != "700" {
		t.Errorf("expiration %q, headers -want +got:\n%s", p.Expiration, diff)
	}
	// A delivery with such headers is none of the gateway's business.
	for _, b := range [][]byte{wire.AppendMethod(nil, 1, &wire.BasicDeliver{ConsumerTag: "t"}), marked} {
		_, err = broker.Write(b)
		must(t, err)
		expect(t, client, b)
	}
}

func TestNameOfSomebodyElsesExchangeStays(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	client, broker := s.connect(t, wire.ProtocolHeader)
	open := wire.AppendMethod(nil, 0, &wire.ConnectionOpen{VirtualHost: "v"})
	_, err := client.Write(open)
	must(t, err)
	expect(t, broker, open)
	s.exchanges.note(exchangeKey{"v", "theirs"}, plain)
	s.exchanges.note(exchangeKey{"v", "ours"}, delayed)
	for name, want := range map[string]string{"theirs.duepost": "theirs.duepost", "ours.duepost": "ours"} {
		_, err = broker.Write(wire.AppendMethod(nil, 1, &wire.BasicDeliver{ConsumerTag: "t", Exchange: []byte(name)}))
		must(t, err)
		expect(t, client, wire.AppendMethod(nil, 1, &wire.BasicDeliver{ConsumerTag: "t", Exchange: []byte(want)}))
	}
}

// frameOf reads one frame.
func frameOf(t *testing.T, from io.Reader) []byte {
	t.Helper()
	frame := make([]byte, headSize)
	_, err := io.ReadFull(from, frame)
	must(t, err)
	frame = append(frame, make([]byte, cutHead(frame).size+1)...)
	_, err = io.ReadFull(from, frame[headSize:])
	must(t, err)
	return frame
}
