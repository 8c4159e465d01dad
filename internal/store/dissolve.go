package store

import "slices"

// Runs go when nothing in them is needed. Those with much garbage are dissolved:
// what is still needed goes back to the log, from where it may go into another
// run.

// chooseRun returns a run to be removed or dissolved, or nil. That nobody needs
// is enough to remove it; to dissolve one pays by the same rule as cleaning the
// log.
func (c *cleaner) chooseRun() *run {
	x, l := c.s.index, c.log
	l.mu.Lock()
	stopped := l.err != nil
	l.mu.Unlock()
	if stopped {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var worst *run
	var size, live int64
	for _, r := range x.runs {
		n := r.liveBytes()
		if n == 0 && len(r.rest) == 0 {
			return r
		}
		size += r.size
		live += n
		if worst == nil || r.size-n > worst.size-worst.liveBytes() {
			worst = r
		}
	}
	if worst == nil || size-live <= live+l.o.SlackBytes || worst.size-worst.liveBytes() < worst.size/4 {
		return nil
	}
	return worst
}

// dissolve empties a run and removes it:
//
//  1. copy what waits only there, a block at a time;
//  2. copy what is in the index and refers to it;
//  3. copy what is in queues; after steps 1 and 2 nothing more can be moved out
//     of it, so the list is complete;
//  4. when that is durable, log that the run is gone; when that is durable,
//     remove the file.
func (c *cleaner) dissolve(r *run) error {
	c.seg, c.err, c.second = r.segment, nil, false
	for i := range r.blocks {
		if err := c.dissolveBlock(r, i); err != nil {
			return err
		}
	}
	if err := c.dissolveIndex(r); err != nil {
		return err
	}
	c.takeMoved()
	if err := c.dissolveMoved(r); err != nil {
		return err
	}
	x := c.s.index
	x.mu.Lock()
	rest := len(r.rest)
	x.mu.Unlock()
	if rest > 0 {
		return nil // damaged records: the file stays
	}
	if err := c.waitDurable(); err != nil {
		return err
	}
	return c.removeRun(r)
}

// dissolveBlock copies what waits in a block that is not in the index: the
// copies and the record that says where they ended are one group.
func (c *cleaner) dissolveBlock(r *run, i int) error {
	t, x, l := c.s.runs, c.s.index, c.log
	t.mu.Lock() // the block is not loaded meanwhile
	defer t.mu.Unlock()
	x.mu.Lock()
	cold := i >= r.next && r.rest.overlaps(r.span(i))
	x.mu.Unlock()
	if !cold {
		return nil
	}
	list, err := t.entries(r, i)
	if err != nil {
		return err
	}
	b := r.recent[0].Load()
	x.mu.Lock()
	defer x.mu.Unlock()
	var group, ends []byte
	var ec endCoder
	var kept []found
	at := []int{}
	for _, f := range list {
		if !r.rest.overlaps(recordSpan(f.ref)) || x.isDropped(f.exchange) || x.table.get(f.key.Seq) != nil {
			continue
		}
		from := int(f.ref.Off-b.off) * 8
		at = append(at, len(group))
		group = appendPad(append(group, b.buf[from:from+int(f.ref.Len)]...))
		group[at[len(kept)]+13] = group[at[len(kept)]+13]&^(flagMore|flagCont) | flagCopy
		ends = ec.append(ends, f.ref, f.exchange)
		kept = append(kept, f)
	}
	if len(kept) > 0 {
		group = appendRecord(group, kindEnd, 0, func(p []byte) []byte { return append(p, ends...) })
		linkGroup(group)
		l.mu.Lock()
		buf, ref, err := l.reserveLocked(int64(len(group)), len(kept)+1, forCleaner)
		if err != nil {
			l.mu.Unlock()
			return err
		}
		copy(buf, group)
		l.stats.Copied += uint64(len(kept))
		g := l.active()
		for k, f := range kept {
			to := Ref{File: ref.File, Off: ref.Off + uint32(at[k]/8), Len: f.ref.Len}
			g.live.Add(int64(to.Len))
			e := entry{seq: f.key.Seq, due: f.key.Due << 1, exchange: f.exchange}
			e.setRef(f.ref)
			x.leaveLocked(&e)
			e.setRef(to)
			x.table.put(e)
			x.pushLocked(node{f.key.Due, f.key.Seq})
			x.fresh += int64(to.Len)
			r.live.Add(-int64(to.Len))
		}
		l.mu.Unlock()
	}
	for _, f := range list {
		x.takeInLocked(r, &f) // what is left belongs to dropped exchanges
	}
	x.boundLocked()
	return nil
}

// dissolveIndex copies the records of entries in the index.
func (c *cleaner) dissolveIndex(r *run) error {
	x := c.s.index
	var list []entry
	for i := range x.table.shards {
		x.mu.Lock()
		for j := range x.table.shards[i].slots {
			if e := &x.table.shards[i].slots[j]; e.seq != 0 && e.file == r.id {
				list = append(list, *e)
			}
		}
		x.mu.Unlock()
	}
	for _, e := range list {
		rec, err := c.runRecord(r, e.ref())
		if err != nil {
			return err // it stays where it is
		}
		c.delayed(rec, e.ref())
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// runRecord reads one record of a run.
func (c *cleaner) runRecord(r *run, ref Ref) ([]byte, error) {
	if rec := r.view(ref); rec != nil {
		return rec, nil
	}
	rec := make([]byte, ref.Len)
	if err := readFull(r.file, rec, int64(ref.Off)*8); err != nil {
		return nil, err
	}
	if got, ok := recordAt(rec); !ok || len(got) != len(rec) || !recordValid(rec, le.Uint32(rec[8:]), c.log.table) {
		return nil, &CorruptError{File: r.name, Offset: int64(ref.Off) * 8, Reason: "checksum mismatch"}
	}
	return rec, nil
}

// dissolveMoved copies what is in queues, reading each block once.
func (c *cleaner) dissolveMoved(r *run) error {
	var b *loaded
	at := -1
	for i := 0; i < len(c.moved); {
		off, held := c.moved[i].off, false
		for ; i < len(c.moved) && c.moved[i].off == off; i++ {
			held = held || c.ask.Holds(c.moved[i].queue, c.moved[i].pos)
		}
		if !held {
			continue
		}
		if k := r.blockOf(off); k != at {
			var err error
			if b, err = r.read(k); err != nil {
				return err
			}
			at = k
		}
		from := int64(off) * 8
		rec, ok := recordAt(b.buf[from-int64(b.off)*8:])
		if !ok || !recordValid(rec, le.Uint32(rec[8:]), c.log.table) {
			return &CorruptError{File: r.name, Offset: from, Reason: "checksum mismatch"} // the file stays
		}
		c.released(rec, Ref{File: r.id, Off: off, Len: uint32(len(rec))})
		if c.err != nil {
			return c.err
		}
		r.live.Add(-int64(len(rec)) * int64(len(c.held)))
	}
	return nil
}

func (c *cleaner) removeRun(r *run) error {
	x, l := c.s.index, c.log
	if _, ok := c.append(recordHeaderBytes+4, func(b []byte) {
		le.PutUint32(b[recordHeaderBytes:], r.id)
		putHeader(b, kindRunGone, 0, 0)
	}); !ok {
		return c.err
	}
	if err := c.waitDurable(); err != nil {
		return err
	}
	x.mu.Lock()
	r.retired.Store(true)
	x.runs = slices.DeleteFunc(x.runs, func(o *run) bool { return o == r })
	x.publishLocked()
	l.addLive(r.state, -1)
	x.mu.Unlock()
	r.file.Close()
	if err := l.fs.Remove(l.path(r.name)); err != nil {
		l.logger.Warn("cannot remove a run, the next start will", "err", err)
		return nil
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		err = failed("sync directory of the", err)
		l.mu.Lock()
		l.failLocked(err)
		l.mu.Unlock()
		return err
	}
	return nil
}
