package wire

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	client "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/amqp"
)

// peer is a server that plays a script, with nothing of the broker in it.
type peer struct {
	t *testing.T
	c net.Conn
	r *Reader
}

func (p *peer) send(frames []byte) {
	if _, err := p.c.Write(frames); err != nil {
		p.t.Errorf("send: %v", err)
	}
}

// expect reads a method and returns it; nil after a fault.
func (p *peer) expect(id MethodID) Method {
	f, err := p.r.Next()
	if err != nil {
		p.t.Errorf("expect %v: %v", id, err)
		return nil
	}
	m, err := Parse(bytes.Clone(f.Payload))
	if err != nil || m.ID() != id {
		p.t.Errorf("expect %v: got %+v, %v", id, m, err)
		return nil
	}
	return m
}

// content reads a header and a body frame.
func (p *peer) content() (props, body []byte) {
	var h ContentHeader
	f, err := p.r.Next()
	if err != nil || h.Decode(f.Payload) != nil {
		p.t.Errorf("expect a header: %+v, %v", f, err)
		return nil, nil
	}
	props = bytes.Clone(h.Properties)
	if f, err = p.r.Next(); err != nil {
		p.t.Errorf("expect a body: %v", err)
	}
	return props, bytes.Clone(f.Payload)
}

// greet plays the handshake and opens channel 1.
func (p *peer) greet() {
	if err := p.r.ReadProtocolHeader(); err != nil {
		p.t.Errorf("protocol header: %v", err)
		return
	}
	capabilities, err := amqp.AppendField(nil, "capabilities", amqp.Table{"basic.nack": true})
	if err != nil {
		p.t.Error(err)
	}
	p.send(AppendMethod(nil, 0, &ConnectionStart{VersionMinor: 9, ServerProperties: capabilities,
		Mechanisms: "AMQPLAIN PLAIN", Locales: "en_US"}))
	ok, _ := p.expect(ConnectionStartOkID).(*ConnectionStartOk)
	if ok == nil || ok.Mechanism != "PLAIN" || ok.Response != "\x00user\x00secret" {
		p.t.Errorf("start-ok is %+v", ok)
	}
	p.send(AppendMethod(nil, 0, &ConnectionTune{ChannelMax: 100, FrameMax: 8192}))
	p.expect(ConnectionTuneOkID)
	open, _ := p.expect(ConnectionOpenID).(*ConnectionOpen)
	if open == nil || open.VirtualHost != "host" {
		p.t.Errorf("open is %+v", open)
	}
	p.send(AppendMethod(nil, 0, &ConnectionOpenOk{}))
	p.expect(ChannelOpenID)
	p.send(AppendMethod(nil, 1, &ChannelOpenOk{}))
}

// TestClientUnderstandsUs sends a message with every field type and property
// from a real client and hands it back, so that both codecs read and write all
// of it.
func TestClientUnderstandsUs(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	p := &peer{t: t, c: far, r: NewReader(far, 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer far.Close()
		p.greet()
		p.expect(BasicConsumeID)
		p.send(AppendMethod(nil, 1, &BasicConsumeOk{ConsumerTag: "tag"}))
		publish, _ := p.expect(BasicPublishID).(*BasicPublish)
		if publish == nil {
			return
		}
		props, body := p.content()
		p.send(AppendDeliver(nil, 1, "tag", 42, true,
			publish.ExchangeAndKey, rewritten(t, props), body, 8192))
		if ack, _ := p.expect(BasicAckID).(*BasicAck); ack == nil || ack.DeliveryTag != 42 {
			t.Errorf("ack is %+v", ack)
		}
		p.expect(ConnectionCloseID)
		p.send(AppendMethod(nil, 0, &ConnectionCloseOk{}))
	}()
	exchangeOneMessage(t, near)
	<-done
}

// rewritten decodes properties with their headers and encodes them anew.
func rewritten(t *testing.T, raw []byte) []byte {
	var p amqp.Properties
	if err := p.Decode(raw); err != nil {
		t.Errorf("properties: %v", err)
		return raw
	}
	table, err := p.Headers.Decode()
	if err != nil {
		t.Errorf("headers: %v", err)
	}
	b, err := amqp.AppendTable(nil, table)
	if err != nil {
		t.Errorf("headers: %v", err)
	}
	p.SetHeaders(b[4:])
	return p.Append(nil)
}

// exchangeOneMessage is the client's side of TestClientUnderstandsUs.
func exchangeOneMessage(t *testing.T, c net.Conn) {
	t.Helper()
	conn, err := client.Open(c, client.Config{
		SASL:  []client.Authentication{&client.PlainAuth{Username: "user", Password: "secret"}},
		Vhost: "host",
	})
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume("queue", "tag", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1700000000, 0)
	sent := client.Publishing{
		Headers: client.Table{
			"bool": true, "int8": int8(-8), "uint8": uint8(8), "int16": int16(-16), "uint16": uint16(16),
			"int32": int32(-32), "uint32": uint32(32), "int64": int64(-64), "float32": float32(0.5),
			"float64": 0.25, "decimal": client.Decimal{Scale: 2, Value: 314}, "string": "ü",
			"bytes": []byte{1, 2}, "array": []any{"a", int32(1)}, "time": at,
			"table": client.Table{"in": true}, "void": nil,
		},
		ContentType: "type/sub", ContentEncoding: "enc", DeliveryMode: 2, Priority: 7,
		CorrelationId: "corr", ReplyTo: "reply", Expiration: "60", MessageId: "id", Timestamp: at,
		Type: "kind", UserId: "user", AppId: "app", Body: []byte("body"),
	}
	if err := ch.PublishWithContext(t.Context(), "ex", "key", false, false, sent); err != nil {
		t.Fatal(err)
	}
	d := <-deliveries
	got := client.Publishing{
		Headers: d.Headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding,
		DeliveryMode: d.DeliveryMode, Priority: d.Priority, CorrelationId: d.CorrelationId,
		ReplyTo: d.ReplyTo, Expiration: d.Expiration, MessageId: d.MessageId, Timestamp: d.Timestamp,
		Type: d.Type, UserId: d.UserId, AppId: d.AppId, Body: d.Body,
	}
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Errorf("message (-sent +received):\n%s", diff)
	}
	if d.Exchange != "ex" || d.RoutingKey != "key" || !d.Redelivered || d.DeliveryTag != 42 {
		t.Errorf("delivery is %q %q %v %d", d.Exchange, d.RoutingKey, d.Redelivered, d.DeliveryTag)
	}
	if err := d.Ack(false); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}
