package store

// cancel is the wish to take out an entry that waits.
type cancel struct {
	key     Key
	outcome Outcome
	again   bool // the same is in the batch before

	// Where locate found it: in the log, in a run, or nowhere.
	isFresh bool
	run     *run
	found   found

	// Where it waits, if the outcome is Cancelled: run, or this.
	fresh *fresh
	entry entry
}

// Cancel takes a waiting entry out. Against PopDue exactly one of the two wins.
// The answer is certain across a crash once the LSN is durable. It may read from
// the disk.
func (s *Store) Cancel(key Key) (Outcome, LSN, error) {
	var b Batch
	b.Cancel(key)
	lsn, err := s.Commit(&b)
	if err != nil {
		return NotFound, 0, err
	}
	return b.Outcomes[0], lsn, nil
}

// Replace puts a message into the place of a waiting entry, in one atomic group.
// It answers as Cancel does; unless that is Cancelled nothing is appended.
func (s *Store) Replace(key Key, m *Message, due int64) (Outcome, Key, LSN, error) {
	b := Batch{strict: true}
	b.Cancel(key)
	b.AppendDelayed(m, due)
	lsn, err := s.Commit(&b)
	if err != nil {
		return NotFound, Key{}, 0, err
	}
	return b.Outcomes[0], b.Keys[0], lsn, nil
}

// commitCancels commits a batch that cancels entries. Blocks of runs are read before
// the index is locked; from then on nothing can be popped until the batch is in the
// log, so each entry is either cancelled or handed over.
func (b *Batch) commitCancels(s *Store) (LSN, error) {
	b.noteTwice()
	x, plain := s.index, len(b.buf)
	for {
		for i := range b.cancels {
			if err := b.cancels[i].locate(s); err != nil {
				return 0, err
			}
		}
		x.mu.Lock()
		lsn, err := b.cancelLocked(s)
		x.mu.Unlock()
		if err != errAgain {
			return lsn, err
		}
		b.buf = b.buf[:plain]
	}
}

// noteTwice finds keys that are in the batch more than once.
func (b *Batch) noteTwice() {
	if len(b.cancels) < 2 {
		return
	}
	seen := make(map[Key]bool, len(b.cancels))
	for i := range b.cancels {
		c := &b.cancels[i]
		c.again = seen[c.key]
		seen[c.key] = true
	}
}

// cancelLocked logs the batch. errAgain means that it has to be tried again.
func (b *Batch) cancelLocked(s *Store) (LSN, error) {
	x, l := s.index, s.log
	b.Outcomes = b.Outcomes[:0]
	whole := true
	for i := range b.cancels {
		c := &b.cancels[i]
		if !c.decideLocked(x) {
			return 0, errAgain
		}
		b.Outcomes = append(b.Outcomes, c.outcome)
		whole = whole && c.outcome == Cancelled
		b.buf = c.record(s, b.buf)
	}
	if len(b.buf) == 0 || b.strict && !whole {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.lastLocked(), l.err
	}
	lsn, err := b.log(s)
	if err == errNoRoom {
		x.mu.Unlock()
		err = l.awaitRoom(int64(len(b.buf)), b.priority())
		x.mu.Lock()
		if err == nil {
			err = errAgain // what was decided may be out of date
		}
	}
	if err != nil {
		return 0, err
	}
	for i := range b.cancels {
		b.cancels[i].applyLocked(s)
	}
	for i := range b.ops {
		b.applied(s, &b.ops[i])
	}
	return lsn, nil
}

// locate finds the entry. It may read from the disk.
func (c *cancel) locate(s *Store) error {
	for {
		again, err := c.tryLocate(s)
		if !again {
			return err
		}
	}
}

// tryLocate is locate, unless a run went meanwhile.
func (c *cancel) tryLocate(s *Store) (again bool, err error) {
	x := s.index
	c.run = nil
	x.mu.Lock()
	f, _ := x.findFresh(c.key.Seq)
	c.isFresh = f != nil
	var runs []stretchOfRun
	if !c.isFresh {
		runs = x.runsLocked(c.key)
	}
	x.mu.Unlock()
	for _, p := range runs {
		found, ok, err := s.findInRun(p.run, c.key)
		if err != nil {
			return p.run.retired.Load(), err
		}
		if ok && found.off >= p.from && found.off < p.to {
			c.run, c.found = p.run, found
			break
		}
	}
	return false, nil
}

// decideLocked sets the outcome. It returns false if the entry is not where it was
// located any more.
func (c *cancel) decideLocked(x *index) bool {
	c.outcome, c.fresh = NotFound, nil
	if c.again {
		return true
	}
	f, e := x.findFresh(c.key.Seq)
	switch {
	case f != nil && e.due != c.key.Due:
	case f != nil && e.state == entryFlies, f == nil && x.isFlying(c.key):
		c.outcome = AlreadyDue
	case f != nil:
		c.outcome, c.fresh, c.entry = Cancelled, f, e
	case c.isFresh:
		return false
	case c.run == nil || c.found.off < c.run.next:
	case c.found.off >= c.run.state.stop:
		return false // merged into another
	case !c.run.isSkipped(&c.found):
		c.outcome = Cancelled
	}
	return true
}

// end is what is logged of an entry in a run.
func (c *cancel) end() canceledInRun {
	return canceledInRun{
		run: c.run.id, ordinal: c.found.ordinal, exchange: c.found.exchange, length: c.found.length,
	}
}

// record appends the record that says so, if the entry is cancelled.
func (c *cancel) record(s *Store, b []byte) []byte {
	if c.outcome != Cancelled {
		return b
	}
	if c.fresh == nil {
		end := c.end()
		b = appendRecord(b, kindEnd, 0, end.append)
	}
	if c.fresh != nil || s.bodies.of(c.key.Seq) != nil { // then it ends the claim
		b = appendRecord(b, kindTomb, 0, func(b []byte) []byte { return appendKey(b, c.key) })
	}
	return b
}

// logged does what must happen under the log lock.
func (c *cancel) logged() {
	if c.outcome == Cancelled && c.fresh == nil {
		end := c.end()
		c.run.state.cancel(&end)
	}
}

// applyLocked does what must happen under the index lock.
func (c *cancel) applyLocked(s *Store) {
	x := s.index
	if c.outcome != Cancelled {
		return
	}
	s.bodies.ended(c.key.Seq)
	if f := c.fresh; f != nil {
		f.cancel(c.key, c.entry)
		x.bytes -= int64(c.entry.length)
		x.fixLocked(&f.source)
		x.countLocked(c.entry.exchange, -1, c.entry.length)
		s.log.addLive(f.seg.id, -int64(c.entry.length))
		return
	}
	r := c.run
	if r.merging {
		r.canceled = append(r.canceled, c.key)
	}
	if r.isLoaded() {
		r.settle()
		x.fixLocked(&r.source)
	}
	x.countLocked(c.found.exchange, -1, c.found.length)
	s.log.addLiveTo(r.segment, -int64(c.found.length))
}
