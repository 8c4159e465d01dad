package server

import (
	"testing"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/wire"
)

// A message may have been claimed for a consumer before it was cancelled. It is
// refused then, and the client hears nothing of it.
func TestDeliverAfterTheEndIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		end  func(p *script)
	}{
		{"cancelled", func(p *script) {
			p.send(1, &wire.BasicCancel{ConsumerTag: "a"})
			p.expect(1, &wire.BasicCancelOk{})
		}},
		{"channel closed", func(p *script) {
			p.send(1, &wire.ChannelClose{})
			p.expect(1, &wire.ChannelCloseOk{})
		}},
		{"queue deleted", func(p *script) {
			p.send(1, &wire.QueueDelete{Queue: "q"})
			p.expect(1, &wire.BasicCancel{})
			p.expect(1, &wire.QueueDeleteOk{})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			flowTest(t, func(t *testing.T, s *testServer, p *script) {
				p.consume(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "a"})
				k := s.consumer("a")
				if !k.Reserve() {
					t.Fatal("no credit")
				}
				k.Release()
				tt.end(p)
				if k.Reserve() {
					t.Error("Reserve = true after the end")
				}
				if k.Deliver(&broker.Delivery{}) {
					t.Error("Deliver = true after the end")
				}
				p.expectNothing()
				p.close()
			})
		})
	}
}

// consumer finds a consumer by its tag.
func (s *testServer) consumer(tag string) *consumer {
	s.t.Helper()
	for _, c := range s.snapshot() {
		for _, ch := range c.openChannels() {
			ch.mu.Lock()
			k := ch.consumers[tag]
			ch.mu.Unlock()
			if k != nil {
				return k
			}
		}
	}
	s.t.Fatalf("no consumer %s", tag)
	return nil
}

// What consumers and gets came from is forgotten with the last delivery.
func TestSourcesAreFreed(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		for range 20 {
			p.consume(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "a"})
			p.put(1, "q", "1")
			d := p.expectDelivery(1, "1")
			p.send(1, &wire.BasicCancel{ConsumerTag: "a"})
			p.expect(1, &wire.BasicCancelOk{})
			p.put(1, "q", "2")
			got := p.get(1, "q", "2")
			p.send(1, &wire.BasicAck{DeliveryTag: d.DeliveryTag}, &wire.BasicAck{DeliveryTag: got.DeliveryTag})
		}
		p.getEmpty(1, "q")
		ch := s.snapshot()[0].openChannels()[0]
		ch.mu.Lock()
		defer ch.mu.Unlock()
		if n := len(ch.sources); n > 2 {
			t.Errorf("%d sources are kept", n)
		}
		for _, o := range ch.sources {
			if o != nil {
				t.Errorf("source of %q is kept", o.queue.Name())
			}
		}
	})
}

// The successor begins with what the one before it did not settle, not with what came later.
func TestSingleActiveConsumerSuccessorKeepsTheOrder(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.channel(2)
		p.send(1, &wire.QueueDeclare{Queue: "single", Arguments: rawTable(t, amqp.Table{"x-single-active-consumer": true})})
		p.expect(1, &wire.QueueDeclareOk{})
		p.send(1, &wire.BasicQos{PrefetchCount: 2})
		p.expect(1, &wire.BasicQosOk{})
		p.consume(1, &wire.BasicConsume{Queue: "single"})
		p.put(1, "single", "1", "2", "3")
		p.expectDelivery(1, "1")
		p.expectDelivery(1, "2")
		p.consume(2, &wire.BasicConsume{Queue: "single"})
		p.expectNothing()
		p.send(1, &wire.ChannelClose{})
		for _, body := range []string{"1", "2", "3"} {
			p.expectDelivery(2, body)
		}
		p.expect(1, &wire.ChannelCloseOk{})
		p.close()
	})
}
