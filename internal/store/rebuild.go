package store

// rebuild is the state that replay builds up.
//
// What ends something (a settle, a dropped queue or exchange) holds for good,
// whether it is met before or after what it ends: positions and ids are never
// used twice, and the cleaner's copy of a message may follow an acknowledgement
// that raced it.
type rebuild struct {
	log        *log
	index      *index
	queues     map[uint32]*queueState
	gather     *gathering
	lastQueue  *queueState
	lastID     uint32
	noQueue    map[uint32]bool // dropped
	noEx       map[uint32]bool
	nextSeq    uint64
	lsn        LSN                   // of the frame being applied, or a later one
	candidates map[uint32]*candidate // run files that are there
	known      map[uint32]bool       // runs that the log tells of
	gone       map[uint32]bool       // runs of which it says that they are not needed
	maxID      uint32                // of files that the log speaks of
	unnamed    []string              // run files that the log does not tell of
	damages    []Damage
	bodies     *bodies
	large      claimedBodies
	move       Move
	view       messageView
}

func newRebuild(l *log, x *index) *rebuild {
	s := &rebuild{
		log: l, index: x, bodies: l.bodies, large: newClaimedBodies(), queues: map[uint32]*queueState{},
		noQueue: map[uint32]bool{}, noEx: map[uint32]bool{},
		candidates: map[uint32]*candidate{}, known: map[uint32]bool{}, gone: map[uint32]bool{},
	}
	s.gather = newGathering(l, s.noQueue)
	return s
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
	case kindTomb, kindMove, kindRetry, kindEnd, kindRun, kindFlush, kindRunGone:
		return s.applyDelayed(kind(rec[12]), &r, ref)
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
	case kindClaim:
		s.claimRecord(&r, ref)
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
		if v.Large.isSet() {
			s.large.queued[t] = v.Large
			s.seenID(v.Large.File)
		}
	}
	return true
}
