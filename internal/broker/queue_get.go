package broker

import (
	"fmt"

	"github.com/duepost/duepost/internal/amqp"
)

// Get takes the first message for basic.get and reports how many are ready behind it. With
// noAck it is settled before Get returns. The record is valid for as long as it is used.
// [amqp basic.get]
func (q *Queue) Get(noAck bool) (d Delivery, left int, ok bool, err error) {
	if q.singleActive && q.quorum {
		return Delivery{}, 0, false, amqp.Errorf(amqp.ResourceLocked, "cannot obtain access to locked %s. "+
			"basic.get operations are not supported by quorum queues with single active consumer", q)
	}
	for {
		pos, e, left, ok, err := q.take()
		if !ok {
			return Delivery{}, left, false, err
		}
		var buf []byte
		rec, err := q.read(pos, e.ref, &buf)
		if err != nil {
			q.broker.noteUnreadable(q, pos, err)
			q.discard([]uint64{pos})
			continue
		}
		if noAck {
			q.Ack([]uint64{pos})
		}
		hideBCC(&rec.Message)
		if q.quorum {
			q.countedFor(&rec, e.deliveries())
		}
		return Delivery{
			Queue:       q,
			Pos:         pos,
			Redelivered: e.has(flagRedelivered),
			Deliveries:  e.deliveries(),
			Record:      rec,
		}, left, true, nil
	}
}

// take holds the first ready message that has not expired.
func (q *Queue) take() (pos uint64, e entry, left int, ok bool, err error) {
	d := q.broker.dispatches.Get().(*dispatch)
	defer q.broker.dispatches.Put(d)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.touchLocked()
	for {
		d.isAbsent = false
		if q.expireIfDueLocked(d) {
			q.mu.Unlock()
			q.deadLetter(d.expired, expired)
			d.expired = d.expired[:0]
			q.mu.Lock()
			continue
		}
		pos, ok = q.index.nextReady()
		if !ok || q.deleted {
			return 0, entry{}, 0, false, nil
		}
		if q.index.isPaged(pos) {
			d.miss(pos)
		}
		if !d.isAbsent {
			break
		}
		if err := q.loadLocked(d.absent); err != nil {
			return 0, entry{}, 0, false, fmt.Errorf("read entries of %s: %w", q, err)
		}
	}
	e = *q.index.hold(pos)
	q.noteDeliveredLocked(pos)
	return pos, e, q.index.ready, true, nil
}

// expireIfDueLocked takes out a round of what has expired and reports whether there was any.
func (q *Queue) expireIfDueLocked(d *dispatch) bool {
	s := q.settings.Load()
	if s.ttl >= 0 || len(q.expires) > 0 {
		q.expireLocked(d, s)
	}
	return len(d.expired) > 0
}
