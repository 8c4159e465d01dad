package store

// NextDue returns the due time of the earliest entry that waits.
func (s *Store) NextDue() (int64, bool) {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.nextDueLocked()
}

// PopDue appends to dst up to max entries due at or before now in ascending
// (due, seq). They are in flight until a committed batch has a Move, Retry or
// Discard for them; after a crash they are pending again. It may read from the
// disk.
func (s *Store) PopDue(now int64, max int, dst []Due) []Due {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = now
	for n := 0; n < max; {
		d, ok := x.popLocked(now)
		switch {
		case ok:
			dst = append(dst, d)
			n++
		case x.bound.due > now:
			return dst
		default:
			x.mu.Unlock()
			s.runs.load(now)
			x.mu.Lock()
		}
	}
	return dst
}

// Cancel takes a waiting entry out. Against PopDue exactly one of the two wins.
// Cancelled is certain across a crash once the LSN is durable. It may read from
// the disk.
func (s *Store) Cancel(key Key) (Outcome, LSN, error) {
	x := s.index
	x.mu.Lock()
	e := x.table.get(key.Seq)
	if e != nil || !x.mayHaveLocked(key) {
		defer x.mu.Unlock()
		return s.cancelLocked(e, key)
	}
	x.mu.Unlock()
	return s.runs.cancel(key)
}

// cancelLocked cancels an entry of the index; e may be nil.
func (s *Store) cancelLocked(e *entry, key Key) (Outcome, LSN, error) {
	x := s.index
	switch {
	case e == nil || e.key() != key:
		return NotFound, 0, nil
	case e.inFlight():
		return AlreadyDue, 0, nil
	case x.isDropped(e.exchange):
		return NotFound, 0, nil
	}
	lsn, err := s.logTomb(key, e.ref(), e.exchange)
	if err != nil {
		return NotFound, 0, err
	}
	s.ended(key, 0)
	x.sweepLocked()
	return Cancelled, lsn, nil
}

// logTomb logs that an entry was cancelled, and where if it is in a run. The
// index lock is held.
func (s *Store) logTomb(key Key, ref Ref, exchange uint32) (LSN, error) {
	var stack [2*recordHeaderBytes + 96]byte
	n := 1
	rec := appendRecord(stack[:0], kindTomb, 0, func(b []byte) []byte { return appendKey(b, key) })
	l := s.log
	if l.run(ref.File) != nil {
		n = 2
		rec = appendRecord(rec, kindEnd, 0, func(b []byte) []byte { return new(endCoder).append(b, ref, exchange) })
	}
	linkGroup(rec)
	l.mu.Lock()
	defer l.mu.Unlock()
	buf, _, err := l.reserveLocked(int64(len(rec)), n, forControl)
	if err != nil {
		return 0, err
	}
	copy(buf, rec)
	return l.lsn, nil
}

// Pending returns the counters of one exchange incarnation.
func (s *Store) Pending(exchangeID uint32) Pending {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if p := x.pending[exchangeID]; p != nil {
		return *p
	}
	return Pending{}
}

// PendingTotal returns the counters over all exchanges.
func (s *Store) PendingTotal() Pending {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.total
}
