package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
	"github.com/duepost/duepost/internal/wire"
)

// rawTable is a table as it is on the wire.
func rawTable(t *testing.T, table amqp.Table) amqp.RawTable {
	t.Helper()
	b, err := amqp.AppendTable(nil, table)
	if err != nil {
		t.Fatal(err)
	}
	return amqp.RawTable(b[4:])
}

// expectTimeout waits for the channel to be closed because of an ack that did not come.
func (p *script) expectTimeout(channel uint16, text string) {
	p.t.Helper()
	var m wire.ChannelClose
	p.expect(channel, &m)
	if m.ReplyCode != amqp.PreconditionFailed || m.ReplyText != text {
		p.t.Errorf("got %d %s, want 406 %s", m.ReplyCode, m.ReplyText, text)
	}
	p.send(channel, &wire.ChannelCloseOk{})
}

func TestDeliveryNotAcknowledgedInTimeClosesItsChannel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		server          time.Duration
		queue, consumer amqp.Table
		timeout         time.Duration
		ms              string
	}{
		{"server", 20 * time.Minute, nil, nil, 20 * time.Minute, "1200000"},
		{"queue", 0, amqp.Table{"x-consumer-timeout": int32(120_000)}, nil, 2 * time.Minute, "120000"},
		{"consumer", 0, amqp.Table{"x-consumer-timeout": int32(120_000)},
			amqp.Table{"x-consumer-timeout": int32(300_000)}, 5 * time.Minute, "300000"},
		{"policy", 0, nil, nil, 3 * time.Minute, "180000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				s := newTestServer(t, func(cfg *Config) { cfg.ConsumerTimeout = c.server })
				p := s.pipe().open(0).channel(1).channel(2)
				if c.name == "policy" {
					err := s.cfg.Broker.VHost("/").SetPolicy(policy.Policy{Name: "p", Pattern: "^q$",
						Definition: policy.Definition{"consumer-timeout": int64(180_000)}})
					if err != nil {
						t.Fatal(err)
					}
				}
				p.send(1, &wire.QueueDeclare{Queue: "q", Arguments: rawTable(t, c.queue)})
				p.expect(1, &wire.QueueDeclareOk{})
				p.put(2, "q", "a", "b")
				p.consume(1, &wire.BasicConsume{Queue: "q", Arguments: rawTable(t, c.consumer)})
				p.expectDelivery(1, "a")
				p.expectDelivery(1, "b")
				time.Sleep(c.timeout - time.Second)
				p.send(1, &wire.BasicAck{DeliveryTag: 1}) // the one behind it is as old
				p.expectNothing()
				time.Sleep(time.Minute)
				synctest.Wait()
				p.expectTimeout(1, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. "+
					"Timeout value used: "+c.ms+" ms. This timeout value can be configured, see consumers "+
					"doc guide to learn more")
				p.get(2, "q", "b") // the connection and its other channel live on
				p.close()
			})
		})
	}
}

func TestConsumerTimeoutOffAndWhatIsAcknowledged(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t, func(cfg *Config) { cfg.ConsumerTimeout = -1 })
		p := s.pipe().open(0).channel(1).channel(2)
		p.declare(1, "q")
		p.put(1, "q", "a")
		p.consume(1, &wire.BasicConsume{Queue: "q"})
		p.expectDelivery(1, "a")
		p.send(2, &wire.QueueDeclare{Queue: "short", Arguments: rawTable(t, amqp.Table{"x-consumer-timeout": int32(60_000)})})
		p.expect(2, &wire.QueueDeclareOk{})
		p.consume(2, &wire.BasicConsume{Queue: "short"})
		for range 10 {
			p.put(1, "short", "x")
			tag := p.expectDelivery(2, "x").DeliveryTag
			time.Sleep(50 * time.Second)
			p.send(2, &wire.BasicAck{DeliveryTag: tag})
		}
		time.Sleep(24 * time.Hour)
		p.expectNothing()
		p.close()
	})
}
