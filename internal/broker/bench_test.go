package broker

import (
	"fmt"
	"testing"
	"time"
)

// nullReceiver takes everything and acknowledges in batches of 100, if it has to.
type nullReceiver struct {
	queue *Queue
	noAck bool
	held  []uint64
}

func (*nullReceiver) Reserve() bool { return true }
func (*nullReceiver) Release()      {}
func (*nullReceiver) Cancelled()    {}

func (n *nullReceiver) Deliver(d *Delivery) bool {
	if n.noAck {
		return true
	}
	n.held = append(n.held, d.Pos)
	return true
}

func (n *nullReceiver) settle() {
	if len(n.held) >= 100 {
		n.queue.Ack(n.held)
		n.held = n.held[:0]
	}
}

// stream is a publisher and a consumer with one message to publish over and over.
type stream struct {
	rig      *rig
	message  *Message
	receiver *nullReceiver
}

func newStream(t testing.TB, noAck bool, options ...option) *stream {
	r := newRig(t)
	q := r.queue("q", nil, "durable")
	r.bind("q", "amq.topic", "orders.*.created")
	s := &stream{
		rig:      r,
		message:  newMessage("amq.topic", "orders.eu.created", string(make([]byte, 256)), options...),
		receiver: &nullReceiver{queue: q, noAck: noAck},
	}
	c, err := q.Consume(ConsumerSpec{NoAck: noAck, Receiver: s.receiver})
	if err != nil {
		t.Fatal(err)
	}
	c.Wake()
	return s
}

func (s *stream) step(t testing.TB) {
	if _, err := s.rig.p.Publish(s.message); err != nil {
		t.Fatal(err)
	}
	s.receiver.settle()
}

func BenchmarkPushDeliver(b *testing.B) {
	for name, options := range map[string][]option{"persistent": nil, "transient": {transient}} {
		b.Run(name+"/acked", func(b *testing.B) {
			s := newStream(b, false, options...)
			b.ReportAllocs()
			for b.Loop() {
				s.step(b)
			}
		})
		b.Run(name+"/no-ack", func(b *testing.B) {
			s := newStream(b, true, options...)
			b.ReportAllocs()
			for b.Loop() {
				s.step(b)
			}
		})
	}
}

func BenchmarkPush(b *testing.B) {
	r := newRig(b)
	r.queue("q", nil)
	m := newMessage("", "q", string(make([]byte, 256)), transient)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.p.Publish(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIndex(b *testing.B) {
	x := newTestIndex()
	pos := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		x.put(pos, entry{})
		p, _ := x.nextReady()
		x.hold(p)
		x.remove(p)
		pos++
	}
}

// newTopicRig has many patterns on one topic exchange, of which a key matches a few.
func newTopicRig(t testing.TB) *rig {
	r := newRig(t)
	for i := range 200 {
		name := fmt.Sprint("q", i)
		r.queue(name, nil)
		r.bind(name, "amq.topic", fmt.Sprintf("orders.%d.*", i))
		r.bind(name, "amq.topic", fmt.Sprintf("*.%d.created.#", i))
	}
	r.bind("q0", "amq.topic", "#.audit")
	return r
}

func BenchmarkRouteTopic(b *testing.B) {
	r := newTopicRig(b)
	x := r.vhost.exchange("amq.topic")
	keys := [][]byte{[]byte("orders.7.created"), []byte("orders.150.paid"), []byte("stock.7.created.eu"), []byte("x.audit")}
	var found route
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		found.reset()
		if err := found.walk(x, &envelope{key: keys[i%len(keys)]}); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkDelayedPublish(b *testing.B) {
	r := newRig(b)
	r.delayedExchange("x", "direct")
	m := newMessage("x", "k", string(make([]byte, 256)), withDelay(time.Hour.Milliseconds()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.p.Publish(m); err != nil {
			b.Fatal(err)
		}
	}
}
