package store

// Append logs one durable ready message and returns where it is. holds is how
// many queue entries, durable or not, refer to it. It may block while the disk
// is slower than the publishers, and returns ErrFull while it has no room. A
// large body is written and synced first, so then it waits for the disk.
func (s *Store) Append(m *Message, targets []Target, holds int) (Ref, LSN, error) {
	if s.isLarge(m) {
		return s.appendLarge(m, targets, holds)
	}
	return s.append(m, targets, holds)
}

func (s *Store) append(m *Message, targets []Target, holds int) (Ref, LSN, error) {
	size, err := messageSize(kindReady, m, len(targets), false)
	if err != nil {
		return Ref{}, 0, err
	}
	l := s.log
	l.mu.Lock()
	buf, ref, err := l.reserveLocked(align(int64(size)), 1, forPublisher)
	if err != nil {
		l.mu.Unlock()
		return Ref{}, 0, err
	}
	putMessage(buf[:size], m, &messageParts{kind: kindReady, targets: targets})
	l.active().live.Add(int64(size) * int64(holds))
	lsn := l.lsn
	l.mu.Unlock()
	ref.Len = uint32(size)
	return ref, lsn, nil
}

// AppendDelayed logs a delayed message and makes it pending. Blocking and
// ErrFull as with Append.
func (s *Store) AppendDelayed(m *Message, due int64) (Key, LSN, error) {
	if s.isLarge(m) {
		return s.appendDelayedLarge(m, due)
	}
	return s.appendDelayed(m, due, nil)
}

// appendDelayed appends the record of a message with its large body y, if it has one.
func (s *Store) appendDelayed(m *Message, due int64, y *body) (Key, LSN, error) {
	size, err := messageSize(kindDelayed, m, 0, false)
	if err != nil {
		return Key{}, 0, err
	}
	x, l := s.index, s.log
	if err := s.awaitCalm(); err != nil {
		return Key{}, 0, err
	}
	l.mu.Lock()
	buf, ref, err := l.reserveLocked(align(int64(size)), 1, forPublisher)
	if err != nil {
		l.mu.Unlock()
		return Key{}, 0, err
	}
	key := Key{Due: clampDue(due), Seq: l.nextSeq}
	l.nextSeq++
	putMessage(buf[:size], m, &messageParts{kind: kindDelayed, key: key})
	g := l.active()
	g.live.Add(int64(size))
	g.pins.Add(1)
	if y == nil { // else it is not spent before its body is claimed elsewhere
		g.idle++
	}
	lsn := l.lsn
	l.mu.Unlock()
	ref.Len = uint32(size)
	if y != nil {
		s.bodies.wait(y, key.Seq, m.ExchangeID, g.id)
	}
	x.mu.Lock()
	x.addLocked(g, key, m.ExchangeID, ref)
	if m.KeyHash != 0 {
		g.fresh.keys.add(m.KeyHash, key.Seq)
	}
	x.mu.Unlock()
	g.pins.Done()
	return key, lsn, nil
}

// Settle logs that positions of a durable queue are acknowledged, and drops one
// hold of each ref (refs[i] belongs to positions[i]). It does not fail: after a
// stop it does nothing and the messages come back after the restart.
func (s *Store) Settle(q uint32, positions []uint64, refs []Ref) {
	if len(positions) > 0 {
		logged := s.log.settle(q, positions)
		s.bodies.settled(q, positions[:logged]...)
	}
	s.dropAll(refs)
}

// dropAll is Drop of each; those of one file that follow each other are accounted
// for together.
func (s *Store) dropAll(refs []Ref) {
	for len(refs) > 0 {
		file, n, bytes := refs[0].File, 0, int64(0)
		for n < len(refs) && refs[n].File == file {
			bytes += int64(refs[n].Len)
			n++
		}
		if file&memoryBit == 0 {
			s.log.addLive(file, -bytes)
		} else {
			for _, r := range refs[:n] {
				s.memory.drop(r)
			}
		}
		refs = refs[n:]
	}
}

// settle logs in pieces, so that no record outgrows a segment. It returns how many
// of the first were logged.
func (l *log) settle(q uint32, positions []uint64) (logged int) {
	const piece, perPosition = 256, 2 * 10
	var stack [recordHeaderBytes + 16 + piece*perPosition]byte
	for len(positions) > 0 {
		n := min(len(positions), piece)
		body := appendSettle(stack[:recordHeaderBytes], q, positions[:n])
		putHeader(body, kindSettle, 0, 0)
		l.mu.Lock()
		buf, _, err := l.reserveLocked(align(int64(len(body))), 1, forControl)
		if err == nil {
			copy(buf, body)
			logged += n
		} else {
			l.stats.LostSettles += uint64(n)
		}
		l.mu.Unlock()
		positions = positions[n:]
	}
	return logged
}

// Drop takes one hold from a record without logging anything: for transient
// messages, for entries of non-durable queues, and for every entry that a
// deleted queue still held.
func (s *Store) Drop(ref Ref) {
	if ref.File&memoryBit != 0 {
		s.memory.drop(ref)
		return
	}
	s.log.addLive(ref.File, -int64(ref.Len))
}

// addLive accounts for bytes of holds that came or, if negative, went.
func (l *log) addLive(file uint32, bytes int64) {
	g := l.segs.Load().get(file)
	if g == nil {
		return // moved or cleaned meanwhile; the copy has its own account
	}
	l.addLiveTo(g, bytes)
}

func (l *log) addLiveTo(g *segment, d int64) {
	now := g.live.Add(d)
	if quarter := g.size/4 + 1; d < 0 && (now <= 0 || now/quarter != (now-d)/quarter) {
		wake(l.cleaner.kick)
	}
}
