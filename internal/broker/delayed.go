package broker

import (
	"errors"
	"sync/atomic"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/delay"
	"github.com/duepost/duepost/internal/headers"
	"github.com/duepost/duepost/internal/store"
)

// The broker is where the delay engine releases to. A due message is routed from its exchange
// with the bindings of now. In logged queues it is moved: they refer to the record that waited.
// Queues that are not logged, and messages that are not persistent, get a copy in memory.
var _ delay.Sink = (*Broker)(nil)

// release is the working space of Route and Push, which the engine calls by turns. Push may
// take what Route has planned in several pieces, in order.
type release struct {
	route      route
	properties amqp.Properties
	envelope   envelope
	buf        []byte // of a record read from disk that is not kept until Push
	kept       int    // bytes of the records that are

	// doubtful is the start after a crash, in unix milliseconds, else 0: what was due by then
	// may have been handed over before, so it is marked redelivered.
	doubtful int64

	plans  []plan
	places []place // of all plans, one after the other
	pushed int     // how many plans were pushed
	parked parkingLog
}

// plan is where one due message goes.
type plan struct {
	first, last int  // its places are release.places[first:last]
	rewritten   bool // logged is a new record and not the one that waited
	stored      stored

	// If keeps, record is what was read to route the message, kept to deliver it: most come
	// from the disk and go on at once. buf is where it was read to, used again and again.
	keeps  bool
	record store.Record
	buf    []byte
}

// keptBytes bounds what one batch keeps of records from Route to Push, and keptBuffer what a
// plan keeps from batch to batch.
const (
	keptBytes  = 4 << 20
	keptBuffer = 4 << 10
)

// parkRetry is when a message is tried again that cannot be parked, in milliseconds.
const parkRetry = 60_000

// Route implements delay.Sink.
func (b *Broker) Route(batch []store.Due, out []delay.Outcome) {
	r := &b.release
	r.plans, r.places, r.pushed, r.kept = r.plans[:0], r.places[:0], 0, 0
	for i := range batch {
		p := r.nextPlan()
		b.planRelease(&batch[i], &out[i], p)
		p.last = len(r.places)
	}
}

// nextPlan returns an empty plan that has the buffer of an older one.
func (r *release) nextPlan() *plan {
	if len(r.plans) < cap(r.plans) {
		r.plans = r.plans[:len(r.plans)+1]
	} else {
		r.plans = append(r.plans, plan{})
	}
	p := &r.plans[len(r.plans)-1]
	buf := p.buf
	if cap(buf) > keptBuffer {
		buf = nil
	}
	*p = plan{first: len(r.places), buf: buf}
	return p
}

// read returns the record of a due message without a large body, which routing needs not, and
// keeps it in its plan while that is cheap.
func (r *release) read(s *store.Store, ref store.Ref, p *plan) (store.Record, error) {
	if r.kept+int(ref.Len) > keptBytes {
		rec, err := s.ReadHead(ref, r.buf)
		if err == nil {
			r.buf = rec.Buf
		}
		return rec, err
	}
	rec, err := s.ReadHead(ref, p.buf)
	if err == nil {
		r.kept += int(ref.Len)
		p.keeps, p.record, p.buf = rec.Large == (store.BodyRef{}), rec, rec.Buf
	}
	return rec, err
}

// planRelease decides about one due message.
func (b *Broker) planRelease(d *store.Due, o *delay.Outcome, p *plan) {
	r := &b.release
	x := b.delayedByID(d.ExchangeID)
	if x == nil {
		o.Verdict = delay.Dropped // deleted after the message was taken out
		return
	}
	rec, err := r.read(b.store, d.Ref, p)
	if err == nil {
		err = r.properties.Decode(rec.Props)
	}
	if errors.Is(err, store.ErrMoved) {
		o.RetryAt = o.Arrived // the next attempt finds it where it is now
		return
	}
	if err != nil {
		o.Verdict = delay.Dropped
		b.counters.unreadable.Add(1)
		b.log.Error("delayed message lost: record unreadable", "vhost", x.vhost.name,
			"exchange", x.name, "id", d.Key.Seq, "due", d.Key.Due, "err", err)
		return
	}
	s := x.settings.Load()
	from := x.releases()
	if s.late != lateDeliver && o.Arrived-d.Key.Due > s.lateAfter {
		if s.late == lateDrop {
			b.drop(x, o, &b.counters.lateDropped)
			return
		}
		from = x.vhost.exchange(s.deadLetter)
	}
	r.route.reset()
	if from != nil {
		r.routeReleased(from, &rec)
	}
	switch {
	case len(r.route.queues) == 0 && s.dropsUnroutable:
		b.drop(x, o, &b.counters.delayedDropped)
	case len(r.route.queues) == 0:
		b.planParking(x, &rec, o, p)
	case anyFull(r.route.queues) && !s.plugin:
		o.Verdict = delay.Retry
	default:
		if s.plugin && !b.passFull(&rec, x, o) {
			return
		}
		if d.Key.Due <= r.doubtful {
			p.stored.flags = flagRedelivered
		}
		b.planMove(&rec, o, p)
	}
}

// passFull takes the queues that refuse a due message out of its route, and reports false if no
// other is left.
func (b *Broker) passFull(rec *store.Record, x *Exchange, o *delay.Outcome) bool {
	r := &b.release
	if !anyFull(r.route.queues) {
		return true
	}
	r.route.queues = withoutFull(r.route.queues, r.route.queues[:0], &rec.Message)
	if len(r.route.queues) == 0 {
		b.drop(x, o, &b.counters.delayedDropped)
		return false
	}
	return true
}

