package store

import (
	"errors"
	"slices"
)

// NextDue returns the due time of the earliest entry that waits, or a time
// before it if that is on the disk.
func (s *Store) NextDue() (int64, bool) {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.nextDueLocked()
}

// PopDue appends to dst up to max entries due at or before now in ascending
// (due, seq). They are in flight until a committed batch has a Move, Retry or
// Discard for them, in the same order; after a crash they are pending again. It
// may read from the disk.
func (s *Store) PopDue(now int64, max int, dst []Due) []Due {
	x := s.index
	x.popping.Lock()
	defer x.popping.Unlock()
	for {
		var r *run
		if dst, max, r = x.pop(now, max, dst); r == nil {
			return dst
		}
		s.loadNext(r, now)
	}
}

func (x *index) pop(now int64, max int, dst []Due) ([]Due, int, *run) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for max > 0 {
		d, ok, load := x.popLocked(now)
		if !ok {
			return dst, max, load
		}
		dst = append(dst, d)
		max--
	}
	return dst, 0, nil
}

// readRetry is how long after a failed read of a run the next is tried, in
// milliseconds. What else is due is served meanwhile.
const readRetry = 1000

// loadNext loads the block that a run needs next. The popping lock is held, so
// it is still that one afterwards.
func (s *Store) loadNext(r *run, now int64) {
	x, l := s.index, s.log
	x.mu.Lock()
	number := r.number
	x.mu.Unlock()
	m := l.images.get()
	defer l.images.release(m)
	err := r.read(m, number, l, func(off, n int64) { s.noteDamage(r.name, off, n) })
	if err == nil {
		l.images.note(r, m)
	} else {
		l.logger.Error("cannot read delayed messages, trying again", "err", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil {
		r.load(m)
	} else {
		r.head.due = now + readRetry
	}
	x.fixLocked(&r.source)
}

func (s *Store) noteDamage(file string, off, n int64) {
	s.damages.Add(1)
	s.log.logger.Error("damage skipped", "file", file, "offset", off, "bytes", n)
}

// placeLocked logs a group of records, padded already, and calls then with both
// locks held. If there was no room it waits for some with the index unlocked,
// and returns errAgain: what the caller knows may be out of date.
func (s *Store) placeLocked(rec []byte, who priority, then func(LSN)) error {
	x, l := s.index, s.log
	l.mu.Lock()
	buf, _, err := l.tryReserveLocked(int64(len(rec)), countRecords(rec), who)
	if err == nil {
		copy(buf, rec)
		then(l.lsn)
	}
	l.mu.Unlock()
	if err != errNoRoom {
		return err
	}
	x.mu.Unlock()
	err = l.awaitRoom(int64(len(rec)), who)
	x.mu.Lock()
	if err != nil {
		return err
	}
	return errAgain
}

var errAgain = errors.New("the index was unlocked meanwhile")

// stretchOfRun is the part of a run in which entries wait, as of now: before it all
// is popped, behind it another run has what is there.
type stretchOfRun struct {
	run      *run
	from, to uint32
}

// runsLocked returns the runs that may have an entry that waits.
func (x *index) runsLocked(k Key) (list []stretchOfRun) {
	for _, r := range x.runs {
		if !r.consumed() && r.blockFor(k) >= 0 {
			list = append(list, stretchOfRun{r, r.next, r.state.stop})
		}
	}
	return list
}

// findInRun looks for the record with a key, whether it waits or not.
func (s *Store) findInRun(r *run, key Key) (found, bool, error) {
	number := r.blockFor(key)
	p := &s.log.images
	m := r.kept.acquire(p)
	if m == nil || m.number != number {
		p.release(m)
		m = p.get()
		if err := r.read(m, number, s.log, func(int64, int64) {}); err != nil {
			p.release(m)
			return found{}, false, err
		}
	}
	defer p.release(m)
	i, ok := slices.BinarySearchFunc(m.records, key, func(f found, k Key) int { return f.key.compare(k) })
	if !ok {
		return found{}, false, nil
	}
	return m.records[i], true, nil
}

// awaitCalm waits while more waits in full segments of the log than runs were
// written of.
func (s *Store) awaitCalm() error {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.bytes > 3*s.log.o.FreshBytes {
		bytes, refuses := s.fullBytesLocked()
		switch {
		case bytes <= 3*s.log.o.FreshBytes:
			return nil
		case x.stopped != nil:
			return x.stopped
		case refuses:
			return ErrFull
		}
		wake(s.cleaner.kick)
		x.calm.Wait()
	}
	return nil
}

// fullBytesLocked returns the bytes of what waits in full segments, and whether
// new messages are refused.
func (s *Store) fullBytesLocked() (bytes int64, refuses bool) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	bytes = s.index.bytes
	if f := s.log.active().fresh; f != nil {
		bytes -= f.bytes
	}
	return bytes, s.log.refusesLocked()
}

// Pending returns the counters of one exchange incarnation.
func (s *Store) Pending(exchangeID uint32) Pending {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if p := x.pending[exchangeID]; p != nil {
		return Pending{p.Count, p.Bytes + s.bodies.waitingBytes(exchangeID)}
	}
	return Pending{}
}

// PendingTotal returns the counters over all exchanges.
func (s *Store) PendingTotal() Pending {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	return Pending{x.total.Count, x.total.Bytes + s.bodies.allWaitingBytes()}
}
