package broker

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/headers"
	"github.com/duepost/duepost/internal/store"
)

// letterBatch and letterBytes bound one atomic group of dead letters.
const (
	letterBatch = 128
	letterBytes = 1 << 20
)

// deadLetter takes held messages out of the queue and gives them to its dead-letter exchange, if
// it has one. It is called without locks. Each message leaves its queue in the atomic group in
// which it arrives where it goes, so a crash neither loses nor doubles it.
// [rmq dead-lettering]
func (q *Queue) deadLetter(positions []uint64, reason deathReason) {
	if len(positions) == 0 {
		return
	}
	s := q.settings.Load()
	if !s.hasDLX {
		q.countDeaths(len(positions), reason)
		q.Ack(positions)
		return
	}
	x := q.vhost.exchange(s.dlx)
	if x == nil && !s.parksUnroutable && !q.waitsForTargets(s, reason) {
		q.countDeaths(len(positions), reason)
		q.noteNoDLX(s.dlx, len(positions))
		q.Ack(positions)
		return
	}
	l := q.broker.letters.Get().(*deadLetterer)
	l.begin(q, s, x, reason)
	for _, pos := range positions {
		l.add(pos)
		if len(l.sources) == letterBatch || l.group.bytes >= letterBytes || l.limited {
			l.send()
		}
	}
	l.send()
	q.broker.letters.Put(l)
}

// deadLetterRefused dead-letters a message that the queue is too full to take.
func (q *Queue) deadLetterRefused(m *store.Message) {
	s := q.settings.Load()
	if !s.hasDLX {
		return
	}
	x := q.vhost.exchange(s.dlx)
	if x == nil && !s.parksUnroutable {
		q.noteNoDLX(s.dlx, 1)
		return
	}
	l := q.broker.letters.Get().(*deadLetterer)
	l.begin(q, s, x, maxLen)
	_ = l.write(m) // there is no place for it to stay
	l.send()
	q.broker.letters.Put(l)
}

func (q *Queue) countDeaths(n int, reason deathReason) {
	switch reason {
	case expired:
		q.broker.counters.expiredMessages.Add(uint64(n))
	case maxLen:
		q.broker.counters.overflowed.Add(uint64(n))
	}
}

// deadLetterer is the working space of dead-lettering from one queue for one reason.
type deadLetterer struct {
	broker   *Broker
	queue    *Queue
	settings *queueSettings
	exchange *Exchange // nil if it does not exist
	reason   deathReason
	dlx      []byte // name of exchange
	now      int64  // unix milliseconds, rounded up

	sources []departure // of the messages in the group
	staying []departure // those that nobody takes now, and that stay
	group   group
	parked  int // how many of them are parked

	route      route
	envelope   envelope
	properties amqp.Properties
	message    store.Message
	headers    []byte
	props      []byte
	buf        []byte
	limited    bool // a queue in the group may be full once the group has arrived
}

func (l *deadLetterer) begin(q *Queue, s *queueSettings, x *Exchange, reason deathReason) {
	l.queue, l.settings, l.exchange, l.reason = q, s, x, reason
	l.dlx = append(l.dlx[:0], s.dlx...)
	l.now = l.broker.arrivalMillis()
}

// add puts one held message into the group.
func (l *deadLetterer) add(pos uint64) {
	q := l.queue
	ref, logged, ok := q.beginLeaving(pos)
	if !ok {
		return // the queue was deleted
	}
	rec, err := q.readHead(pos, ref, &l.buf)
	if err != nil {
		l.broker.noteUnreadable(q, pos, err)
	} else if !l.write(&rec.Message) {
		l.staying = append(l.staying, departure{pos: pos, ref: ref, logged: logged})
		return
	}
	l.sources = append(l.sources, departure{pos: pos, ref: ref, logged: logged})
}

// write puts a copy of a message, as it is after its death, into the group for each target. It
// reports false if the message is to stay where it is.
func (l *deadLetterer) write(m *store.Message) bool {
	if err := l.properties.Decode(m.Props); err != nil {
		l.broker.log.Error("dead letter lost: properties unreadable",
			"vhost", l.queue.vhost.name, "queue", l.queue.name, "err", err)
		return true
	}
	cycles := l.findRoute(l.edit(m))
	refused := l.dropFull()
	if refused > 0 && l.queue.waitsForTargets(l.settings, l.reason) {
		return false
	}
	c := &l.broker.counters
	c.deadDropped.Add(uint64(refused))
	switch {
	case len(l.route.queues)+len(l.route.delayed) > 0:
		l.addTargets()
		c.deadLettered.Add(1)
	case refused+cycles > 0:
	default:
		return l.addUnroutable()
	}
	return true
}

// addTargets puts l.message into the group for all that its route leads to.
func (l *deadLetterer) addTargets() {
	for _, x := range l.route.delayed {
		l.addDelayed(x)
	}
	if len(l.route.queues) > 0 {
		l.broker.logIfFailed("copy dead letter", l.group.enqueue(&l.message, l.route.queues))
	}
}

