package store

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

func newRebuild(l *log, x *index) *rebuild {
	return &rebuild{
		log: l, index: x, queues: map[uint32]*queueState{},
		noQueue: map[uint32]bool{}, noEx: map[uint32]bool{},
	}
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
