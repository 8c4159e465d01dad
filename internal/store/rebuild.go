package store

import (
	"cmp"
	"slices"
)

// rebuild is the state that replay builds up.
//
// What ends something (a settle, a dropped queue or exchange) holds for good,
// whether it is met before or after what it ends: positions and ids are never
// used twice, and the cleaner's copy of a message may follow an acknowledgement
// that raced it.
type rebuild struct {
	log       *log
	index     *index
	queues    map[uint32]*queueState
	lastQueue *queueState
	lastID    uint32
	noQueue   map[uint32]bool // dropped
	noEx      map[uint32]bool
	nextSeq   uint64
	lsn       LSN // of the frame being applied, or a later one
	move      Move
	view      messageView
}

// queueState gathers one queue. Entries and settled stretches are sorted and merged
// when there are many, and at the end.
type queueState struct {
	next    uint64
	entries []Entry
	settled []stretch
	limit   int // of len(entries) + len(settled) before the next merge
}

func newRebuild(l *log, x *index) *rebuild {
	return &rebuild{
		log: l, index: x, queues: map[uint32]*queueState{},
		noQueue: map[uint32]bool{}, noEx: map[uint32]bool{},
	}
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

// apply takes in one record and reports whether it makes sense.
func (s *rebuild) apply(rec []byte, ref Ref) bool {
	body := rec[recordHeaderBytes:]
	r := reader{b: body}
	switch kind(rec[12]) {
	case kindReady:
		return s.ready(rec, ref)
	case kindDelayed:
		return s.delayed(rec, ref)
	case kindTomb:
		k := r.key()
		s.seen(k.Seq)
		s.remove(k.Seq)
	case kindMove:
		return s.moves(&r)
	case kindRetry:
		old, k := r.key(), r.key()
		if e := s.index.table.get(old.Seq); e != nil && !r.bad {
			e.due = clampDue(k.Due) << 1
		}
	case kindSettle:
		return parseSettle(body, func(queue uint32, first, n uint64) { s.queue(queue).settle(first, n) })
	case kindPut:
		key := r.str()
		if !r.bad {
			s.log.defineLocked(key, rec, ref)
		}
	case kindDelete:
		key := r.str()
		if !r.bad {
			s.log.undefineLocked(key)
		}
	case kindDropQueue:
		s.noQueue[r.u32()] = true
	case kindDropExchange:
		s.noEx[r.u32()] = true
	case kindMark, kindPad:
	default:
		return false
	}
	return !r.bad
}

func (s *rebuild) seen(seq uint64) { s.nextSeq = max(s.nextSeq, seq+1) }

func (s *rebuild) ready(rec []byte, ref Ref) bool {
	v := &s.view
	if !parseMessage(rec, v) {
		return false
	}
	e := Entry{Ref: ref, Arrived: v.Arrived, TTL: v.TTL, Persistent: v.Persistent}
	for i := range v.targetCount() {
		t := v.target(i)
		if v.flags&flagCopy != 0 {
			s.log.cleaner.noteCopy(t, s.lsn)
		}
		e.Pos = t.Pos
		s.queue(t.Queue).add(e)
	}
	return true
}

func (s *rebuild) delayed(rec []byte, ref Ref) bool {
	v := &s.view
	if !parseMessage(rec, v) || v.Key.Seq == 0 || v.Key.Due < 0 || v.Key.Due > maxDue {
		return false
	}
	s.seen(v.Key.Seq)
	if e := s.index.table.get(v.Key.Seq); e != nil {
		e.setRef(ref) // a copy
		e.due = v.Key.Due << 1
		return true
	}
	e := entry{seq: v.Key.Seq, due: v.Key.Due << 1, exchange: v.ExchangeID}
	e.setRef(ref)
	s.index.table.put(e)
	return true
}

func (s *rebuild) moves(r *reader) bool {
	var c moveCoder
	m := &s.move
	for len(r.b) > 0 {
		if !c.parse(r, m) {
			return false
		}
		s.seen(m.Key.Seq)
		ref := m.Ref
		if e := s.index.table.get(m.Key.Seq); e != nil {
			ref = e.ref()
			s.remove(m.Key.Seq)
		} else if s.log.segment(ref.File) == nil {
			ref = Ref{} // cleaned away: settled, or a copy of it follows
		}
		e := Entry{Ref: ref, Arrived: m.Arrived, TTL: m.TTL, Persistent: m.Persistent, moved: true}
		for _, t := range m.Targets {
			e.Pos = t.Pos
			s.queue(t.Queue).add(e)
		}
	}
	return true
}

func (s *rebuild) remove(seq uint64) { s.index.table.remove(seq) }

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
		g.moved = append(g.moved, movedEntry{off: e.Ref.Off, queue: queue, pos: e.Pos, arrived: e.Arrived})
	}
}

func (s *rebuild) finishIndex() {
	x := s.index
	var gone []uint64
	x.table.each(func(e *entry) {
		if s.noEx[e.exchange] {
			gone = append(gone, e.seq)
		}
	})
	for _, seq := range gone {
		x.table.remove(seq)
	}
	x.table.each(func(e *entry) {
		x.countLocked(e.exchange, 1, e.length)
		if g := s.log.segment(e.file); g != nil {
			g.live.Add(int64(e.length))
		}
	})
	x.rebuildLocked()
}
