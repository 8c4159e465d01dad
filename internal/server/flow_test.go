package server

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// put publishes a body to a queue through the default exchange.
func (p *script) put(channel uint16, queue string, bodies ...string) {
	for _, body := range bodies {
		p.publish(channel, &wire.BasicPublish{RoutingKey: []byte(queue)}, amqp.Properties{}, body)
	}
}

// consume starts a consumer and returns its tag.
func (p *script) consume(channel uint16, m *wire.BasicConsume) string {
	p.t.Helper()
	p.send(channel, m)
	var ok wire.BasicConsumeOk
	p.expect(channel, &ok)
	return ok.ConsumerTag
}

// expectDelivery reads a whole delivery with that body.
func (p *script) expectDelivery(channel uint16, body string) wire.BasicDeliver {
	p.t.Helper()
	var d wire.BasicDeliver
	p.expect(channel, &d)
	if _, got := p.expectContent(channel); got != body {
		p.t.Fatalf("delivered %q, want %q", got, body)
	}
	return d
}

// expectNothing expects that all the server has to say has been read.
func (p *script) expectNothing() {
	p.t.Helper()
	synctest.Wait()
	select {
	case f, ok := <-p.frames:
		if !ok {
			p.t.Fatal("connection ended, expected silence")
		}
		m, _ := wire.Parse(f.Payload)
		p.t.Fatalf("got frame of type %d, %T %+v, expected silence", f.Type, m, m)
	default:
	}
}

func (p *script) qos(channel, prefetch uint16, global bool) *script {
	p.t.Helper()
	p.send(channel, &wire.BasicQos{PrefetchCount: prefetch, Global: global})
	p.expect(channel, &wire.BasicQosOk{})
	return p
}

// get fetches a message with that body.
func (p *script) get(channel uint16, queue, body string) wire.BasicGetOk {
	p.t.Helper()
	p.send(channel, &wire.BasicGet{Queue: queue})
	var ok wire.BasicGetOk
	p.expect(channel, &ok)
	if _, got := p.expectContent(channel); got != body {
		p.t.Fatalf("got %q, want %q", got, body)
	}
	return ok
}

func (p *script) getEmpty(channel uint16, queue string) {
	p.t.Helper()
	p.send(channel, &wire.BasicGet{Queue: queue})
	p.expect(channel, &wire.BasicGetEmpty{})
}

// flowTest runs a test in a bubble with one client that has channel 1 open and a
// queue q.
func flowTest(t *testing.T, f func(t *testing.T, s *testServer, p *script)) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe().open(0).channel(1)
		p.declare(1, "q")
		f(t, s, p)
	})
}

func TestConsumeAndAck(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.put(1, "q", "one", "two")
		tag := p.consume(1, &wire.BasicConsume{Queue: "q"})
		if !strings.HasPrefix(tag, "amq.ctag-") {
			t.Errorf("tag = %q, want one of the server", tag)
		}
		d := p.expectDelivery(1, "one")
		if d.ConsumerTag != tag || d.DeliveryTag != 1 || d.Redelivered || string(d.RoutingKey) != "q" || len(d.Exchange) != 0 {
			t.Errorf("delivery = %+v", d)
		}
		if d = p.expectDelivery(1, "two"); d.DeliveryTag != 2 {
			t.Errorf("tag = %d, want 2", d.DeliveryTag)
		}
		p.send(1, &wire.BasicAck{DeliveryTag: 1}, &wire.BasicAck{DeliveryTag: 2})
		p.send(1, &wire.ChannelClose{})
		p.expect(1, &wire.ChannelCloseOk{})
		p.channel(1).getEmpty(1, "q")
		p.close()
	})
}

