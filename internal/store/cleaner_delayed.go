package store

import (
	"errors"
	"slices"
)

// The cleaner's part for what is delayed.

// emptyFresh writes a run of what waits in the oldest segment and the next ones,
// if that is enough for one. Else it is copied like anything else.
func (c *cleaner) emptyFresh(g *segment) error {
	segs, bytes := c.waitingSegments()
	if len(segs) == 0 || segs[0] != g || bytes < c.log.o.RunBytes/4 {
		return nil
	}
	err := c.flush(c.enough(segs, c.log.o.RunBytes))
	if errors.Is(err, ErrFull) {
		return nil
	}
	return err
}

// isSpent reports whether a segment has nothing but delayed messages of which none
// is left, and states of runs: it need not be read.
func (c *cleaner) isSpent(g *segment) bool {
	x, l := c.s.index, c.log
	x.mu.Lock()
	defer x.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return g.fresh == nil && g.live.Load() <= 0 && len(g.moved) == 0 && g.idle > 0 && g.idle == g.records
}

// delayed copies an entry that waits or is in flight. The ending lock is held, so
// that its exchange is not dropped in the log, before the copy, and in the index
// after it.
func (c *cleaner) delayed(rec []byte, from Ref) {
	v, x := &c.view, c.s.index
	if !parseMessage(rec, v) {
		return
	}
	x.ending.Lock()
	defer x.ending.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for c.err == nil {
		f := c.seg.fresh
		if f == nil {
			return
		}
		e := f.get(v.Key.Seq)
		if e.state == entryGone || f.ref(&e) != from {
			return
		}
		key := Key{e.due, v.Key.Seq}
		copied, err := appendDelayedCopy(nil, v, key)
		if err != nil {
			c.err = err
			return
		}
		if e.state == entryFlies {
			if err = c.relocateFlying(f, key, copied); err == errAgain {
				continue
			}
			c.err = err
			return
		}
		var g *segment
		var to Ref
		err = c.s.placeLocked(copied, forCleaner, func(LSN) { g, to = c.copiedLocked(copied) })
		if err == errAgain {
			continue
		}
		if err != nil {
			c.err = err
			return
		}
		x.moves++
		f.leave(key.Seq, e)
		f.trim()
		x.bytes -= int64(e.length)
		x.fixLocked(&f.source)
		x.insertLocked(g, key, e.exchange, to)
		if v.KeyHash != 0 {
			g.fresh.keys.add(v.KeyHash, key.Seq)
		}
		c.adjustLocked(e.exchange, e.length, to.Len)
		g.pins.Done()
		return
	}
}

// copiedLocked returns where the record is that was placed just now, with a pin.
func (c *cleaner) copiedLocked(rec []byte) (*segment, Ref) {
	l := c.log
	g := l.active()
	n := le.Uint32(rec)
	g.live.Add(int64(n))
	g.pins.Add(1)
	l.stats.Copied++
	if rec[13]&flagLarge != 0 {
		l.bodies.named(recordKey(rec).Seq, g.id)
	}
	return g, Ref{File: g.id, Off: uint32((g.end - int64(len(rec))) / 8), Len: n}
}

// adjustLocked corrects the counters for a copy of another length.
func (c *cleaner) adjustLocked(exchange, was, is uint32) {
	x := c.s.index
	if is == was {
		return
	}
	x.countLocked(exchange, 0, 0)
	d := uint64(is) - uint64(was)
	x.last.Bytes += d
	x.total.Bytes += d
}

// relocateFlying copies an entry in flight.
func (c *cleaner) relocateFlying(f *fresh, key Key, copied []byte) error {
	x := c.s.index
	i := slices.IndexFunc(x.inFlight(), func(fl flight) bool { return fl.key == key })
	invariant(i >= 0, "what flies is in flight")
	fl := &x.flying[x.landed+i]
	var g *segment
	var to Ref
	if err := c.s.placeLocked(copied, forCleaner, func(LSN) { g, to = c.copiedLocked(copied) }); err != nil {
		return err
	}
	defer g.pins.Done()
	f.land(key.Seq)
	t := x.freshLocked(g)
	t.place(key.Seq, entry{due: key.Due, off: to.Off, length: to.Len, exchange: fl.exchange, state: entryFlies})
	t.flying++
	if !fl.dropped {
		c.adjustLocked(fl.exchange, fl.ref.Len, to.Len)
	}
	fl.ref, fl.from = to, &t.source
	return nil
}

// movedOut copies messages out of runs into the log that a move record put into
// queues: it is the only one to know.
func (c *cleaner) movedOut(rec []byte) {
	if !c.runsHold {
		return
	}
	r := reader{b: rec[recordHeaderBytes:]}
	var coder moveCoder
	m := &c.move
	for len(r.b) > 0 && c.err == nil && coder.parse(&r, m) {
		if !m.fromRun || len(m.Targets) == 0 {
			continue
		}
		c.held = c.held[:0]
		for _, t := range m.Targets {
			if c.ask.Holds(t.Queue, t.Pos) {
				c.held = append(c.held, t)
			}
		}
		g := c.log.segment(m.Ref.File)
		if len(c.held) == 0 || g == nil {
			continue
		}
		err := c.log.read(m.Ref, c.view.Buf, &c.view)
		if IsCorruption(err) {
			c.s.noteDamage(g.name, int64(m.Ref.Off)*8, int64(m.Ref.Len))
			continue
		}
		if err != nil {
			c.err = err
			return
		}
		c.view.Arrived, c.view.TTL, c.view.Persistent = m.Arrived, m.TTL, m.Persistent
		// The hold in the run is the owner's to drop: here it cannot be told whether who
		// settles the message meanwhile drops that or the copy's. See heldLocked.
		c.copyReady(&c.view.Message, m.Ref)
	}
}

// logStates logs the state of every run again whose last record of it is in the
// segment that goes. A record of it stands for all changes before.
func (c *cleaner) logStates() error {
	l := c.log
	l.mu.Lock()
	files := slices.Clone(l.files)
	l.mu.Unlock()
	for _, r := range files {
		if err := c.logState(r); err != nil {
			return err
		}
	}
	return nil
}

func (c *cleaner) logState(r *run) error {
	x, l := c.s.index, c.log
	x.ending.Lock() // so that no exchange is dropped in the log but not yet in the state
	defer x.ending.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		l.mu.Lock()
		needed := r.stateIn == c.seg.id
		var rec []byte
		if needed {
			rec = appendRecord(nil, kindRun, 0, func(b []byte) []byte { return r.state.append(b, r.id) })
			buf, _, err := l.tryReserveLocked(int64(len(rec)), 1, forCleaner)
			if err == nil {
				copy(buf, rec)
				l.keepStateLocked(r)
			}
			if err != errNoRoom {
				l.mu.Unlock()
				return err
			}
		}
		l.mu.Unlock()
		if !needed {
			return nil
		}
		x.mu.Unlock()
		err := l.awaitRoom(int64(len(rec)), forCleaner)
		x.mu.Lock()
		if err != nil {
			return err
		}
	}
}
