package store

import (
	"maps"
	"slices"
)

// Replay of what is delayed. Unlike what ends in queues, all of it depends on the
// order of the log, in which each end stands behind what it ends.

func (s *rebuild) delayed(rec []byte, ref Ref) bool {
	v := &s.view
	if !parseMessage(rec, v) || v.Key.Seq == 0 || v.Key.Due < 0 || v.Key.Due > maxDue {
		return false
	}
	s.seen(v.Key.Seq)
	if v.flags&flagCopy != 0 {
		s.remove(v.Key.Seq)
	}
	if v.Large.isSet() {
		s.seenID(v.Large.File)
		s.large.waiting[v.Key.Seq] = claimedBody{claimRecord{v.Key.Seq, v.ExchangeID, v.Large}, ref.File, 0}
	}
	f := s.index.freshLocked(s.log.segment(ref.File))
	f.place(v.Key.Seq, entry{
		due: v.Key.Due, off: ref.Off, length: ref.Len, exchange: v.ExchangeID, state: entryWaits,
	})
	if v.KeyHash != 0 {
		f.keys.add(v.KeyHash, v.Key.Seq)
	}
	return true
}

// remove forgets an entry in the log.
func (s *rebuild) remove(seq uint64) {
	if f, e := s.index.findFresh(seq); f != nil {
		f.forget(seq, e)
	}
}

// seenID notes the id of a file. No new one may get an id that the log speaks of.
func (s *rebuild) seenID(id uint32) { s.maxID = max(s.maxID, id) }

func (s *rebuild) applyDelayed(k kind, r *reader, ref Ref) bool {
	switch k {
	case kindTomb:
		key := r.key()
		s.seen(key.Seq)
		s.remove(key.Seq)
		delete(s.large.waiting, key.Seq)
	case kindMove:
		return s.moves(r)
	case kindRetry:
		old, key := r.key(), r.key()
		if f, e := s.index.findFresh(old.Seq); f != nil && !r.bad {
			e.due = clampDue(key.Due)
			f.set(old.Seq, e)
		}
	case kindEnd:
		c := r.canceledInRun()
		s.seenID(c.run)
		if run := s.run(c.run); run != nil && !r.bad && c.ordinal < run.count {
			run.state.cancel(&c)
		}
	case kindRun:
		return s.runState(r, ref)
	case kindFlush:
		s.flush(r.flushedSegments())
	case kindRunGone:
		id := r.u32()
		s.seenID(id)
		delete(s.known, id)
		s.gone[id] = true
	}
	return !r.bad
}

func (s *rebuild) moves(r *reader) bool {
	var c moveCoder
	m := &s.move
	for len(r.b) > 0 {
		if !c.parse(r, m) {
			return false
		}
		s.seen(m.Key.Seq)
		s.seenID(m.Ref.File)
		delete(s.large.waiting, m.Key.Seq)
		if m.large.isSet() {
			s.seenID(m.large.File)
			s.large.queue(m.Targets, m.large)
		}
		ref := s.moved(m)
		e := Entry{Ref: ref, Arrived: m.Arrived, TTL: m.TTL, Persistent: m.Persistent, moved: !m.fromRun}
		for _, t := range m.Targets {
			e.Pos = t.Pos
			s.queue(t.Queue).add(e)
		}
	}
	return true
}

// moved ends the entry of a move and returns where its record is, if it still is
// anywhere: else it was settled, or a copy of it follows.
func (s *rebuild) moved(m *Move) Ref {
	g := s.log.segment(m.Ref.File)
	if m.fromRun {
		if g == nil || g.run == nil {
			return Ref{}
		}
		st := &g.run.state
		st.done = max(st.done, afterRecord(m.Ref.Off, m.Ref.Len))
		g.run.lastMove = max(g.run.lastMove, s.lsn)
		st.take(m.exchange, oneOf(m.Ref.Len))
		return m.Ref
	}
	if g != nil && g.fresh != nil {
		if e := g.fresh.get(m.Key.Seq); e.state != entryGone && e.off == m.Ref.Off {
			g.fresh.forget(m.Key.Seq, e)
			return g.fresh.ref(&e)
		}
	}
	if f, e := s.index.findFresh(m.Key.Seq); f != nil && e.due == m.Key.Due {
		f.forget(m.Key.Seq, e)
		return f.ref(&e)
	}
	if g == nil {
		return Ref{}
	}
	return m.Ref
}