func TestDeliveryIsCompleteAndUnchanged(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		table, err := amqp.AppendTable(nil, amqp.Table{"a": int64(1), "b": []any{"x", true}})
		if err != nil {
			t.Fatal(err)
		}
		props := amqp.Properties{
			ContentType: []byte("text/plain"), Headers: table[4:], DeliveryMode: 1, Priority: 3,
			CorrelationID: []byte("c"), ReplyTo: []byte("r"), MessageID: []byte("m"), Timestamp: 12,
			Type: []byte("t"), UserID: []byte("guest"), AppID: []byte("app"),
		}
		props.Set(amqp.FlagContentType | amqp.FlagHeaders | amqp.FlagDeliveryMode | amqp.FlagPriority |
			amqp.FlagCorrelationID | amqp.FlagReplyTo | amqp.FlagMessageID | amqp.FlagTimestamp |
			amqp.FlagType | amqp.FlagUserID | amqp.FlagAppID)
		p.publish(1, &wire.BasicPublish{RoutingKey: []byte("q")}, props, "body")
		p.consume(1, &wire.BasicConsume{Queue: "q", NoAck: true})
		p.expect(1, &wire.BasicDeliver{})
		got, body := p.expectContent(1)
		if body != "body" || string(got.Append(nil)) != string(props.Append(nil)) {
			t.Errorf("got %+v %q", got, body)
		}
	})
}

// Bodies are cut into frames of the size that each side has agreed on.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 4087, 4088, 4089, 8176, 100_000, 3 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				s := newTestServer(t)
				p := s.pipe()
				p.login()
				p.send(0, &wire.ConnectionTuneOk{ChannelMax: 1, FrameMax: 4096}, &wire.ConnectionOpen{VirtualHost: "/"})
				p.expect(0, &wire.ConnectionOpenOk{})
				p.channel(1).declare(1, "q")
				body := strings.Repeat("0123456789abcdef", size/16+1)[:size]
				b := wire.AppendMethod(nil, 1, &wire.BasicPublish{RoutingKey: []byte("q")})
				p.write(wire.AppendContent(b, 1, []byte{0, 0}, []byte(body), 4096))
				p.put(1, "q", "after")
				p.consume(1, &wire.BasicConsume{Queue: "q", NoAck: true})
				p.expectDelivery(1, body)
				p.expectDelivery(1, "after")
				p.close()
			})
		})
	}
}

func TestDeliveryTagsAreOfTheChannel(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.channel(2)
		p.put(1, "q", "1", "2", "3")
		d := p.get(1, "q", "1")
		if d.DeliveryTag != 1 || d.MessageCount != 2 {
			t.Errorf("get-ok = %+v", d)
		}
		if d = p.get(2, "q", "2"); d.DeliveryTag != 1 {
			t.Errorf("first tag of channel 2 = %d, want 1", d.DeliveryTag)
		}
		p.send(2, &wire.BasicAck{DeliveryTag: 1})
		p.send(1, &wire.BasicAck{DeliveryTag: 2})
		var m wire.ChannelClose
		p.expect(1, &m)
		if m.ReplyCode != amqp.PreconditionFailed {
			t.Errorf("close = %+v", m)
		}
		p.get(2, "q", "1") // returned when its channel closed, and first again
		p.get(2, "q", "3")
	})
}

func TestAckTwiceIsUnknown(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.put(1, "q", "1")
		p.get(1, "q", "1")
		p.send(1, &wire.BasicAck{DeliveryTag: 1}, &wire.BasicAck{DeliveryTag: 1})
		var m wire.ChannelClose
		p.expect(1, &m)
		if m.ReplyText != "PRECONDITION_FAILED - unknown delivery tag 1" || m.ClassID != 60 || m.MethodID != 80 {
			t.Errorf("close = %+v", m)
		}
	})
}

