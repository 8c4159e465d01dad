package broker

import "github.com/duepost/duepost/internal/store"

// group gathers messages that arrive together, in one atomic group of the store: dead letters, or
// what a transaction publishes. Its life: hold and enqueue, then batch is committed, then arrive;
// or abandon. Others may put more into batch. It is reused after reset.
type group struct {
	broker   *Broker
	batch    store.Batch
	arrivals []arrival
	bytes    int   // of all messages
	logged   int   // how many messages batch.Refs will have
	delayed  int   // how many are delayed
	due      int64 // the earliest of them
}

// arrival is a message that arrives in queues.
type arrival struct {
	placement placement
	stored    stored
	index     int // of batch.Refs; -1 if no place is logged
}

// departure is a message that leaves its queue with the group.
type departure struct {
	pos    uint64
	ref    store.Ref // as it is settled in the group
	moved  store.Ref // where the cleaner has moved it meanwhile, if it has
	logged bool
}

// hold adds a message that waits in a delayed exchange, in its released form.
func (g *group) hold(m *store.Message, due int64) {
	g.batch.AppendDelayed(m, due)
	if g.delayed == 0 || due < g.due {
		g.due = due
	}
	g.delayed++
	g.bytes += m.BodyLen() + len(m.Props)
}

// enqueue adds a message for queues. After an error the places that are not logged get nothing.
func (g *group) enqueue(m *store.Message, queues []*Queue) (err error) {
	if len(g.arrivals) < cap(g.arrivals) {
		g.arrivals = g.arrivals[:len(g.arrivals)+1] // with the space of an older one
	} else {
		g.arrivals = append(g.arrivals, arrival{})
	}
	a := &g.arrivals[len(g.arrivals)-1]
	a.placement.reserve(queues, m)
	a.stored = stored{body: m.BodyLen(), arrived: m.Arrived, ttl: m.TTL}
	a.index = -1
	if len(a.placement.targets) > 0 {
		a.index = g.logged
		g.logged++
		g.batch.Append(m, a.placement.targets, len(a.placement.targets))
	}
	if a.placement.transient > 0 {
		a.stored.transient, err = g.broker.store.AppendTransient(m, a.placement.transient)
	}
	g.bytes += m.BodyLen() + len(m.Props)
	return err
}

// arrive hands over what was committed.
func (g *group) arrive() {
	if g.delayed > 0 {
		g.broker.engine.Added(g.delayed, g.due)
	}
	for i := range g.arrivals {
		a := &g.arrivals[i]
		if a.index >= 0 {
			a.stored.logged = g.batch.Refs[a.index]
		}
		a.placement.push(&a.stored)
	}
}

// abandon gives up what was reserved for a group that was not committed.
func (g *group) abandon() {
	for i := range g.arrivals {
		a := &g.arrivals[i]
		a.placement.abandon(true)
		a.placement.abandon(false)
		if a.stored.transient == (store.Ref{}) {
			continue
		}
		for range a.placement.transient {
			g.broker.store.Drop(a.stored.transient)
		}
	}
}

func (g *group) reset() {
	g.batch.Reset()
	g.arrivals = g.arrivals[:0]
	g.bytes, g.logged, g.delayed, g.due = 0, 0, 0, 0
}
