package broker

import (
	"fmt"

	"github.com/duepost/duepost/internal/store"
)

// settlement gathers what leaves a queue, so that the store hears of it once and without the
// queue's lock.
type settlement struct {
	positions []uint64
	refs      []store.Ref // of positions: in the log
	transient []store.Ref
}

func newSettlement() any { return new(settlement) }

// add takes note of an entry that was removed from the index.
func (s *settlement) add(pos uint64, e entry) {
	if !e.has(flagLogged) {
		s.transient = append(s.transient, e.ref)
		return
	}
	s.positions = append(s.positions, pos)
	s.refs = append(s.refs, e.ref)
}

// flush tells the store and empties the settlement.
func (s *settlement) flush(q *Queue) {
	if len(s.positions) > 0 {
		q.broker.store.Settle(q.id, s.positions, s.refs)
		s.positions, s.refs = s.positions[:0], s.refs[:0]
	}
	for _, ref := range s.transient {
		q.broker.store.Drop(ref)
	}
	s.transient = s.transient[:0]
}

// Ack takes held messages out of the queue for good. Positions that are not held are passed
// over, here and in Requeue and Reject.
func (q *Queue) Ack(positions []uint64) {
	s := q.broker.settlements.Get().(*settlement)
	q.mu.Lock()
	for _, pos := range positions {
		if q.index.isHeld(pos) {
			s.add(pos, q.index.remove(pos))
		}
	}
	q.trimExpiriesLocked()
	q.forgetPastCountsLocked()
	q.mu.Unlock()
	s.flush(q)
	q.broker.settlements.Put(s)
}

// Reject takes held messages out of the queue and dead-letters them if the queue says where to.
func (q *Queue) Reject(positions []uint64) {
	q.mu.Lock()
	held := positions[:0:0]
	for _, pos := range positions {
		if q.index.isHeld(pos) {
			held = append(held, pos)
		}
	}
	q.mu.Unlock()
	q.deadLetter(held, rejected)
}

// discard takes held messages out of the queue for good, wherever they were on their way to.
func (q *Queue) discard(positions []uint64) { q.Ack(positions) }

// purgeBatch is how many messages a purge takes out before others get a turn.
const purgeBatch = 1024

// purge takes the messages that are ready now out of the queue and returns how many they were.
// After an error the rest is still there.
func (q *Queue) purge() (purged int, err error) {
	s := q.broker.settlements.Get().(*settlement)
	defer q.broker.settlements.Put(s)
	for left := q.Messages(); left > 0; {
		n, err := q.removeReady(min(left, purgeBatch), s)
		s.flush(q)
		purged += n
		if n == 0 || err != nil {
			return purged, err
		}
		left -= n
	}
	return purged, nil
}

// removeReady takes out up to most ready messages from the front.
func (q *Queue) removeReady(most int, s *settlement) (n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.trimExpiriesLocked()
	for n < most {
		pos, ok := q.index.nextReady()
		switch {
		case !ok:
			return n, nil
		case q.index.isPaged(pos):
			if err := q.loadLocked(pos); err != nil {
				return n, fmt.Errorf("read entries of %s: %w", q, err)
			}
		default:
			q.index.hold(pos)
			s.add(pos, q.index.remove(pos))
			n++
		}
	}
	return n, nil
}