func (s *rebuild) runState(r *reader, ref Ref) bool {
	id, st := r.runState()
	if r.bad {
		return false
	}
	s.seenID(id)
	s.known[id] = true
	run := s.run(id)
	if run == nil {
		return true // finishRuns reports it, unless it is gone by then
	}
	st.stop = min(st.stop, run.end)
	st.done = min(max(st.done, segmentHeaderBytes/8), st.stop)
	run.state = st
	run.stateIn, run.stateBytes = ref.File, int64(ref.Len)
	return true
}

// flush forgets what is in a run now.
func (s *rebuild) flush(f flushedSegments) {
	for _, id := range f.segments {
		s.seenID(id)
		g := s.log.segment(id)
		if g == nil || g.fresh == nil {
			continue
		}
		g.fresh.each(func(seq uint64, e entry) {
			if !slices.Contains(f.flying, seq) {
				g.fresh.forget(seq, e)
			}
		})
	}
}

// candidate is a run file found at Open, and what is wrong with it.
type candidate struct {
	run     *run // nil if nothing of it can be used
	damages []Damage
}

// loadRuns opens all run files there are. The log tells which of them count.
func (s *rebuild) loadRuns(names []string) error {
	for _, name := range names {
		id, ok := parseRunName(name)
		if !ok {
			continue
		}
		s.log.nextID = max(s.log.nextID, id+1)
		c := &candidate{}
		r, err := openRun(s.log, id, func(d Damage) { c.damages = append(c.damages, d) })
		s.candidates[id] = c
		if IsCorruption(err) {
			c.damages = append(c.damages, Damage{File: name, Reason: err.Error(), Control: true})
			continue
		}
		if err != nil {
			return err
		}
		c.run = r
		s.log.files = append(s.log.files, r)
	}
	return nil
}

// run returns a run that is there, or nil.
func (s *rebuild) run(id uint32) *run {
	if c := s.candidates[id]; c != nil {
		return c.run
	}
	return nil
}

// finishRuns makes the index serve the runs that the log tells of.
func (s *rebuild) finishRuns() {
	l := s.log
	l.files = nil
	for _, id := range slices.Sorted(maps.Keys(s.candidates)) {
		c := s.candidates[id]
		if !s.known[id] {
			if c.run != nil {
				l.releaseFilter(c.run)
				c.run.file.Close()
			}
			s.unnamed = append(s.unnamed, runName(id))
			continue
		}
		s.damages = append(s.damages, c.damages...)
		if c.run != nil {
			l.files = append(l.files, c.run)
			s.serve(c.run)
		}
	}
	l.publishLocked()
	for _, id := range slices.Sorted(maps.Keys(s.known)) {
		if s.candidates[id] == nil {
			s.damages = append(s.damages, Damage{File: runName(id), Reason: "run is missing", Control: true})
		}
	}
}

func (s *rebuild) serve(r *run) {
	x := s.index
	if r.unsure && r.state.cancelled != nil {
		r.state.cancelled = nil
		s.damages = append(s.damages, Damage{File: r.name, Reason: "what was cancelled is not known any more", Control: true})
	}
	for ex := range s.noEx {
		r.drop(ex)
	}
	for ex, p := range r.state.left {
		x.countLocked(ex, int(p.Count), 0)
		x.last.Bytes += p.Bytes
		x.total.Bytes += p.Bytes
	}
	s.nextSeq = max(s.nextSeq, r.seqs[1]+1)
	r.live.Add(int64(r.state.total().Bytes))
	if g := s.log.segment(r.stateIn); g != nil {
		g.live.Add(r.stateBytes)
	}
	r.seek(r.state.done)
	if !r.consumed() {
		x.runs = append(x.runs, r)
		x.fixLocked(&r.source)
	}
}

// finishIndex brings the index in order.
func (s *rebuild) finishIndex() {
	s.finishRuns()
	s.finishFresh()
	s.claimWaiting()
	s.log.nextID = max(s.log.nextID, s.maxID+1)
}

// finishFresh counts what waits in the log and brings it in order.
func (s *rebuild) finishFresh() {
	x := s.index
	for _, f := range slices.Clone(x.fresh) {
		f.each(func(seq uint64, e entry) {
			if s.noEx[e.exchange] {
				f.forget(seq, e)
				return
			}
			f.waiting++
			f.bytes += int64(e.length)
			f.heap = append(f.heap, node{e.due, seq})
			x.countLocked(e.exchange, 1, e.length)
		})
		f.order()
		f.trim()
		f.seg.live.Add(f.bytes)
		x.bytes += f.bytes
		x.fixLocked(&f.source)
		if f.waiting == 0 {
			x.forgetFresh(f)
		}
	}
}
