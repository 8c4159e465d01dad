package broker

import "github.com/duepost/duepost/internal/store"

// The broker is the store's Owner: its cleaner asks whether messages are still needed and tells
// where it has moved them.
var _ store.Owner = (*Broker)(nil)

// Holds implements store.Owner. A position that is reserved and not yet pushed is held.
func (b *Broker) Holds(queue uint32, pos uint64) bool {
	q := b.queueByID(queue)
	return q != nil && q.holds(pos)
}

// Relocate implements store.Owner.
func (b *Broker) Relocate(queue uint32, pos uint64, from, to store.Ref) (held bool) {
	q := b.queueByID(queue)
	if q == nil {
		return false
	}
	held, left := q.relocate(pos, from, to)
	if left {
		b.store.Drop(from)
	}
	return held
}

func (q *Queue) holds(pos uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted {
		return false
	}
	return q.index.isLive(pos) || q.isReservedLocked(pos)
}

// relocate reports whether a position is held, and whether nobody names from any more: a group in
// which a message leaves does, and who is about to push it may.
func (q *Queue) relocate(pos uint64, from, to store.Ref) (held, left bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted {
		return false, false
	}
	if q.index.isPaged(pos) && q.loadLocked(pos) != nil {
		q.relocateLaterLocked(pos, from, to)
		return !q.deleted, false
	}
	switch {
	case q.deleted:
		return false, false
	case q.index.isPaged(pos): // again, since
		q.relocateLaterLocked(pos, from, to)
	case q.index.isLive(pos):
		left = q.index.relocate(pos, from, to) && !q.index.at(pos).has(flagLeaving)
	case q.isReservedLocked(pos):
		q.relocateLaterLocked(pos, from, to)
	default:
		return false, false
	}
	return true, left
}

// isReservedLocked reports whether a position was handed out and neither pushed nor abandoned.
func (q *Queue) isReservedLocked(pos uint64) bool {
	return q.isHandedOut(pos) && !q.index.wasBorn(pos)
}
