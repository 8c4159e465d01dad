package store

import "slices"

// What a segment of the log says about runs is needed as long as they are there,
// however old the segment is: it is logged again before the segment goes. For
// what ended in a run one record with its present state stands for all.

// again logs a record once more. It counts as live: else the cleaner would go
// round for ever when there are many of them. The log lock is held.
func (c *cleaner) againLocked(rec []byte) bool {
	_, ok := c.appendLocked(len(rec), func(buf []byte) {
		copy(buf, rec)
		buf[13] = flagCopy // it is in no group any more
		c.log.active().live.Add(int64(len(rec)))
	})
	return ok
}

// moveAgain logs moves out of runs again whose messages are still in queues.
func (c *cleaner) moveAgain(rec []byte) {
	const piece = 256
	var in, out moveCoder
	var m Move
	var buf []byte
	n := 0
	l := c.log
	flush := func() {
		if n == 0 || c.err != nil {
			return
		}
		putHeader(buf, kindMove, flagCopy, 0)
		l.mu.Lock()
		ok := c.againLocked(buf)
		lsn := l.lsn
		l.mu.Unlock()
		n = 0
		if !ok {
			return
		}
		r := reader{b: buf[recordHeaderBytes:]}
		for d := (moveCoder{}); len(r.b) > 0 && d.parse(&r, &m); {
			for _, t := range m.Targets {
				c.noteCopy(t, lsn)
			}
		}
	}
	r := reader{b: rec[recordHeaderBytes:]}
	for len(r.b) > 0 && in.parse(&r, &m) {
		if l.run(m.Ref.File) == nil {
			continue
		}
		m.Targets = slices.DeleteFunc(m.Targets, func(t Target) bool { return !c.ask.Holds(t.Queue, t.Pos) })
		if len(m.Targets) == 0 {
			continue
		}
		if n == 0 {
			buf, out = append(buf[:0], make([]byte, recordHeaderBytes)...), moveCoder{}
		}
		buf = out.append(buf, &m, m.Ref)
		if n++; n == piece {
			flush()
		}
	}
	flush()
}

// retryAgain logs a retry again whose entry waits under that key and has its
// record in a run.
func (c *cleaner) retryAgain(rec []byte) {
	r := reader{b: rec[recordHeaderBytes:]}
	old, key := r.key(), r.key()
	if len(r.b) == 0 {
		return
	}
	ref, _ := r.retryPlace()
	x := c.s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.table.get(old.Seq)
	if r.bad || e == nil || e.ref() != ref || e.key() != key || c.log.run(ref.File) == nil || x.isDropped(e.exchange) {
		return
	}
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	c.againLocked(rec)
}

// dropAgain logs again that an exchange was dropped, while entries of it are left.
func (c *cleaner) dropAgain(rec []byte) {
	r := reader{b: rec[recordHeaderBytes:]}
	x := c.s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.isDropped(r.u32()) {
		c.log.mu.Lock()
		defer c.log.mu.Unlock()
		c.againLocked(rec)
	}
}

func (c *cleaner) touchEnds(rec []byte) {
	var ec endCoder
	for r := (reader{b: rec[recordHeaderBytes:]}); len(r.b) > 0 && !r.bad; {
		ref, _ := ec.parse(&r)
		c.touched[ref.File] = true
	}
}

// logStates logs what is left of the runs that the segment told of.
func (c *cleaner) logStates() error {
	x, l := c.s.index, c.log
	x.mu.Lock()
	list := slices.Clone(x.runs)
	x.mu.Unlock()
	for _, r := range list {
		x.mu.Lock()
		if c.touched[r.id] || r.unlogged {
			rec := appendState(make([]byte, recordHeaderBytes), r.id, r.rest, r.left)
			putHeader(rec, kindRun, flagCopy, 0)
			l.mu.Lock()
			ref, ok := c.appendLocked(len(rec), func(buf []byte) {
				copy(buf, rec)
				l.active().live.Add(int64(len(rec)))
			})
			l.mu.Unlock()
			if ok {
				l.addLive(r.state, -1)
				r.state, r.unlogged = ref, false
			}
		}
		x.mu.Unlock()
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// delayedOfRun copies an entry whose record is in a run: c.view, with the
// given parts. The copy and the end of it in the run are one group.
func (c *cleaner) delayedOfRun(e *entry, size int, p *messageParts) {
	x, l := c.s.index, c.log
	rec := make([]byte, align(int64(size)))
	putMessage(rec[:size], &c.view.Message, p)
	rec = appendRecord(rec, kindEnd, 0, func(b []byte) []byte { return new(endCoder).append(b, e.ref(), e.exchange) })
	linkGroup(rec)
	l.mu.Lock()
	buf, to, err := l.reserveLocked(int64(len(rec)), 2, forCleaner)
	if err != nil {
		l.mu.Unlock()
		c.err = err
		return
	}
	copy(buf, rec)
	l.stats.Copied++
	l.active().live.Add(int64(size))
	l.mu.Unlock()
	to.Len = uint32(size)
	x.leaveLocked(e)
	x.gone(e.ref())
	x.relocateLocked(e, to)
	x.fresh += int64(size)
}
