package store

// Get returns the message of an entry that waits or is in flight; ErrNotPending if
// there is none. It may read from the disk.
func (s *Store) Get(key Key) (Record, error) {
	for {
		ref, again, err := s.refOf(key)
		if err != nil {
			return Record{}, err
		}
		if again {
			continue
		}
		rec, err := s.Read(ref, nil)
		if err != ErrMoved {
			return rec, err
		}
	}
}

// refOf finds the record of a pending entry. again says that it moved meanwhile.
func (s *Store) refOf(key Key) (ref Ref, again bool, err error) {
	x := s.index
	c := cancel{key: key}
	if err := c.locate(s); err != nil {
		return Ref{}, false, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !c.decideLocked(x) {
		return Ref{}, true, nil
	}
	switch {
	case c.outcome == NotFound:
		return Ref{}, false, ErrNotPending
	case c.outcome == AlreadyDue:
		for _, fl := range x.inFlight() {
			if fl.key == key {
				ref = fl.ref
			}
		}
		return ref, false, nil
	case c.fresh != nil:
		return c.fresh.ref(&c.entry), false, nil
	}
	return Ref{File: c.run.id, Off: c.found.off, Len: c.found.length}, false, nil
}

// FindKey appends to dst the keys of the entries that wait in an exchange, were
// published with the hash (see Message.KeyHash), and match. Of what comes, goes or
// falls due meanwhile it may tell or not; Cancel and Replace know. It may read from
// the disk: nothing of that for who has no entries with keys, about one page for a
// run that has the key.
//
// match is called without locks, with records that are valid during the call.
func (s *Store) FindKey(exchange uint32, hash uint64, match func(*Record) bool, dst []Key) ([]Key, error) {
	for n := len(dst); ; dst = dst[:n] {
		var err error
		if dst, err = s.findKey(exchange, hash, match, dst); err != ErrMoved {
			return dst, err
		}
	}
}

func (s *Store) findKey(exchange uint32, hash uint64, match func(*Record) bool, dst []Key) ([]Key, error) {
	var v messageView
	fresh, runs := s.index.withKey(exchange, hash)
	for _, d := range fresh {
		err := s.log.read(d.Ref, v.Buf, &v)
		if IsCorruption(err) {
			continue // it will not be released either
		}
		if err != nil {
			return dst, err
		}
		if v.KeyHash == hash && match(&v.Record) {
			dst = append(dst, d.Key)
		}
	}
	for _, p := range runs {
		r := p.run
		keys, err := r.findKey(hash, s.log)
		if err != nil {
			return dst, s.movedOr(r, err)
		}
		for _, k := range keys {
			ref := Ref{File: r.id, Off: k.off, Len: k.length}
			if k.off >= p.to || !s.index.mayWait(r, k.off) {
				continue
			}
			err := s.log.read(ref, v.Buf, &v)
			if IsCorruption(err) {
				continue
			}
			if err != nil {
				return dst, err
			}
			if v.ExchangeID == exchange && v.KeyHash == hash && s.index.mayBe(r, &v, ref) && match(&v.Record) {
				dst = append(dst, v.Record.Key)
			}
		}
	}
	return dst, nil
}

// movedOr is ErrMoved if the run is gone.
func (s *Store) movedOr(r *run, err error) error {
	if r.retired.Load() {
		return ErrMoved
	}
	return err
}

// withKey returns what waits in the log with a hash, and the runs in which more of
// that may wait, as of one instant.
func (x *index) withKey(exchange uint32, hash uint64) (fresh []Due, runs []stretchOfRun) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.fresh {
		f.keys.each(hash, func(seq uint64) {
			e := f.get(seq)
			if e.state == entryWaits && e.exchange == exchange {
				fresh = append(fresh, Due{Key: Key{e.due, seq}, ExchangeID: exchange, Ref: f.ref(&e)})
			}
		})
	}
	for _, r := range x.runs {
		if r.keys.count > 0 && !r.consumed() && r.keys.filter.mayHave(hash) {
			runs = append(runs, stretchOfRun{r, r.next, r.state.stop})
		}
	}
	return fresh, runs
}

// mayWait reports whether a record of a run was not popped.
func (x *index) mayWait(r *run, off uint32) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return off >= r.next
}

// mayBe reports whether a record of a run was not cancelled either. One that was
// merged into another run meanwhile may wait there.
func (x *index) mayBe(r *run, v *messageView, ref Ref) bool {
	block := r.blocks[r.blockOf(ref.Off)]
	x.mu.Lock()
	defer x.mu.Unlock()
	return !r.isSkipped(&found{ordinal: block.ordinal + uint32(v.number), exchange: v.ExchangeID})
}
