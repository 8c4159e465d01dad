package server

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// outcome is how a delivery was settled.
type outcome uint8

const (
	acked    outcome = iota
	rejected         // to be dead-lettered or dropped
	requeued         // to be delivered again
	returned         // the same, without having been refused
)

// refusal is the outcome that nack and reject ask for.
func refusal(requeue bool) outcome {
	if requeue {
		return requeued
	}
	return rejected
}

// handleBasicAck settles deliveries. Frequent, so it is decoded in place.
func (ch *channel) handleBasicAck(args []byte) error {
	var m wire.BasicAck
	if err := m.Decode(args); err != nil {
		return err
	}
	return inMethod(ch.settle(m.DeliveryTag, m.Multiple, acked), wire.BasicAckID)
}

// settle takes the named deliveries out of the window: one, or all up to the
// tag, or with tag 0 all there are. The queues learn of it at the next flush, in
// transactions at commit. [amqp basic.ack] [rmq nack]
func (ch *channel) settle(tag uint64, multiple bool, how outcome) error {
	if ch.how != how {
		ch.passAll() // so that a queue sees things in the client's order
		ch.how = how
	}
	ch.mu.Lock()
	ok := ch.takeLocked(tag, multiple)
	if ok && ch.tx == nil {
		for _, u := range ch.taken {
			ch.gather(u)
		}
	}
	ch.mu.Unlock()
	if !ok {
		return amqp.Errorf(amqp.PreconditionFailed, "unknown delivery tag %d", tag)
	}
	if ch.tx != nil {
		ch.tx.settle(ch.taken, how)
	}
	return nil
}

// takeLocked moves the named deliveries from the window to ch.taken.
func (ch *channel) takeLocked(tag uint64, multiple bool) bool {
	ch.taken = ch.taken[:0]
	w := &ch.window
	switch {
	case multiple && tag == 0:
		for u, ok := w.takeFirst(); ok; u, ok = w.takeFirst() {
			ch.taken = append(ch.taken, u)
		}
		return true
	case multiple:
		if _, ok := w.find(tag); !ok {
			return false
		}
		for w.count > 0 && w.at(0).tag <= tag {
			u, _ := w.takeFirst()
			ch.taken = append(ch.taken, u)
		}
		return true
	}
	i, ok := w.find(tag)
	if ok {
		ch.taken = append(ch.taken, w.settle(i))
	}
	return ok
}

// gather notes a settled delivery for the next flush. The caller holds ch.mu.
func (ch *channel) gather(u unacked) {
	s := ch.takeFrom(u)
	if len(s.positions) == 0 {
		ch.gathering = append(ch.gathering, s)
		ch.list()
	}
	s.positions = append(s.positions, u.pos)
}

// list notes that the channel has something to flush.
func (ch *channel) list() {
	if !ch.listed {
		ch.listed = true
		ch.c.settling = append(ch.c.settling, ch)
	}
}

// flush does what was gathered from frames: settles go to the queues, confirms
// to the client or the store. The reader calls it before it waits for more
// input and before any method whose effect must come after.
func (c *conn) flush() {
	if len(c.settling) == 0 {
		return
	}
	for _, ch := range c.settling {
		ch.flush()
	}
	c.settling = c.settling[:0]
}

func (ch *channel) flush() {
	ch.listed = false
	ch.passAll()
	ch.c.confirm.flush(&ch.confirms)
}

func (ch *channel) passAll() {
	for _, s := range ch.gathering {
		ch.pass(s)
	}
	clear(ch.gathering)
	ch.gathering = ch.gathering[:0]
}

// pass tells a queue what was gathered for it and gives the credit back.
func (ch *channel) pass(s *source) {
	n := len(s.positions)
	ch.c.tally.count(ch.how, n)
	switch ch.how {
	case acked:
		s.queue.Ack(s.positions)
	case rejected:
		s.queue.Reject(s.positions)
	case requeued:
		s.queue.Requeue(s.positions)
	case returned:
		s.queue.Return(s.positions)
	}
	s.positions = s.positions[:0]
	if s.consumer == nil {
		return
	}
	s.consumer.giveBack(int64(n))
	if ch.limit.Load() > 0 {
		ch.wakeConsumers()
		return
	}
	s.consumer.handle.Wake()
}

// requeueAll gives back all deliveries that were not settled.
func (ch *channel) requeueAll() {
	ch.passAll()
	ch.how = returned
	ch.mu.Lock()
	ch.takeLocked(0, true)
	for _, u := range ch.taken {
		ch.gather(u)
	}
	ch.mu.Unlock()
	ch.passAll()
}
