package broker

import "github.com/duepost/duepost/internal/store"

// How a message leaves for somewhere else in one atomic group. Until the group is committed it
// stays held and marked: it must not be lost if the group is refused, and whoever deletes the
// queue must not settle it a second time.

// stuckRetry is how long messages wait that the store refused to let go, or that nobody took, in
// milliseconds.
const stuckRetry = 1000

// stuckLetter is a held message that is to be dead-lettered and could not be yet.
type stuckLetter struct {
	pos    uint64
	reason deathReason
}

// beginLeaving marks a held message and returns what the group has to settle.
func (q *Queue) beginLeaving(pos uint64) (ref store.Ref, logged, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted || !q.index.isHeld(pos) {
		return store.Ref{}, false, false
	}
	e := q.index.at(pos)
	if e.has(flagLeaving) {
		return store.Ref{}, false, false
	}
	e.set(flagLeaving)
	return e.ref, e.has(flagLogged), true
}

// endLeaving takes out the messages whose group was committed.
func (q *Queue) endLeaving(sources []departure) {
	q.mu.Lock()
	for i := range sources {
		s := &sources[i]
		if !q.index.isHeld(s.pos) {
			continue // the queue was deleted meanwhile
		}
		if e := q.index.remove(s.pos); e.ref != s.ref {
			s.moved = e.ref
		}
	}
	q.forgetPastCountsLocked()
	q.mu.Unlock()
	for i := range sources {
		s := &sources[i]
		if !s.logged {
			q.broker.store.Drop(s.ref)
		} else if s.moved != (store.Ref{}) {
			q.broker.store.Drop(s.moved) // the group dropped the hold at the old place
		}
	}
}

// unmark takes back the mark: the messages stay held.
func (q *Queue) unmark(sources []departure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range sources {
		if e := q.index.at(s.pos); e != nil {
			e.clear(flagLeaving)
		}
	}
}

// stay takes back the mark of messages whose group was refused, and has it tried again later.
func (q *Queue) stay(sources []departure, reason deathReason) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted {
		return
	}
	for _, s := range sources {
		if e := q.index.at(s.pos); e != nil {
			e.clear(flagLeaving)
			q.stuck = append(q.stuck, stuckLetter{s.pos, reason})
		}
	}
	q.stuckUntil = q.broker.nowMillis() + stuckRetry
	q.armForLocked(q.stuckUntil)
}

// takeStuckLocked gives the messages whose next attempt is due to the dispatch at hand.
func (q *Queue) takeStuckLocked(d *dispatch) {
	if len(q.stuck) == 0 || q.broker.nowMillis() < q.stuckUntil {
		return
	}
	n := min(len(q.stuck), claimBatch)
	for _, s := range q.stuck[:n] {
		switch s.reason {
		case expired:
			d.expired = append(d.expired, s.pos)
		case maxLen:
			d.overflow = append(d.overflow, s.pos)
		case deliveryLimit:
			d.limited = append(d.limited, s.pos)
		default:
			d.rejected = append(d.rejected, s.pos)
		}
	}
	q.stuck = q.stuck[n:]
}