// drop ends the waiting of a due message because its exchange's settings say so.
func (b *Broker) drop(x *Exchange, o *delay.Outcome, counter *atomic.Uint64) {
	o.Verdict = delay.Dropped
	counter.Add(1)
	b.log.Debug("due message dropped", "vhost", x.vhost.name, "exchange", x.name)
}

// routeReleased finds the queues of a message from the exchange where it waited.
func (r *release) routeReleased(x *Exchange, rec *store.Record) {
	routes, err := headers.ParseRoutes(r.properties.Headers)
	if err != nil { // it was checked when it was accepted
		routes = headers.Routes{}
	}
	r.envelope = envelope{
		key:     rec.RoutingKey,
		headers: r.properties.Headers,
		routes:  routes,
		served:  true,
	}
	r.route.reset()
	_ = r.route.walk(x, &r.envelope) // fails only over delay headers, which are not read
}

// planMove reserves places in the queues that r.route found.
func (b *Broker) planMove(rec *store.Record, o *delay.Outcome, p *plan) {
	r := &b.release
	m := rec.Message
	m.ExchangeID &= historyBit
	o.Arrived = b.arrivalMillis()
	m.Arrived = o.Arrived
	p.stored.body, p.stored.arrived, p.stored.ttl = m.BodyLen(), o.Arrived, m.TTL
	if r.envelope.routes.HasBCC() {
		p.keeps = false // it has no mark
		m.ExchangeID |= bccBit
		p.rewritten = true
	}
	transient := 0
	for _, q := range r.route.queues {
		at := place{queue: q, pos: q.reserve(m.Props), logged: q.logged && m.Persistent}
		r.places = append(r.places, at)
		if at.logged {
			o.Targets = append(o.Targets, store.Target{Queue: q.id, Pos: at.pos})
		} else {
			transient++
		}
	}
	o.Verdict, o.TTL, o.Persistent = delay.Moved, m.TTL, m.Persistent
	if err := b.storeCopies(&m, transient, o, p); err != nil {
		b.log.Warn("released message is tried again", "err", err)
		b.giveUp(p, len(r.places))
		r.places = r.places[:p.first]
		*o = delay.Outcome{Verdict: delay.Retry, Targets: o.Targets[:0]}
	}
}

// storeCopies stores what the places need besides the record that waited: a copy in memory, and
// a new record if the message is another now. The latter is not in the group that ends the
// waiting, so a crash between the two repeats it.
func (b *Broker) storeCopies(
	m *store.Message, transient int, o *delay.Outcome, p *plan,
) (err error) {
	if transient > 0 {
		if p.stored.transient, err = b.store.AppendTransient(m, transient); err != nil {
			return err
		}
	}
	if p.rewritten && len(o.Targets) > 0 {
		if p.stored.logged, _, err = b.store.Append(m, o.Targets, len(o.Targets)); err != nil {
			return err
		}
		o.Targets = o.Targets[:0]
	}
	if len(o.Targets) == 0 {
		o.Verdict = delay.Copied
	}
	return nil
}

// planParking sends a message that nobody takes to the parking queue, while there is room.
func (b *Broker) planParking(x *Exchange, rec *store.Record, o *delay.Outcome, p *plan) {
	q, err := x.vhost.parkingQueue(reasonUnroutable)
	if err != nil || q.Messages() >= b.limits.MaxParked {
		b.logIfFailed("park message", err)
		if err == nil {
			b.release.parked.note(b.log, "max-parked is reached, they are tried again", x, rec.RoutingKey)
		}
		o.RetryAt = o.Arrived + parkRetry
		return
	}
	at := place{queue: q, pos: q.reserve(nil), logged: true}
	b.release.places = append(b.release.places, at)
	p.stored = stored{body: rec.BodyLen(), arrived: o.Arrived, ttl: noTTL}
	o.Targets = append(o.Targets, store.Target{Queue: q.id, Pos: at.pos})
	o.Verdict, o.Persistent, o.Reason = delay.Parked, true, reasonUnroutable
	b.release.parked.note(b.log, "parked", x, rec.RoutingKey)
}

// Push implements delay.Sink.
func (b *Broker) Push(batch []store.Due, out []delay.Outcome) {
	r := &b.release
	for i := range batch {
		p := &r.plans[r.pushed]
		r.pushed++
		switch out[i].Verdict {
		case delay.Retry:
		case delay.Dropped: // perhaps only now: its exchange was deleted meanwhile, and it counted
			b.giveUp(p, p.last)
		default:
			if out[i].Verdict == delay.Parked {
				b.counters.parked.Add(1)
			}
			if !p.rewritten && len(out[i].Targets) > 0 {
				p.stored.logged = batch[i].Ref
			}
			b.place(p)
		}
		p.record = store.Record{} // it may be a view of memory that is to be used again
	}
}

// place makes the message ready where it was planned.
func (b *Broker) place(p *plan) {
	if p.keeps {
		p.stored.known = &p.record
	}
	places := placement{places: b.release.places[p.first:p.last]}
	places.push(&p.stored)
	p.stored.known = nil
}

// giveUp takes back what was planned for the places up to last.
func (b *Broker) giveUp(p *plan, last int) {
	places := placement{places: b.release.places[p.first:last]}
	places.abandon(true)
	places.abandon(false)
	for _, at := range places.places {
		if !at.logged && p.stored.transient != (store.Ref{}) {
			b.store.Drop(p.stored.transient)
		}
	}
	p.stored = stored{}
}
