package store

import (
	"cmp"
	"slices"
)

// queueState is what replay knows of one queue at once; what it finds goes to the gathering.
type queueState struct {
	id     uint32
	next   uint64
	gather *gathering
}

func (s *rebuild) queue(id uint32) *queueState {
	if s.lastQueue != nil && s.lastID == id {
		return s.lastQueue
	}
	q := s.queues[id]
	if q == nil {
		q = &queueState{id: id, gather: s.gather}
		s.queues[id] = q
	}
	s.lastQueue, s.lastID = q, id
	return q
}

func (q *queueState) add(e Entry) {
	q.next = max(q.next, e.Pos+1)
	if e.Ref != (Ref{}) {
		q.gather.add(findingMessage(q.id, &e))
	}
}

func (q *queueState) settle(first, n uint64) {
	q.next = max(q.next, first+n)
	q.gather.settle(q.id, first, n)
}

// finish brings the index in order, accounts for what is live, and returns which queues there are
// and what is left in them.
func (s *rebuild) finish() ([]RecoveredQueue, *gathered) {
	s.finishIndex()
	var list []RecoveredQueue
	for id, q := range s.queues {
		if !s.noQueue[id] {
			list = append(list, RecoveredQueue{ID: id, Next: q.next})
		}
	}
	s.claimQueued()
	slices.SortFunc(list, func(a, b RecoveredQueue) int { return cmp.Compare(a.ID, b.ID) })
	return list, s.gather.finish()
}