func TestSettlesOfMany(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		methods []wire.Method
		left    []string // bodies that come again
	}{
		{"ack up to", []wire.Method{&wire.BasicAck{DeliveryTag: 2, Multiple: true}}, []string{"3", "4"}},
		{"ack all", []wire.Method{&wire.BasicAck{Multiple: true}}, nil},
		{"ack all of none", []wire.Method{&wire.BasicAck{Multiple: true}, &wire.BasicAck{Multiple: true}}, nil},
		{"ack one", []wire.Method{&wire.BasicAck{DeliveryTag: 3}}, []string{"1", "2", "4"}},
		{"reject", []wire.Method{&wire.BasicReject{DeliveryTag: 1}}, []string{"2", "3", "4"}},
		{"reject and requeue", []wire.Method{&wire.BasicReject{DeliveryTag: 1, Requeue: true}}, []string{"1", "2", "3", "4"}},
		{"nack up to", []wire.Method{&wire.BasicNack{DeliveryTag: 3, Multiple: true}}, []string{"4"}},
		{"nack and requeue up to", []wire.Method{&wire.BasicNack{DeliveryTag: 3, Multiple: true, Requeue: true}},
			[]string{"1", "2", "3", "4"}},
		{"requeue, then ack", []wire.Method{
			&wire.BasicReject{DeliveryTag: 1, Requeue: true}, &wire.BasicAck{DeliveryTag: 2},
		}, []string{"1", "3", "4"}},
		{"each way", []wire.Method{
			&wire.BasicAck{DeliveryTag: 1}, &wire.BasicNack{DeliveryTag: 2}, &wire.BasicNack{DeliveryTag: 3, Requeue: true},
		}, []string{"3", "4"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			flowTest(t, func(t *testing.T, s *testServer, p *script) {
				p.put(1, "q", "1", "2", "3", "4")
				for i := range 4 {
					p.get(1, "q", fmt.Sprint(i+1))
				}
				p.send(1, tt.methods...)
				p.send(1, &wire.BasicRecover{Requeue: true})
				p.expect(1, &wire.BasicRecoverOk{})
				for _, body := range tt.left {
					if d := p.get(1, "q", body); !d.Redelivered {
						t.Errorf("%s is not marked redelivered", body)
					}
				}
				p.getEmpty(1, "q")
			})
		})
	}
}

func TestPrefetchOfAConsumer(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.put(1, "q", "1", "2", "3", "4", "5", "6")
		p.qos(1, 2, false)
		p.consume(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "a"})
		p.expectDelivery(1, "1")
		p.expectDelivery(1, "2")
		p.expectNothing()
		p.qos(1, 1, false) // for consumers to come
		p.consume(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "b"})
		p.expectDelivery(1, "3")
		p.expectNothing()
		p.send(1, &wire.BasicAck{DeliveryTag: 1})
		if d := p.expectDelivery(1, "4"); d.ConsumerTag != "a" {
			t.Errorf("delivered to %q, want the one whose delivery was acked", d.ConsumerTag)
		}
		p.expectNothing()
		p.send(1, &wire.BasicReject{DeliveryTag: 3})
		if d := p.expectDelivery(1, "5"); d.ConsumerTag != "b" {
			t.Errorf("delivered to %q, want b", d.ConsumerTag)
		}
		p.expectNothing()
	})
}

func TestPrefetchOfTheChannel(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.declare(1, "r")
		p.qos(1, 2, true)
		p.consume(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "a"})
		p.consume(1, &wire.BasicConsume{Queue: "r", ConsumerTag: "b"})
		p.put(1, "q", "1", "2")
		p.expectDelivery(1, "1")
		p.expectDelivery(1, "2")
		p.put(1, "r", "3", "4", "5")
		p.expectNothing()
		p.send(1, &wire.BasicAck{DeliveryTag: 1})
		p.expectDelivery(1, "3")
		p.expectNothing()
		p.qos(1, 0, true) // no limit any more
		p.expectDelivery(1, "4")
		p.expectDelivery(1, "5")
	})
}

func TestNoAckIgnoresPrefetch(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.qos(1, 1, false).qos(1, 1, true)
		p.consume(1, &wire.BasicConsume{Queue: "q", NoAck: true})
		p.put(1, "q", "1", "2", "3")
		for i := range 3 {
			p.expectDelivery(1, fmt.Sprint(i+1))
		}
		p.send(1, &wire.BasicAck{DeliveryTag: 1})
		p.expect(1, &wire.ChannelClose{})
	})
}

func TestConsumerTagsAreUnique(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.consume(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "a"})
		p.send(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "a"})
		var m wire.ConnectionClose
		p.expect(0, &m)
		if m.ReplyText != "NOT_ALLOWED - attempt to reuse consumer tag 'a'" {
			t.Errorf("close = %+v", m)
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.consume(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "a"})
		p.put(1, "q", "1")
		p.expectDelivery(1, "1")
		p.send(1, &wire.BasicCancel{ConsumerTag: "a"})
		p.expect(1, &wire.BasicCancelOk{})
		p.put(1, "q", "2")
		p.expectNothing()
		p.send(1, &wire.BasicAck{DeliveryTag: 1}) // still its to settle
		p.get(1, "q", "2")
		p.send(1, &wire.BasicCancel{ConsumerTag: "a"}) // again: done already
		p.expect(1, &wire.BasicCancelOk{})
		p.consume(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "a"}) // the tag is free
	})
}

