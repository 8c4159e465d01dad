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
// Discard for them; after a crash they are pending again.
func (s *Store) PopDue(now int64, max int, dst []Due) []Due {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for range max {
		d, ok := x.popLocked(now)
		if !ok {
			break
		}
		dst = append(dst, d)
	}
	return dst
}

// Cancel takes a waiting entry out. Against PopDue exactly one of the two wins.
// Cancelled is certain across a crash once the LSN is durable.
func (s *Store) Cancel(key Key) (Outcome, LSN, error) {
	x, l := s.index, s.log
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.table.get(key.Seq)
	switch {
	case e == nil || e.key() != key:
		return NotFound, 0, nil
	case e.inFlight():
		return AlreadyDue, 0, nil
	case x.isDropped(e.exchange):
		return NotFound, 0, nil
	}
	var stack [recordHeaderBytes + 32]byte
	rec := appendKey(stack[:recordHeaderBytes], key)
	putHeader(rec, kindTomb, 0, 0)
	l.mu.Lock()
	buf, _, err := l.reserveLocked(align(int64(len(rec))), 1, forControl)
	if err != nil {
		l.mu.Unlock()
		return NotFound, 0, err
	}
	copy(buf, rec)
	lsn := l.lsn
	l.mu.Unlock()
	s.ended(key, 0)
	x.sweepLocked()
	return Cancelled, lsn, nil
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
