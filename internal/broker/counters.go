package broker

import (
	"sync/atomic"

	"github.com/duepost/duepost/internal/store"
)

// counters are what the broker has done since it was opened.
type counters struct {
	deadLettered    atomic.Uint64
	deadDropped     atomic.Uint64
	deadCycles      atomic.Uint64
	deadParked      atomic.Uint64
	expiredMessages atomic.Uint64
	overflowed      atomic.Uint64
	unreadable      atomic.Uint64
	refusedFull     atomic.Uint64
	parked          atomic.Uint64
	delayedDropped  atomic.Uint64
	lateDropped     atomic.Uint64
	delayedRefused  atomic.Uint64
	repliesDropped  atomic.Uint64
	expiredQueues   atomic.Uint64
	orphans         atomic.Uint64
}

// Stats are the counters of a Broker. They are read one by one, so under load they need not add
// up.
type Stats struct {
	DeadLettered   uint64 // messages that left a queue for a dead-letter exchange
	DeadDropped    uint64 // of which no queue took, because there is no exchange or binding
	DeadParked     uint64 // of which no queue took and which were parked
	DeadCycles     uint64 // copies not made because they would go round for ever
	Expired        uint64 // messages whose time to live ended
	Overflowed     uint64 // messages that a full queue let go of
	Unreadable     uint64 // messages whose record could not be read
	RefusedFull    uint64 // messages refused because the disk is full
	Parked         uint64 // due messages that nobody took
	DelayedDropped uint64 // delayed messages dropped with their exchange, or unroutable where that is set
	LateDropped    uint64 // delayed messages dropped because they were too late
	DelayedRefused uint64 // messages that a delayed exchange was too full to take
	RepliesDropped uint64 // direct replies to consumers that were gone
	ExpiredQueues  uint64 // queues deleted because nobody used them
	Orphans        uint64 // messages found at the start whose queue or exchange is no more

	VHosts, Exchanges, Queues, Bindings int
}

// Stats returns the counters.
func (b *Broker) Stats() Stats {
	c := &b.counters
	s := Stats{
		DeadLettered:   c.deadLettered.Load(),
		DeadDropped:    c.deadDropped.Load(),
		DeadParked:     c.deadParked.Load(),
		DeadCycles:     c.deadCycles.Load(),
		Expired:        c.expiredMessages.Load(),
		Overflowed:     c.overflowed.Load(),
		Unreadable:     c.unreadable.Load(),
		RefusedFull:    c.refusedFull.Load(),
		Parked:         c.parked.Load(),
		DelayedDropped: c.delayedDropped.Load(),
		LateDropped:    c.lateDropped.Load(),
		DelayedRefused: c.delayedRefused.Load(),
		RepliesDropped: c.repliesDropped.Load(),
		ExpiredQueues:  c.expiredQueues.Load(),
		Orphans:        c.orphans.Load(),
	}
	for _, v := range b.allVHosts() {
		v.count(&s)
	}
	return s
}

func (b *Broker) allVHosts() []*VHost {
	b.mu.RLock()
	defer b.mu.RUnlock()
	all := make([]*VHost, 0, len(b.vhosts))
	for _, v := range b.vhosts {
		all = append(all, v)
	}
	return all
}

func (v *VHost) count(s *Stats) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s.VHosts++
	s.Exchanges += len(v.exchanges)
	s.Queues += len(v.queues)
	for _, x := range v.exchanges {
		s.Bindings += len(x.outgoing)
	}
}

// Delayed returns what waits in a delayed exchange of the virtual host, and in what remains of
// former ones of its name; nothing if there is no such exchange.
func (v *VHost) Delayed(exchange string) store.Pending {
	v.mu.RLock()
	defer v.mu.RUnlock()
	x := v.exchanges[exchange]
	if x == nil || !x.delayed {
		return store.Pending{}
	}
	a, b := x.pending(), v.pendingInRemainsLocked(exchange)
	return store.Pending{Count: a.Count + b.Count, Bytes: a.Bytes + b.Bytes}
}

// pending is what waits in a delayed exchange.
func (x *Exchange) pending() store.Pending {
	a := x.vhost.broker.store.Pending(x.id)
	b := x.vhost.broker.store.Pending(x.id | historyBit)
	return store.Pending{Count: a.Count + b.Count, Bytes: a.Bytes + b.Bytes}
}

// noteUnreadable is told of a message whose record cannot be read; it is lost.
func (b *Broker) noteUnreadable(q *Queue, pos uint64, err error) {
	q.mu.Lock()
	deleted := q.deleted
	q.mu.Unlock()
	if deleted {
		return // its records are gone with it
	}
	b.counters.unreadable.Add(1)
	b.log.Error("message lost: record unreadable",
		"vhost", q.vhost.name, "queue", q.name, "id", pos, "err", err)
}