func TestConsumerCancelNotify(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.consume(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "a"})
		other := s.pipe().open(0).channel(1)
		other.send(1, &wire.QueueDelete{Queue: "q"})
		other.expect(1, &wire.QueueDeleteOk{})
		var m wire.BasicCancel
		p.expect(1, &m)
		if m.ConsumerTag != "a" || !m.NoWait {
			t.Errorf("cancel = %+v", m)
		}
		p.declare(1, "q")
		p.consume(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "a"})
	})
}

func TestNoWait(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.send(1,
			&wire.ExchangeDeclare{Exchange: "x", Type: "fanout", NoWait: true},
			&wire.ExchangeDeclare{Exchange: "y", Type: "fanout", NoWait: true},
			&wire.ExchangeBind{Source: "x", Destination: "y", NoWait: true},
			&wire.QueueDeclare{Queue: "n", NoWait: true},
			&wire.QueueBind{Queue: "n", Exchange: "y", NoWait: true},
			&wire.ConfirmSelect{NoWait: true},
		)
		p.publish(1, &wire.BasicPublish{Exchange: []byte("x")}, amqp.Properties{}, "1")
		p.expect(1, &wire.BasicAck{})
		p.send(1, &wire.BasicConsume{Queue: "n", ConsumerTag: "a", NoWait: true})
		p.expectDelivery(1, "1")
		p.send(1,
			&wire.BasicCancel{ConsumerTag: "a", NoWait: true},
			&wire.QueuePurge{Queue: "n", NoWait: true},
			&wire.ExchangeUnbind{Source: "x", Destination: "y", NoWait: true},
			&wire.ExchangeDelete{Exchange: "x", NoWait: true},
			&wire.QueueDelete{Queue: "n", NoWait: true},
		)
		p.expectNothing()
		p.send(1, &wire.QueueDeclare{Queue: "n", Passive: true, NoWait: true}) // an error is told all the same
		p.expect(1, &wire.ChannelClose{})
	})
}

// An empty name means the queue declared last on the channel.
func TestQueueDeclaredLast(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.send(1, &wire.QueueDeclare{})
		var ok wire.QueueDeclareOk
		p.expect(1, &ok)
		if !strings.HasPrefix(ok.Queue, "amq.gen-") {
			t.Errorf("queue = %q, want one the server named", ok.Queue)
		}
		p.send(1, &wire.QueueBind{Exchange: "amq.direct"})
		p.expect(1, &wire.QueueBindOk{})
		p.publish(1, &wire.BasicPublish{Exchange: []byte("amq.direct"), RoutingKey: []byte(ok.Queue)}, amqp.Properties{}, "1")
		p.get(1, "", "1")
		p.put(1, ok.Queue, "2")
		p.send(1, &wire.QueuePurge{})
		var purged wire.QueuePurgeOk
		p.expect(1, &purged)
		if purged.MessageCount != 1 {
			t.Errorf("purged %d, want 1", purged.MessageCount)
		}
		p.send(1, &wire.QueueUnbind{Exchange: "amq.direct"})
		p.expect(1, &wire.QueueUnbindOk{})
		p.consume(1, &wire.BasicConsume{})
		p.send(1, &wire.QueueDelete{})
		p.expect(1, &wire.BasicCancel{})
		p.expect(1, &wire.QueueDeleteOk{})
	})
}

