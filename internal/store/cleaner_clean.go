package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// clean empties the oldest segment:
//
//  1. copy what is held: ready messages, waiting entries, definitions, and
//     messages in runs that moves in this segment put into queues;
//  2. copy what was delayed and is in queues now; after step 1 no entry that
//     could still be moved refers to this segment, so the list is complete;
//  3. wait until the copies, and what made copies unnecessary, are durable;
//  4. take the file out of the log.
func (c *cleaner) clean(g *segment) error {
	c.seg, c.err, c.second, c.runsHold = g, nil, false, c.log.runsHold()
	c.echoes = map[uint32][]stretch{}
	g.pins.Wait()
	if c.claimRescued(); c.err != nil {
		return c.err
	}
	if err := c.emptyFresh(g); err != nil {
		return err
	}
	if err := c.logStates(); err != nil {
		return err
	}
	if !c.isSpent(g) {
		if err := c.copyHeld(g); err != nil {
			return err
		}
	}
	if err := c.waitDurable(); err != nil {
		return err
	}
	c.retire()
	return nil
}

// copyHeld is steps 1 and 2.
func (c *cleaner) copyHeld(g *segment) error {
	b, err := c.content(g)
	if err != nil {
		return err
	}
	if err := c.pass(b); err != nil {
		return err
	}
	c.takeMoved()
	if len(c.moved) > 0 {
		c.second = true
		if err := c.pass(b); err != nil {
			return err
		}
	}
	return c.logEchoes()
}

func (c *cleaner) content(g *segment) ([]byte, error) {
	if p := g.buf.Load(); p != nil {
		return (*p)[:g.end], nil
	}
	b := make([]byte, g.end)
	if _, err := g.file.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read segment: %w", err)
	}
	return b, nil
}

func (c *cleaner) pass(b []byte) error {
	r := &replay{log: c.log, out: &Recovery{}, visit: c.visit}
	s := &scanned{seg: c.seg, start: segmentHeaderBytes}
	h, ok := parseSegmentHeader(b, c.log.table)
	if !ok {
		at, f := r.nextFrame(s, b, segmentHeaderBytes, 0)
		if at < 0 {
			return nil
		}
		s.start, h.firstLSN = at, f.lsn
	}
	c.first = h.firstLSN
	r.scan(s, b, s.start, int64(len(b)), h.firstLSN, true, false)
	if c.err == nil {
		r.tell()
	}
	return c.err
}

func (c *cleaner) visit(rec []byte, ref Ref) bool {
	if c.err != nil {
		return true
	}
	switch k := kind(rec[12]); {
	case k == kindReady && !c.second:
		c.ready(rec, ref)
	case k == kindDelayed && !c.second:
		c.delayed(rec, ref)
		c.claimAgain(rec)
	case k == kindClaim && !c.second:
		c.claimAgain(rec)
	case k == kindMove && !c.second:
		c.movedOut(rec)
	case k == kindDelayed:
		c.released(rec, ref)
	case k == kindPut && !c.second:
		c.put(rec, ref)
	case k == kindRunGone && !c.second:
		c.runGone(rec)
	case (k == kindSettle || k == kindDropQueue) && !c.second:
		c.echo(rec)
	}
	return true
}

func (c *cleaner) ready(rec []byte, from Ref) {
	v := &c.view
	if !parseMessage(rec, v) {
		return
	}
	c.held = c.held[:0]
	for i := range v.targetCount() {
		if t := v.target(i); c.ask.Holds(t.Queue, t.Pos) {
			c.held = append(c.held, t)
		}
	}
	c.copyReady(&v.Message, from)
}

// released copies a message that was delayed and is now in queues.
func (c *cleaner) released(rec []byte, from Ref) {
	v := &c.view
	i, _ := slices.BinarySearchFunc(c.moved, from.Off, func(e movedEntry, off uint32) int { return cmp.Compare(e.off, off) })
	if i == len(c.moved) || c.moved[i].off != from.Off || !parseMessage(rec, v) {
		return
	}
	c.held = c.held[:0]
	for ; i < len(c.moved) && c.moved[i].off == from.Off; i++ {
		e := &c.moved[i]
		v.Arrived, v.TTL, v.Persistent = e.arrived, e.ttl(), e.persistent() // the same for all places of one move
		if c.ask.Holds(e.queue, e.pos) {
			c.held = append(c.held, Target{Queue: e.queue, Pos: e.pos})
		}
	}
	c.copyReady(&v.Message, from)
}

