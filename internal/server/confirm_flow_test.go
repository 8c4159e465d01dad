package server

import (
	"testing"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

func persistent() amqp.Properties {
	p := amqp.Properties{DeliveryMode: amqp.Persistent}
	p.Set(amqp.FlagDeliveryMode)
	return p
}

func (p *script) selectConfirms(channel uint16) *script {
	p.t.Helper()
	p.send(channel, &wire.ConfirmSelect{})
	p.expect(channel, &wire.ConfirmSelectOk{})
	return p
}

// expectConfirms reads confirms until all up to the tag are answered, and
// returns how many were negative.
func (p *script) expectConfirms(channel uint16, upTo uint64) (nacked int) {
	p.t.Helper()
	for answered := uint64(0); answered < upTo; {
		f, ok := p.next()
		if !ok || f.Channel != channel {
			p.t.Fatalf("got %+v, %v, expected a confirm", f, ok)
		}
		m, err := wire.Parse(f.Payload)
		if err != nil {
			p.t.Fatal(err)
		}
		tag, multiple := uint64(0), false
		switch m := m.(type) {
		case *wire.BasicAck:
			tag, multiple = m.DeliveryTag, m.Multiple
		case *wire.BasicNack:
			tag, multiple = m.DeliveryTag, m.Multiple
			nacked += int(tag - answered)
		default:
			p.t.Fatalf("got %T, expected a confirm", m)
		}
		if tag <= answered || !multiple && tag != answered+1 {
			p.t.Fatalf("confirm of %d (multiple %v) after %d", tag, multiple, answered)
		}
		answered = tag
	}
	return nacked
}

func TestConfirmsOfDurableMessages(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.selectConfirms(1)
		p.send(1, &wire.QueueDeclare{Queue: "d", Durable: true})
		p.expect(1, &wire.QueueDeclareOk{})
		for range 100 {
			p.publish(1, &wire.BasicPublish{RoutingKey: []byte("d")}, persistent(), "x")
		}
		if n := p.expectConfirms(1, 100); n != 0 {
			t.Errorf("%d negative confirms", n)
		}
		if st := s.Stats(); st.Published != 100 || st.Confirmed != 100 {
			t.Errorf("Published = %d, Confirmed = %d, want 100 each", st.Published, st.Confirmed)
		}
		p.close()
	})
}

func TestReturnComesBeforeTheConfirm(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.selectConfirms(1)
		p.publish(1, &wire.BasicPublish{Exchange: []byte("amq.topic"), RoutingKey: []byte("no.one"), Mandatory: true},
			persistent(), "lost")
		var m wire.BasicReturn
		p.expect(1, &m)
		if m.ReplyCode != amqp.NoRoute || m.ReplyText != "NO_ROUTE" ||
			string(m.Exchange) != "amq.topic" || string(m.RoutingKey) != "no.one" {
			t.Errorf("return = %+v", m)
		}
		if props, body := p.expectContent(1); body != "lost" || !props.IsPersistent() {
			t.Errorf("returned %+v %q", props, body)
		}
		p.expectConfirms(1, 1)
		p.publish(1, &wire.BasicPublish{RoutingKey: []byte("nowhere")}, persistent(), "dropped")
		var ack wire.BasicAck
		p.expect(1, &ack)
		if ack.DeliveryTag != 2 || ack.Multiple {
			t.Errorf("ack = %+v, want 2", ack)
		}
	})
}

func TestFullQueueIsNacked(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		args, err := amqp.AppendTable(nil, amqp.Table{"x-max-length": int32(2), "x-overflow": "reject-publish"})
		if err != nil {
			t.Fatal(err)
		}
		p.send(1, &wire.QueueDeclare{Queue: "full", Arguments: args[4:]})
		p.expect(1, &wire.QueueDeclareOk{})
		p.selectConfirms(1)
		p.put(1, "full", "1", "2", "3", "4")
		if n := p.expectConfirms(1, 4); n != 2 {
			t.Errorf("%d negative confirms, want 2", n)
		}
		p.get(1, "full", "1")
		p.get(1, "full", "2")
		p.getEmpty(1, "full")
	})
}

// A publish that closes its channel throws away what the client sent behind it.
func TestPublishToNowhereClosesTheChannel(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.selectConfirms(1)
		p.put(1, "q", "before")
		p.publish(1, &wire.BasicPublish{Exchange: []byte("none"), RoutingKey: []byte("q")}, amqp.Properties{}, "x")
		p.put(1, "q", "behind")
		p.expectConfirms(1, 1)
		var m wire.ChannelClose
		p.expect(1, &m)
		if m.ReplyCode != amqp.NotFound || m.ReplyText != "NOT_FOUND - no exchange 'none' in vhost '/'" ||
			m.ClassID != 60 || m.MethodID != 40 {
			t.Errorf("close = %+v", m)
		}
		p.put(1, "q", "still behind")
		p.send(1, &wire.ChannelCloseOk{})
		p.channel(1).get(1, "q", "before")
		p.getEmpty(1, "q")
	})
}

func TestTransactionCommit(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.channel(2)
		p.put(2, "q", "old")
		p.get(2, "q", "old")
		p.send(2, &wire.TxSelect{})
		p.expect(2, &wire.TxSelectOk{})
		p.put(2, "q", "1", "2")
		p.publish(2, &wire.BasicPublish{RoutingKey: []byte("nowhere"), Mandatory: true}, amqp.Properties{}, "lost")
		p.send(2, &wire.BasicAck{DeliveryTag: 1})
		p.getEmpty(1, "q")
		p.send(2, &wire.TxCommit{})
		p.expect(2, &wire.BasicReturn{})
		if _, body := p.expectContent(2); body != "lost" {
			t.Errorf("returned %q", body)
		}
		p.expect(2, &wire.TxCommitOk{})
		p.get(1, "q", "1")
		p.get(1, "q", "2")
		p.send(2, &wire.ChannelClose{}) // the ack is done: nothing returns
		p.expect(2, &wire.ChannelCloseOk{})
		p.getEmpty(1, "q")
	})
}

func TestTransactionRollback(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.channel(2).qos(2, 2, false)
		p.put(1, "q", "1", "2", "3")
		p.send(2, &wire.TxSelect{})
		p.expect(2, &wire.TxSelectOk{})
		p.consume(2, &wire.BasicConsume{Queue: "q", ConsumerTag: "a"})
		p.expectDelivery(2, "1")
		p.expectDelivery(2, "2")
		p.put(2, "q", "never")
		p.send(2, &wire.BasicAck{DeliveryTag: 1}, &wire.BasicNack{DeliveryTag: 2})
		p.expectNothing() // no credit before the commit
		p.send(2, &wire.TxRollback{})
		p.expect(2, &wire.TxRollbackOk{})
		p.expectNothing()
		// The deliveries can be settled again, this time for good.
		p.send(2, &wire.BasicAck{DeliveryTag: 2, Multiple: true}, &wire.TxCommit{})
		p.expect(2, &wire.TxCommitOk{})
		p.expectDelivery(2, "3")
		p.send(2, &wire.ChannelClose{})
		p.expect(2, &wire.ChannelCloseOk{})
		p.get(1, "q", "3")
		p.getEmpty(1, "q")
	})
}

func TestConfirmAfterTx(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.send(1, &wire.TxSelect{})
		p.expect(1, &wire.TxSelectOk{})
		p.send(1, &wire.ConfirmSelect{})
		var m wire.ChannelClose
		p.expect(1, &m)
		if m.ReplyText != "PRECONDITION_FAILED - cannot switch from tx to confirm mode" {
			t.Errorf("close = %+v", m)
		}
	})
}