// What a connection held comes back when it is gone, however it went.
func TestUnsettledDeliveriesReturn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		leave func(p *script)
	}{
		{"channel closed", func(p *script) { p.send(1, &wire.ChannelClose{}) }},
		{"channel error", func(p *script) { p.send(1, &wire.BasicAck{DeliveryTag: 99}) }},
		{"connection closed", func(p *script) { p.close() }},
		{"connection error", func(p *script) { p.send(1, &wire.BasicRecover{}) }},
		{"gone without a word", func(p *script) { p.nc.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			flowTest(t, func(t *testing.T, s *testServer, p *script) {
				p.put(1, "q", "1", "2", "3")
				p.consume(1, &wire.BasicConsume{Queue: "q"})
				p.expectDelivery(1, "1")
				p.expectDelivery(1, "2")
				p.expectDelivery(1, "3")
				p.send(1, &wire.BasicAck{DeliveryTag: 2})
				tt.leave(p)
				synctest.Wait()
				other := s.pipe().open(0).channel(1)
				other.send(1, &wire.QueueDeclare{Queue: "q", Passive: true})
				var ok wire.QueueDeclareOk
				other.expect(1, &ok)
				if ok.MessageCount != 2 || ok.ConsumerCount != 0 {
					t.Errorf("queue has %d messages and %d consumers, want 2 and none",
						ok.MessageCount, ok.ConsumerCount)
				}
				for _, body := range []string{"1", "3"} {
					if d := other.get(1, "q", body); !d.Redelivered {
						t.Errorf("%s is not marked redelivered", body)
					}
				}
				other.getEmpty(1, "q")
			})
		})
	}
}

func TestExclusiveQueue(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		p.send(1, &wire.QueueDeclare{Queue: "mine", Exclusive: true})
		p.expect(1, &wire.QueueDeclareOk{})
		other := s.pipe().open(0).channel(1)
		other.send(1, &wire.QueueDeclare{Queue: "mine", Passive: true})
		var m wire.ChannelClose
		other.expect(1, &m)
		if m.ReplyCode != amqp.ResourceLocked {
			t.Errorf("close = %+v, want 405", m)
		}
		other.send(1, &wire.ChannelCloseOk{})
		p.close()
		other.channel(1).send(1, &wire.QueueDeclare{Queue: "mine", Passive: true})
		other.expect(1, &m)
		if m.ReplyCode != amqp.NotFound || m.ReplyText != "NOT_FOUND - no queue 'mine' in vhost '/'" {
			t.Errorf("close = %+v, want 404", m)
		}
	})
}

// A client that reads nothing gets no more than fits into its output; the rest
// stays in the queue for others, and it goes on when it reads again.
func TestSlowConsumerBlocksOnlyItself(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		slow := s.pipe().open(0).channel(1)
		slow.consume(1, &wire.BasicConsume{Queue: "q", NoAck: true})
		slow.nc.(*stoppableConn).stop()
		body := strings.Repeat("x", 10_000)
		for range 500 {
			p.put(1, "q", body)
		}
		p.send(1, &wire.QueueDeclare{Queue: "q", Passive: true})
		var ok wire.QueueDeclareOk
		p.expect(1, &ok)
		if ok.MessageCount < 250 {
			t.Errorf("%d of 500 messages are left, want most: the output holds 1 MiB", ok.MessageCount)
		}
		p.consume(1, &wire.BasicConsume{Queue: "q", NoAck: true})
		for range ok.MessageCount {
			p.expectDelivery(1, body)
		}
		p.expectNothing()
	})
}

// Nor does a client that asks for more than it takes: what it asks for is not done
// before there is room for the answer.
func TestGetsAreDoneWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	flowTest(t, func(t *testing.T, s *testServer, p *script) {
		body := strings.Repeat("x", 100_000)
		for range 200 {
			p.put(1, "q", body)
		}
		slow := s.pipe().open(0).channel(1)
		slow.nc.(*stoppableConn).stop()
		gets := make([]wire.Method, 200)
		for i := range gets {
			gets[i] = &wire.BasicGet{Queue: "q", NoAck: true}
		}
		slow.send(1, gets...)
		synctest.Wait()
		for _, c := range s.Connections() {
			if c.OutputPending > 5<<20 {
				t.Errorf("%d octets wait for a client that does not read", c.OutputPending)
			}
		}
		p.send(1, &wire.QueueDeclare{Queue: "q", Passive: true})
		var ok wire.QueueDeclareOk
		p.expect(1, &ok)
		if ok.MessageCount < 150 {
			t.Errorf("%d of 200 messages are left, want all but what fits into 4 MiB", ok.MessageCount)
		}
	})
}
