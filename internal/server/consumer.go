package server

import (
	"sync/atomic"

	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/wire"
)

// consumer is one consumer of a channel. It implements broker.Receiver: any
// goroutine that has a message for it calls it.
type consumer struct {
	ch       *channel
	tag      string
	noAck    bool
	direct   bool  // takes direct replies, for which no credit is reserved
	prefetch int64 // 0 for no limit
	timeout  int64 // milliseconds a delivery may be unacknowledged, negative if the client did not say

	inflight atomic.Int64 // units of credit taken: delivered and not settled, or about to be
	gone     atomic.Bool  // no delivery will be sent any more; set under ch.mu

	// Set under ch.mu before the consumer is among the channel's, and never after.
	handle subscription
	source *source // what its deliveries are remembered by; nil for direct replies
}

// subscription is the broker's side of a consumer: of a queue, or of direct
// replies.
type subscription interface {
	Wake()
	Cancel()
}

var _ broker.Receiver = (*consumer)(nil)

// Reserve implements broker.Receiver. It runs under a queue's lock.
func (k *consumer) Reserve() bool {
	ch := k.ch
	if !ch.open.Load() || k.gone.Load() || phase(ch.c.phase.Load()) != phaseOpen || ch.c.out.full() {
		return false
	}
	if k.noAck {
		return true // prefetch counts what waits for an ack [amqp basic.qos]
	}
	if k.prefetch > 0 && k.inflight.Load() >= k.prefetch {
		return false
	}
	if !ch.reserve() {
		return false
	}
	k.inflight.Add(1) // only this queue's lock holder adds, so it is still below prefetch
	return true
}

// reserve takes a unit of the credit that the channel's consumers share.
func (ch *channel) reserve() bool {
	for {
		limit, n := ch.limit.Load(), ch.inflight.Load()
		if limit > 0 && n >= limit {
			return false
		}
		if ch.inflight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release implements broker.Receiver.
func (k *consumer) Release() {
	if !k.noAck {
		k.giveBack(1)
	}
}

// giveBack returns credit. Whoever calls it wakes the queue, if there is one.
func (k *consumer) giveBack(n int64) {
	k.inflight.Add(-n)
	k.ch.inflight.Add(-n)
}

// Deliver implements broker.Receiver: the delivery is encoded straight into the
// connection's output.
func (k *consumer) Deliver(d *broker.Delivery) bool {
	ch := k.ch
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if k.gone.Load() || k.direct && ch.c.out.full() {
		return false
	}
	tag := ch.lastTag + 1
	b := wire.AppendDeliver(ch.c.out.begin(), ch.number, k.tag, tag, d.Redelivered,
		d.Record.ExchangeAndKey, d.Record.Props, d.Record.Body, ch.c.peer.frameMax)
	if !ch.c.out.end(b) {
		return false
	}
	ch.lastTag = tag
	if !k.noAck {
		ch.remember(k.source, tag, d.Pos)
	}
	ch.c.tally.delivered.Add(1)
	return true
}

// Cancelled implements broker.Receiver: the queue is gone, and clients that say
// they understand are told. [rmq consumer cancel notify]
func (k *consumer) Cancelled() {
	ch := k.ch
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if k.gone.Swap(true) || k.handle == nil {
		return // ended already, or the client does not know of it yet
	}
	delete(ch.consumers, k.tag)
	ch.forgetSource(k.source)
	if ch.c.peer.canCancel {
		ch.c.send(ch.number, &wire.BasicCancel{ConsumerTag: k.tag, NoWait: true})
	}
}

// resume tells the queues that the client has taken what was waiting to be
// written, so that there is room for more. It runs in a goroutine of its own.
func (c *conn) resume() {
	for _, ch := range c.openChannels() {
		ch.wakeConsumers()
	}
}

func (c *conn) openChannels() []*channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	channels := make([]*channel, 0, len(c.channels))
	for _, ch := range c.channels {
		channels = append(channels, ch)
	}
	return channels
}

// wakeConsumers tells the queues that credit the consumers share has come back.
func (ch *channel) wakeConsumers() {
	ch.mu.Lock()
	woken := make([]*consumer, 0, len(ch.consumers))
	for _, k := range ch.consumers {
		woken = append(woken, k)
	}
	ch.mu.Unlock()
	for _, k := range woken {
		k.handle.Wake()
	}
}
