package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// loadRuns opens all run files. Which of them are in use the log says later.
func (r *replay) loadRuns(names []string) error {
	t := runTable{}
	r.log.runs.Store(&t)
	for _, name := range names {
		id, ok := parseRunName(name)
		if !ok {
			continue
		}
		g, damage, err := openRun(r.log, id)
		if err != nil {
			return err
		}
		t[id] = g
		if damage != nil {
			r.runDamages = append(r.runDamages, *damage)
		}
		r.log.nextID = max(r.log.nextID, id+1)
	}
	return nil
}

// named makes sure that an id which the log names is not used again, although the
// file may be gone: what is said of the old run would be taken for the new one.
// Ids far away are nonsense.
func (s *rebuild) named(id uint32) {
	if id < memoryBit && id < s.log.nextID+1<<20 {
		s.log.nextID = max(s.log.nextID, id+1)
	}
}

func (s *rebuild) run(id uint32) *runState {
	s.named(id)
	st := s.runs[id]
	if st == nil {
		st = &runState{left: map[uint32]Pending{}}
		s.runs[id] = st
	}
	return st
}

// retry lets an entry wait anew. If its record is in a run the entry is not in
// the table yet.
func (s *rebuild) retry(r *reader) {
	old, k := r.key(), r.key()
	e := s.index.table.get(old.Seq)
	switch {
	case r.bad:
	case e != nil:
		e.due = clampDue(k.Due) << 1
	case len(r.b) > 0:
		ref, ex := r.retryPlace()
		s.named(ref.File)
		if r.bad || old.Seq == 0 || s.log.run(ref.File) == nil {
			return // the run is gone, so a copy follows or it ended
		}
		s.seen(old.Seq)
		e := entry{seq: old.Seq, due: clampDue(k.Due) << 1, exchange: ex}
		e.setRef(ref)
		s.index.table.put(e)
	}
}

func (s *rebuild) cover(r *reader) {
	c := r.cover()
	if r.bad {
		return
	}
	for _, seq := range c.seqs {
		s.seen(seq)
		s.remove(seq)
	}
	s.run(c.run).cover(&c)
}

func (s *rebuild) ends(r *reader) {
	var c endCoder
	for len(r.b) > 0 {
		ref, ex := c.parse(r)
		if r.bad {
			return
		}
		s.run(ref.File).end(ref, ex)
	}
}

// finishRuns gives the runs what is left of them, and returns those that nobody
// needs. A run that the log does not name was not finished, or is done with; but
// if the log is damaged, that may be where it was named, and it is served again.
func (s *rebuild) finishRuns(r *replay) []*run {
	x := s.index
	damaged := slices.ContainsFunc(r.out.Damages, func(d Damage) bool { return d.Control })
	var gone []*run
	for _, g := range *s.log.runs.Load() {
		st := s.runs[g.id]
		switch {
		case s.goneRuns[g.id] || (st == nil && !damaged):
			gone = append(gone, g)
			continue
		case st == nil:
			st = s.adopt(r, g)
		}
		g.rest, g.left = st.rest, st.left
		if k := len(g.rest); k > 0 && (g.rest[k-1].to > g.end || len(g.blocks) == 0) {
			r.damage(Damage{File: g.name, Reason: "run is shorter than the log says", Control: true})
			g.rest, g.left = nil, map[uint32]Pending{}
		}
		if len(g.rest) > 0 {
			g.next = max(0, g.blockOf(g.rest[0].from))
		} else {
			g.next = len(g.blocks)
		}
		s.seen(g.seqs[1])
		x.runs = append(x.runs, g)
	}
	for _, d := range r.runDamages {
		if id, _ := parseRunName(d.File); slices.ContainsFunc(x.runs, func(g *run) bool { return g.id == id }) {
			r.damage(d)
		}
	}
	for id, st := range s.runs {
		if len(st.rest) > 0 && s.log.run(id) == nil && !s.goneRuns[id] {
			n := uint64(0)
			for _, p := range st.left {
				n += p.Count
			}
			r.damage(Damage{File: runName(id), Reason: "run is missing", Records: int(n)})
		}
	}
	slices.SortFunc(x.runs, func(a, b *run) int { return cmp.Compare(a.id, b.id) })
	x.publishLocked()
	s.countRuns()
	return gone
}

// adopt serves all of a run of which nothing is known.
func (s *rebuild) adopt(r *replay, g *run) *runState {
	st := &runState{left: map[uint32]Pending{}}
	r.damage(Damage{File: g.name, Reason: "run that the log does not name, served whole", Control: true})
	b := make([]byte, int64(g.end)*8)
	if err := readFull(g.file, b, 0); err != nil {
		return st
	}
	eachRecord(b, s.log, func(off int, rec []byte, v *messageView) {
		if s.index.table.get(v.Key.Seq) != nil {
			return
		}
		p := st.left[v.ExchangeID]
		st.left[v.ExchangeID] = Pending{p.Count + 1, p.Bytes + uint64(len(rec))}
		st.rest = st.rest.add(recordSpan(Ref{Off: uint32(off / 8), Len: uint32(len(rec))}))
	}, nil)
	return st
}

// countRuns accounts for what is left in the runs.
func (s *rebuild) countRuns() {
	x := s.index
	for _, g := range x.runs {
		for ex, p := range g.left {
			g.live.Add(int64(p.Bytes))
			if s.noEx[ex] {
				x.dropped[ex] += int(p.Count)
				continue
			}
			q := x.pending[ex]
			if q == nil {
				q = &Pending{}
				x.pending[ex] = q
			}
			q.Count += p.Count
			q.Bytes += p.Bytes
			x.total.Count += p.Count
			x.total.Bytes += p.Bytes
		}
	}
}

// removeRuns deletes the files of runs that are not needed.
func (s *Store) removeRuns(gone []*run) error {
	l := s.log
	for _, g := range gone {
		g.file.Close()
		if err := l.fs.Remove(l.path(g.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove run: %w", err)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
