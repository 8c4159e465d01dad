package broker

import (
	"sync/atomic"
	"time"

	"github.com/duepost/duepost/internal/amqp"
)

// Receiver is one AMQP consumer as the broker sees it. The connection's side implements it.
type Receiver interface {
	// Reserve takes one unit of credit: the consumer's and the channel's prefetch, room in
	// the connection's output, the channel open and flowing. False leaves everything as it
	// was. It is called under the queue's lock, from any goroutine, so it may use atomics
	// or a short lock of its own and must not call the broker.
	//
	// After a false the receiver owes a call of Consumer.Wake when there is credit again.
	Reserve() bool

	// Release gives back a unit that Reserve took and that is not used. It may be called
	// under the queue's lock.
	Release()

	// Deliver hands over one message; a unit of credit has been taken for it. It is called
	// without locks, in queue order, by one goroutine at a time per queue. d and all it
	// points to are valid during the call only. False says that the consumer is gone: the
	// message goes back to its place and the unit of credit is forgotten.
	//
	// After Cancel has returned Deliver may still be called for what was claimed before,
	// and answers false then.
	Deliver(d *Delivery) bool

	// Cancelled tells that the queue is gone [rmq consumer cancel notify]. The consumer
	// need not be cancelled any more. It is called without locks.
	Cancelled()
}

// ConsumerSpec is what a client says about a consumer.
type ConsumerSpec struct {
	Tag       string
	NoAck     bool // settled by being delivered
	Exclusive bool // no other consumer may be on the queue
	Args      amqp.Table
	Receiver  Receiver
}

// Consumer is one consumer of a queue, made by [Queue.Consume].
type Consumer struct {
	queue    *Queue
	receiver Receiver
	spec     ConsumerSpec

	// starved is true while the consumer is not among those that are asked for credit.
	// It is set before Reserve is asked a last time, so a Wake that follows new credit
	// either sees it or comes before an answer that counts that credit.
	starved atomic.Bool

	priority int64 // those with a higher one come first [rmq consumer priorities]

	isReady bool // was woken; guarded by queue.mu
	gone    bool // cancelled; guarded by queue.mu
}

// ConsumerTimeout is how long a delivery may be unacknowledged, and whether the queue says so at
// all. 0 is for ever. [rmq consumer timeout]
func (q *Queue) ConsumerTimeout() (time.Duration, bool) {
	ms := q.settings.Load().consumerTimeout
	return time.Duration(ms) * time.Millisecond, ms >= 0
}

// Tag returns the consumer tag.
func (c *Consumer) Tag() string { return c.spec.Tag }

// Queue returns the queue it consumes from.
func (c *Consumer) Queue() *Queue { return c.queue }

// NoAck reports whether deliveries are settled by being delivered.
func (c *Consumer) NoAck() bool { return c.spec.NoAck }

// Wake says that Reserve may succeed again. It costs one atomic load if the consumer was not
// refused before. A new consumer gets nothing until the first Wake, so that basic.consume-ok
// can be sent before the first delivery.
func (c *Consumer) Wake() {
	if !c.starved.Load() {
		return
	}
	c.queue.wake(c)
}

// Cancel takes the consumer off the queue. What it holds unacknowledged stays with it until
// settled or requeued. A queue declared auto-delete goes with its last consumer. It is
// idempotent and must not be called from the Receiver's methods.
func (c *Consumer) Cancel() { c.queue.removeConsumer(c) }
