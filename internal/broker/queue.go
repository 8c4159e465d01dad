package broker

import (
	"sync"
	"sync/atomic"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/delay"
	"github.com/duepost/duepost/internal/store"
)

// Queue holds messages in order and gives them to consumers.
//
// A message has a position, handed out before the message is stored; see index. Whoever makes
// a delivery possible (a push, new credit, a requeue) runs the dispatch, unless somebody does
// so already; see dispatchLocked. Nothing else moves messages.
type Queue struct {
	id         uint32
	name       string
	broker     *Broker
	vhost      *VHost
	durable    bool
	autoDelete bool
	owner      *Session // of an exclusive queue, else nil
	args       amqp.Table

	// logged is whether persistent messages of this queue are in the log: it is durable
	// and not exclusive.
	logged bool

	quorum bool // its type is

	// singleActive is whether only one of the consumers gets messages.
	singleActive bool

	settings atomic.Pointer[queueSettings]
	next     atomic.Uint64 // position of the next message

	policies policyPair // guarded by vhost.mu

	// bindings that lead here; guarded by vhost.mu.
	bindings map[bindingKey]*binding

	mu sync.Mutex // guards all below

	index      messages
	delivered  uint64     // nothing from here on was ever delivered
	expires    expiryHeap // of messages with a TTL of their own
	disordered bool       // some of them are there because the clock was set back
	zero       []uint64   // positions that expire unless delivered at once

	consumers []*Consumer // in order of registration
	active    []*Consumer // those that may have credit: highest priority first, asked in turn
	isRanked  bool        // there was a consumer with a priority
	sole      *Consumer   // the one that gets messages, if singleActive
	turn      int         // whose turn it is in active
	exclusive bool        // its one consumer wants to be alone

	// dispatching is true while somebody is responsible for deliveries: in dispatch, or on
	// the worker's list.
	dispatching bool
	deleted     bool

	// relocated are the new places of records whose position is reserved and not yet
	// pushed; see Broker.Relocate.
	// Also of those whose chunk is paged and cannot be read.
	relocated map[uint64]relocation

	listed    bool   // with the pager
	readFrom  uint64 // number of the chunk behind which it was read ahead
	loadRetry int64  // when a paged chunk may be read again after a fault, unix milliseconds

	retries expiryHeap // of held messages that came back and wait before they are ready again

	stuck      []stuckLetter // dead letters that the store refused
	stuckUntil int64         // when they are tried again, unix milliseconds

	alarm    *delay.Alarm // made on first use
	armedAt  int64        // instant the alarm is set for, 0 if not set
	newest   int64        // latest arrival, unix milliseconds; meaningful with a TTL
	lastUsed int64        // unix milliseconds; meaningful with x-expires

	undeliverable atomic.Bool // nobody was there to take its dead letters, and this was logged
	cycling       atomic.Bool // dead letters would go round to it, and this was logged
}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.name }

// Messages returns how many messages are ready.
func (q *Queue) Messages() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.index.ready
}

// Unacknowledged returns how many messages are delivered and not settled.
func (q *Queue) Unacknowledged() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.index.held
}

// Consumers returns how many consumers there are.
func (q *Queue) Consumers() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.consumers)
}

// abandon gives up a reserved position, because the message could not be stored.
func (q *Queue) abandon(pos uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.relocated, pos)
	if !q.deleted {
		q.index.abandon(pos)
	}
}

// isFull reports whether one more message is refused [rmq reject-publish].
func (q *Queue) isFull() bool {
	s := q.settings.Load()
	if !s.refuses() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return s.maxLength >= 0 && int64(q.index.ready) >= s.maxLength ||
		s.maxBytes >= 0 && q.index.readyBytes >= s.maxBytes
}

// push makes the message at a reserved position ready and delivers it if a consumer has
// credit. ttl is the message's own, in milliseconds, negative if it has none. known is the
// message's record if the caller has it in hand, else nil; it is not kept.
func (q *Queue) push(pos uint64, e entry, ttl int64, known *store.Record) {
	q.mu.Lock()
	if q.deleted {
		q.mu.Unlock()
		q.forget(pos, e)
		return
	}
	if len(q.relocated) > 0 {
		q.followLocked(pos, &e)
	}
	s := q.settings.Load()
	if ttl >= 0 || s.ttl >= 0 {
		q.noteArrivalLocked(pos, &e, ttl, s)
	}
	q.index.put(pos, e)
	q.listLocked(pos)
	if q.hasWorkLocked(s) {
		q.dispatchKnownLocked(pos, known)
		return
	}
	q.mu.Unlock()
}

// hasWorkLocked reports whether a dispatch may do something that nobody else will do.
func (q *Queue) hasWorkLocked(s *queueSettings) bool {
	return !q.dispatching && q.index.ready > 0 &&
		(len(q.active) > 0 || len(q.zero) > 0 || s.isExceeded(&q.index.index))
}

// followLocked corrects the reference of a message that was relocated before it was pushed.
func (q *Queue) followLocked(pos uint64, e *entry) {
	if r, ok := q.relocated[pos]; ok {
		q.broker.store.Drop(e.ref)
		e.ref = r.to
		delete(q.relocated, pos)
	}
}

// forget settles a message that came to a queue which is no more.
func (q *Queue) forget(pos uint64, e entry) {
	if e.has(flagLogged) {
		q.broker.store.Settle(q.id, []uint64{pos}, []store.Ref{e.ref})
		return
	}
	q.broker.store.Drop(e.ref)
}

// wake puts a consumer that was refused credit among those that are asked again.
func (q *Queue) wake(c *Consumer) {
	q.mu.Lock()
	if !c.starved.Load() || c.gone || q.deleted {
		q.mu.Unlock()
		return
	}
	q.activateLocked(c)
	if q.index.ready > 0 && !q.dispatching {
		q.dispatchLocked()
		return
	}
	q.mu.Unlock()
}

// Wake says that any consumer may have credit again. Consumer.Wake is cheaper.
func (q *Queue) Wake() {
	q.mu.Lock()
	consumers := append([]*Consumer(nil), q.consumers...)
	q.mu.Unlock()
	for _, c := range consumers {
		c.Wake()
	}
}