// dropFull takes the queues and delayed exchanges that refuse messages now out of the route and
// returns how many they were. [rmq reject-publish]
func (l *deadLetterer) dropFull() (refused int) {
	open := l.route.queues[:0]
	for _, q := range l.route.queues {
		if q.isFull() {
			refused++
			continue
		}
		l.limited = l.limited || q.settings.Load().refuses()
		open = append(open, q)
	}
	l.route.queues = open
	waiting := l.route.delayed[:0]
	for _, x := range l.route.delayed {
		if x.isFull() {
			l.broker.counters.delayedRefused.Add(1)
			refused++
			continue
		}
		waiting = append(waiting, x)
	}
	l.route.delayed = waiting
	return refused
}

// edit makes l.message out of m: new headers, new address, no expiration. It returns the new
// history.
func (l *deadLetterer) edit(m *store.Message) (history amqp.RawValue) {
	p := &l.properties
	routes, _ := headers.ParseRoutes(p.Headers) // was checked at publish
	d := death{
		queue:    l.queue.name,
		reason:   l.reason,
		seconds:  l.broker.nowMillis() / 1000,
		exchange: m.Exchange,
		key:      m.RoutingKey,
		routes:   routes.WithoutBCC(),
	}
	if p.Has(amqp.FlagExpiration) {
		d.expiration = p.Expiration
		p.Clear(amqp.FlagExpiration)
	}
	var before amqp.RawValue
	if m.ExchangeID&historyBit != 0 || l.broker.compat.ClientDeaths {
		before, _ = p.Headers.Lookup(headers.XDeath)
	}
	l.headers = appendDeath(l.headers[:0], p.Headers, before, &d, l.settings.hasDLXKey)
	p.SetHeaders(l.headers)
	l.props = p.Append(l.props[:0])
	l.message = store.Message{
		Exchange:   l.dlx,
		RoutingKey: m.RoutingKey,
		Props:      l.props,
		Body:       m.Body,
		Large:      m.Large, // shared, not copied
		ExchangeID: historyBit,
		Arrived:    l.now,
		TTL:        noTTL,
		Persistent: m.Persistent,
	}
	l.envelope = envelope{key: m.RoutingKey, headers: l.headers, routes: routes, accepted: l.now, letter: true}
	if routes.HasBCC() {
		l.message.ExchangeID |= bccBit
	}
	if l.settings.hasDLXKey {
		l.message.ExchangeID &= historyBit
		l.message.RoutingKey = []byte(l.settings.dlxKey)
		l.envelope.key = l.message.RoutingKey
		l.envelope.routes = headers.Routes{}
	}
	history, _ = p.Headers.Lookup(headers.XDeath)
	return history
}

// findRoute routes l.message, without the queues that it would go round for ever to, and returns
// how many those were.
func (l *deadLetterer) findRoute(history amqp.RawValue) (cycles int) {
	l.route.reset()
	if l.exchange == nil {
		return 0
	}
	if err := l.route.walk(l.exchange, &l.envelope); err != nil {
		// A delay that nobody checked: the message never met a delayed exchange before.
		l.envelope.served = true
		l.route.reset()
		_ = l.route.walk(l.exchange, &l.envelope)
	}
	if l.reason == rejected {
		return 0
	}
	kept := l.route.queues[:0]
	for _, q := range l.route.queues {
		if isCycle(history, q.name) {
			l.noteCycle(q)
			cycles++
			continue
		}
		kept = append(kept, q)
	}
	l.route.queues = kept
	return cycles
}

func (l *deadLetterer) noteCycle(q *Queue) {
	l.broker.counters.deadCycles.Add(1)
	if !q.cycling.Swap(true) {
		l.broker.log.Warn("dead letters dropped: they would go round for ever without being rejected",
			"vhost", q.vhost.name, "queue", q.name, "from", l.queue.name)
	}
}

// addDelayed puts l.message into the group for a delayed exchange.
func (l *deadLetterer) addDelayed(x *Exchange) {
	m := l.message
	p := l.properties
	released := headers.AppendReleased(nil, l.envelope.headers, l.route.delay)
	p.SetHeaders(released)
	m.Props = p.Append(nil)
	m.ExchangeID = x.id | historyBit
	l.group.hold(&m, l.route.delay.Due)
}

// send commits the group and hands its messages over. If the store refuses, the messages stay
// where they were and are tried again later, as those do that nobody takes now.
func (l *deadLetterer) send() {
	if len(l.staying) > 0 {
		l.queue.noteWaiting(l.settings.dlx)
		l.queue.stay(l.staying, l.reason)
	}
	for i := range l.sources {
		if s := &l.sources[i]; s.logged {
			l.group.batch.Settle(l.queue.id, s.pos, s.ref)
		}
	}
	if _, err := l.broker.store.Commit(&l.group.batch); err != nil {
		l.broker.log.Warn("dead letters wait: the store refuses them", "vhost", l.queue.vhost.name,
			"queue", l.queue.name, "n", len(l.sources), "err", err)
		l.group.abandon()
		l.queue.stay(l.sources, l.reason)
		l.reset()
		return
	}
	l.queue.countDeaths(len(l.sources), l.reason)
	l.queue.endLeaving(l.sources)
	l.group.arrive()
	l.reset()
}

func (l *deadLetterer) reset() {
	l.sources, l.staying = l.sources[:0], l.staying[:0]
	l.group.reset()
	l.limited, l.parked = false, 0
}
