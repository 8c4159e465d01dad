package broker

import "github.com/duepost/duepost/internal/store"

// place is where one message stands in one queue, from its reservation on.
type place struct {
	queue  *Queue
	pos    uint64
	logged bool // by the reference in the log, else by the copy in memory
}

// placement are the places of one message. Its life: reserve, then the message is stored, then
// push; or abandon. It is reused.
type placement struct {
	places    []place
	targets   []store.Target // of the logged ones
	transient int            // how many are not logged
}

// reserve takes a place in each queue.
func (p *placement) reserve(queues []*Queue, m *store.Message) {
	p.places = p.places[:0]
	p.targets = p.targets[:0]
	p.transient = 0
	for _, q := range queues {
		at := place{queue: q, pos: q.reserve(m.Props), logged: q.logged && m.Persistent}
		p.places = append(p.places, at)
		if at.logged {
			p.targets = append(p.targets, store.Target{Queue: q.id, Pos: at.pos})
		} else {
			p.transient++
		}
	}
}

// abandon gives up the places that are logged, or those that are not.
func (p *placement) abandon(logged bool) {
	for _, at := range p.places {
		if at.logged == logged {
			at.queue.abandon(at.pos)
		}
	}
}

// stored is a message that the store has, as the queues see it.
type stored struct {
	logged    store.Ref // its record in the log, if a place is logged
	transient store.Ref // its copy in memory, if a place is not
	body      int
	arrived   int64
	ttl       int64
	flags     uint8         // of its entries, besides flagLogged
	known     *store.Record // the record, if it is in hand: spares the first reader a read
}

// push puts the message into its places and lets consumers have it. Places for which the message
// could not be stored are given up.
func (p *placement) push(m *stored) {
	for _, at := range p.places {
		switch {
		case at.logged && m.logged != (store.Ref{}):
			at.queue.push(at.pos, newEntry(m.logged, m.body, m.arrived, m.flags|flagLogged), m.ttl, m.known)
		case !at.logged && m.transient != (store.Ref{}):
			at.queue.push(at.pos, newEntry(m.transient, m.body, m.arrived, m.flags), m.ttl, m.known)
		default:
			at.queue.abandon(at.pos)
		}
	}
}

// enqueue stores a message for its places and pushes it. The LSN is 0 if none of them is
// logged. After an error nothing is pushed that the error is about.
func (b *Broker) enqueue(p *placement, m *store.Message) (store.LSN, error) {
	s := stored{body: m.BodyLen(), arrived: m.Arrived, ttl: m.TTL}
	var lsn store.LSN
	var err error
	if len(p.targets) > 0 {
		s.logged, lsn, err = b.store.Append(m, p.targets, len(p.targets))
		if err != nil {
			p.abandon(true)
			p.abandon(false)
			return 0, err
		}
	}
	if p.transient > 0 {
		s.transient, err = b.store.AppendTransient(m, p.transient)
	}
	p.push(&s)
	return lsn, err
}