// copyReady appends a copy for the queues in c.held and tells them.
func (c *cleaner) copyReady(m *Message, from Ref) {
	if len(c.held) == 0 {
		return
	}
	size, err := messageSize(kindReady, m, len(c.held), false)
	if err != nil {
		c.err = err
		return
	}
	var lsn LSN
	to, ok := c.append(size, func(buf []byte) {
		putMessage(buf, m, &messageParts{kind: kindReady, flags: flagCopy, targets: c.held})
		lsn = c.log.lsn
		c.log.active().live.Add(int64(size) * int64(len(c.held)))
	})
	if !ok {
		return
	}
	for _, t := range c.held {
		c.noteCopy(t, lsn)
		if !c.ask.Relocate(t.Queue, t.Pos, from, to) {
			c.log.addLive(to.File, -int64(to.Len))
		}
	}
}

// append reserves, and fills under the log lock. A failure is kept in c.err.
func (c *cleaner) append(size int, fill func([]byte)) (Ref, bool) {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.appendLocked(size, fill)
}

func (c *cleaner) appendLocked(size int, fill func([]byte)) (Ref, bool) {
	if c.err != nil {
		return Ref{}, false
	}
	l := c.log
	buf, ref, err := l.reserveLocked(align(int64(size)), 1, forCleaner)
	if err != nil {
		c.err = err
		return Ref{}, false
	}
	fill(buf[:size])
	l.stats.Copied++
	ref.Len = uint32(size)
	return ref, true
}

func (c *cleaner) put(rec []byte, from Ref) {
	r := reader{b: rec[recordHeaderBytes:]}
	key := r.str()
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.defs[key]
	if r.bad || !ok || d.ref != from {
		return
	}
	current := false
	to, ok := c.appendLocked(len(rec), func(buf []byte) {
		copy(buf, rec)
		buf[13] = flagCopy // it is in no group any more
		// Reserving may have released the lock, and a newer value come first.
		if current = l.defs[key].ref == from; !current {
			buf[12] = byte(kindPad)
		}
	})
	if ok && current {
		d.ref = to
		l.defs[key] = d
		l.active().live.Add(int64(len(rec)))
	}
}

// takeMoved takes the list of what was moved out of the segment.
func (c *cleaner) takeMoved() {
	l := c.log
	l.mu.Lock()
	c.moved = append(c.moved[:0], c.seg.moved...)
	l.mu.Unlock()
	slices.SortFunc(c.moved, func(a, b movedEntry) int { return cmp.Compare(a.off, b.off) })
}

// waitDurable waits for the copies, and for what ended the records that were
// not copied: a message must not go before the settle, move or drop that ended
// it is durable, or before what is in the same group.
func (c *cleaner) waitDurable() error {
	return c.log.awaitLast(c.quit)
}

func (c *cleaner) retire() {
	l, g, x := c.log, c.seg, c.s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if f := g.fresh; f != nil {
		invariant(f.waiting+f.flying == 0, "nothing delayed is in a segment that goes")
		x.forgetFresh(f)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	invariant(l.order[0] == g, "the oldest segment is cleaned")
	g.retired.Store(true)
	l.order = slices.Delete(l.order, 0, 1)
	l.publishLocked()
	g.moved = nil
	l.stats.Cleaned++
	l.stale = append(l.stale, staleFile{seg: g, fits: g.size == l.o.SegmentBytes})
	wake(l.want)
}

// thin forgets moved entries that are not held any more, in segments where
// there are many.
func (c *cleaner) thin() {
	l := c.log
	l.mu.Lock()
	segs := slices.Clone(l.order)
	l.mu.Unlock()
	for _, g := range segs {
		l.mu.Lock()
		if !g.movedMany() {
			l.mu.Unlock()
			continue
		}
		list := slices.Clone(g.moved)
		l.mu.Unlock()
		n := len(list)
		list = slices.DeleteFunc(list, func(e movedEntry) bool { return !c.ask.Holds(e.queue, e.pos) })
		l.mu.Lock()
		g.moved = append(list, g.moved[n:]...) // others may have come meanwhile
		g.movedKept = len(g.moved)
		l.mu.Unlock()
	}
}
