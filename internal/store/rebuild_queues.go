package store

import (
	"cmp"
	"slices"
)

// queueState gathers one queue. Entries and settled stretches are sorted and merged
// when there are many, and at the end.
type queueState struct {
	next    uint64
	entries []Entry
	settled []stretch
	limit   int // of len(entries) + len(settled) before the next merge
}

func (s *rebuild) queue(id uint32) *queueState {
	if s.lastQueue != nil && s.lastID == id {
		return s.lastQueue
	}
	q := s.queues[id]
	if q == nil {
		q = &queueState{limit: 1 << 16}
		s.queues[id] = q
	}
	s.lastQueue, s.lastID = q, id
	return q
}

func (q *queueState) add(e Entry) {
	q.next = max(q.next, e.Pos+1)
	if e.Ref == (Ref{}) {
		return
	}
	q.entries = append(q.entries, e)
	q.mergeIfMany()
}

func (q *queueState) settle(first, n uint64) {
	q.next = max(q.next, first+n)
	if k := len(q.settled); k > 0 && q.settled[k-1].first+q.settled[k-1].n == first {
		q.settled[k-1].n += n
		return
	}
	q.settled = append(q.settled, stretch{first, n})
	q.mergeIfMany()
}

func (q *queueState) mergeIfMany() {
	if len(q.entries)+len(q.settled) > q.limit {
		q.merge()
		q.limit = max(1<<16, 2*(len(q.entries)+len(q.settled)))
	}
}

// merge sorts, joins stretches, and removes settled entries and all but the last of
// several with one position (the last is the cleaner's newest copy).
func (q *queueState) merge() {
	q.settled = joinStretches(q.settled)
	byPos := func(a, b Entry) int { return cmp.Compare(a.Pos, b.Pos) }
	if !slices.IsSortedFunc(q.entries, byPos) {
		slices.SortStableFunc(q.entries, byPos)
	}
	kept := q.entries[:0]
	i := 0
	for n, e := range q.entries {
		for i < len(q.settled) && q.settled[i].first+q.settled[i].n <= e.Pos {
			i++
		}
		settled := i < len(q.settled) && q.settled[i].first <= e.Pos
		again := n+1 < len(q.entries) && q.entries[n+1].Pos == e.Pos
		if !settled && !again {
			kept = append(kept, e)
		}
	}
	q.entries = kept
}

func joinStretches(list []stretch) []stretch {
	slices.SortFunc(list, func(a, b stretch) int { return cmp.Compare(a.first, b.first) })
	joined := list[:0]
	for _, r := range list {
		if k := len(joined); k > 0 && r.first <= joined[k-1].first+joined[k-1].n {
			l := &joined[k-1]
			l.n = max(l.n, r.first+r.n-l.first)
			continue
		}
		joined = append(joined, r)
	}
	return joined
}

// finish brings the index in order, accounts for what is live, and returns
// what is left in the queues.
func (s *rebuild) finish() []RecoveredQueue {
	s.finishIndex()
	var list []RecoveredQueue
	for id, q := range s.queues {
		if s.noQueue[id] {
			continue
		}
		q.merge()
		for i := range q.entries {
			s.live(&q.entries[i], id)
		}
		list = append(list, RecoveredQueue{ID: id, Next: q.next, Entries: q.entries})
	}
	slices.SortFunc(list, func(a, b RecoveredQueue) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

func (s *rebuild) live(e *Entry, queue uint32) {
	g := s.log.segment(e.Ref.File)
	if g == nil {
		return
	}
	g.live.Add(int64(e.Ref.Len))
	if e.moved {
		g.moved = append(g.moved, movedEntry{
			off: e.Ref.Off, queue: queue, pos: e.Pos, arrived: e.Arrived, life: lifeOf(e.TTL, e.Persistent),
		})
	}
}
