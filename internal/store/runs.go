package store

import (
	"math"
	"sync"
	"sync/atomic"
)

// runs brings entries from the runs into the index, block by block, before they
// can be popped. From then on they are entries like others.
type runs struct {
	s *Store

	damages atomic.Int64 // found while running

	// mu is held while a block is read, so that nobody else reads the same. It
	// comes before the index lock, and nobody waits for it who holds another.
	mu    sync.Mutex
	found []found // guarded by mu: scratch
}

// found is a record in a block.
type found struct {
	key      Key
	ref      Ref
	exchange uint32
}

// unbound is the bound when all is in the index.
func unbound() node { return node{due: math.MaxInt64} }

// load brings the nearest block into the index if it is due.
func (t *runs) load(now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.s.index
	x.mu.Lock()
	r := x.boundLocked()
	if r == nil || x.bound.due > now {
		x.mu.Unlock()
		return // somebody else was here
	}
	i := r.next
	x.mu.Unlock()

	list, err := t.entries(r, i)
	if err != nil {
		t.damages.Add(1)
		t.s.log.logger.Error("cannot read a block, its messages wait for the next start", "file", r.name,
			"offset", int64(r.span(i).from)*8, "err", err)
	}

	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range list {
		x.takeInLocked(r, &f)
	}
	r.next = i + 1
	x.boundLocked()
}

// entries reads a block. What is damaged is reported and skipped; it stays in
// the file and counts as pending. The result is valid until the next call.
func (t *runs) entries(r *run, i int) ([]found, error) {
	t.found = t.found[:0]
	b, err := r.read(i)
	if err != nil {
		b, err = r.read(i) // once more
	}
	if err != nil {
		return nil, err
	}
	eachRecord(b.buf, t.s.log, func(off int, rec []byte, v *messageView) {
		ref := Ref{File: r.id, Off: b.off + uint32(off/8), Len: uint32(len(rec))}
		t.found = append(t.found, found{v.Key, ref, v.ExchangeID})
	}, func(off, n int) {
		t.damages.Add(1)
		t.s.log.logger.Error("damage skipped", "file", r.name, "offset", int64(b.off)*8+int64(off), "bytes", n)
	})
	r.keep(b)
	return t.found, nil
}

// takeInLocked makes a record of a run an entry of the index, if it still waits.
func (x *index) takeInLocked(r *run, f *found) {
	e := entry{seq: f.key.Seq, due: f.key.Due << 1, exchange: f.exchange}
	e.setRef(f.ref)
	if !r.rest.overlaps(recordSpan(f.ref)) {
		return
	}
	old := x.table.get(f.key.Seq)
	switch {
	case old != nil && old.ref() == f.ref: // it is here already
	case x.isDropped(f.exchange):
		x.gone(f.ref)
		x.leaveLocked(&e)
		if left := x.dropped[f.exchange]; left > 1 {
			x.dropped[f.exchange] = left - 1
		} else {
			delete(x.dropped, f.exchange)
		}
	case old != nil: // there are two of it, after damage
		x.gone(f.ref)
		x.leaveLocked(&e)
		x.countLocked(f.exchange, -1, f.ref.Len)
		r.unlogged = true
	default:
		x.table.put(e)
		x.pushLocked(node{f.key.Due, f.key.Seq})
	}
}

// leaveLocked notes that an entry does not wait in its run any more, if its
// record is in one.
func (x *index) leaveLocked(e *entry) {
	if len(x.runs) == 0 {
		return
	}
	r := x.log.run(e.file)
	if r == nil {
		return
	}
	st := runState{r.rest, r.left}
	st.end(e.ref(), e.exchange)
	r.rest = st.rest
	if x.isDropped(e.exchange) {
		r.unlogged = true
	}
}

// nearestLocked returns the run whose next block comes first, and nil if no
// block is left.
func (x *index) nearestLocked() *run {
	var first *run
	for _, r := range x.runs {
		for r.next < len(r.blocks) && !r.rest.overlaps(r.span(r.next)) {
			r.next++
		}
		if r.next < len(r.blocks) && (first == nil || r.blocks[r.next].first.Less(first.blocks[first.next].first)) {
			first = r
		}
	}
	return first
}

// boundLocked finds x.bound after a change, and returns the run it is in.
func (x *index) boundLocked() *run {
	x.bound = unbound()
	r := x.nearestLocked()
	if r != nil {
		k := r.blocks[r.next].first
		x.bound = node{k.Due, k.Seq}
	}
	return r
}

// mayHaveLocked reports whether a key may be in a run and not in the index.
func (x *index) mayHaveLocked(k Key) bool {
	for _, r := range x.runs {
		if r.coldLocked(k) >= 0 {
			return true
		}
	}
	return false
}

// coldLocked returns the block that has to be searched for a key that is not in
// the index, or -1. It may be one that could not be read when it was its turn.
func (r *run) coldLocked(k Key) int {
	if i := r.blockFor(k); i >= 0 && r.rest.overlaps(r.span(i)) {
		return i
	}
	return -1
}

// cancel cancels an entry that is in a run only.
func (t *runs) cancel(key Key) (Outcome, LSN, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range append([]*run(nil), x.runs...) {
		i := r.coldLocked(key)
		if i < 0 {
			continue
		}
		x.mu.Unlock()
		list, err := t.entries(r, i)
		x.mu.Lock()
		if err != nil {
			return NotFound, 0, err
		}
		for _, f := range list {
			if f.key != key || !r.rest.overlaps(recordSpan(f.ref)) || r.retired.Load() {
				continue
			}
			if x.isDropped(f.exchange) {
				return NotFound, 0, nil
			}
			lsn, err := t.s.logTomb(key, f.ref, f.exchange)
			if err != nil {
				return NotFound, 0, err
			}
			e := entry{seq: key.Seq, due: key.Due << 1, exchange: f.exchange}
			e.setRef(f.ref)
			x.gone(f.ref)
			x.removeLocked(e)
			x.boundLocked()
			return Cancelled, lsn, nil
		}
	}
	// It may have come into the index meanwhile.
	return t.s.cancelLocked(x.table.get(key.Seq), key)
}

// publishLocked makes the set of runs visible to readers, under the index lock.
func (x *index) publishLocked() {
	t := runTable{}
	for _, r := range x.runs {
		t[r.id] = r
	}
	x.log.runs.Store(&t)
	x.boundLocked()
}
