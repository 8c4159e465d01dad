package broker

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// How messages come back: to their place, marked redelivered. A quorum queue counts how often
// each did, tells consumers by a header, lets go of one that came back too often, and may make
// it wait before it is delivered again. [rmq quorum queues]

// deliveryCount is the header with which consumers of a quorum queue see how often a message came
// back before.
const deliveryCount = "x-delivery-count"

// defaultDeliveryLimit is how often a message may come back to a quorum queue of which nothing
// else is said, as in RabbitMQ 4.
const defaultDeliveryLimit = 20

// retry says which messages that come back to a queue wait before they are ready again.
type retry uint8

const (
	retryNone     retry = iota
	retryAll            // every one
	retryFailed         // those that a consumer has refused
	retryReturned       // those whose consumer went away, or asked for recovery
)

// Requeue puts held messages back that a consumer has refused.
func (q *Queue) Requeue(positions []uint64) { q.putBack(positions, retryFailed) }

// Return puts held messages back that nobody has refused: their channel ends or recovers.
func (q *Queue) Return(positions []uint64) { q.putBack(positions, retryReturned) }

// putBack puts held messages back to their places, marked redelivered. why is retryFailed or
// retryReturned.
func (q *Queue) putBack(positions []uint64, why retry) {
	q.mu.Lock()
	s := q.settings.Load()
	var tooOften []uint64
	var counts countChanges
	for _, pos := range positions {
		if !q.index.isHeld(pos) {
			continue
		}
		counts.add(pos)
		e := q.index.at(pos)
		e.set(flagRedelivered)
		e.countDelivery()
		switch {
		case s.deliveryLimit >= 0 && int64(e.deliveries()) > s.deliveryLimit:
			tooOften = append(tooOften, pos)
		case s.retry == retryAll || s.retry == why:
			q.retries.push(expiry{at: q.broker.nowMillis() + s.retryDelay(e.deliveries()), pos: pos})
			q.armForLocked(q.retries[0].at)
		default:
			q.noteReturnLocked(pos, q.index.unhold(pos))
		}
	}
	q.storeCountsLocked(&counts)
	if q.hasWorkLocked(s) || !q.dispatching && q.hasOverdueLocked(s) {
		q.dispatchLocked()
	} else {
		q.mu.Unlock()
	}
	q.deadLetter(tooOften, deliveryLimit)
}

// retryDelay is how long a message waits that came back n times, in milliseconds.
func (s *queueSettings) retryDelay(n int) int64 {
	d := s.retryMin * int64(n)
	if s.retryMax >= 0 {
		d = min(d, s.retryMax)
	}
	return min(d, maxTTL)
}

// endRetriesLocked makes messages ready that have waited long enough.
func (q *Queue) endRetriesLocked() {
	if len(q.retries) == 0 {
		return
	}
	now := q.broker.nowMillis()
	for len(q.retries) > 0 && q.retries[0].at <= now {
		if pos := q.retries.pop().pos; q.index.isHeld(pos) {
			q.noteReturnLocked(pos, q.index.unhold(pos))
		}
	}
}

// countedFor is a record as a consumer of the queue sees it when it came back n times.
func (q *Queue) countedFor(rec *store.Record, n int) {
	var p amqp.Properties
	if p.Decode(rec.Props) != nil {
		return
	}
	h := p.Headers.AppendWithout(nil, deliveryCount)
	p.SetHeaders(appendInt(h, deliveryCount, amqp.TypeInt64, int64(n)))
	rec.Props = p.Append(nil)
}
