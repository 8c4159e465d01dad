package store

// Commit logs the batch as one atomic group. b.Refs and b.Keys are valid on
// return; it is not durable yet. On error nothing of it was applied. An empty
// batch has LSN 0. A Retry of a damaged record is a *CorruptError: the entry can
// only be discarded.
func (s *Store) Commit(b *Batch) (LSN, error) {
	if b.err != nil || len(b.ops)+len(b.cancels) == 0 {
		return 0, b.err
	}
	if b.shares || b.largest >= s.log.o.LargeBytes {
		return s.commitLarge(b)
	}
	return s.commit(b)
}

func (s *Store) commit(b *Batch) (LSN, error) {
	plain := len(b.buf)
	defer func() { b.buf = b.buf[:plain] }()
	x := s.index
	if b.adds && b.delayed {
		if err := s.awaitCalm(); err != nil {
			return 0, err
		}
	}
	if b.ends || b.drops {
		x.ending.Lock()
		defer x.ending.Unlock()
	}
	if b.ends {
		if err := b.prepareEnds(s); err != nil {
			return 0, err
		}
	}
	if len(b.cancels) > 0 {
		return b.commitCancels(s)
	}
	lsn, err := b.log(s)
	if err != nil {
		return 0, err
	}
	if b.ends || b.delayed {
		x.mu.Lock()
		defer x.mu.Unlock()
	}
	for i := range b.ops {
		b.applied(s, &b.ops[i])
	}
	return lsn, nil
}

// prepareEnds checks that all entries it ends are in flight, in this order, and
// adds the records that this takes: the move record, and a copy of each that is
// retried. The ending lock is held, so what is in flight stays where it is.
func (b *Batch) prepareEnds(s *Store) error {
	x := s.index
	x.mu.Lock()
	flying := x.inFlight()
	ok := len(b.moves) <= len(flying)
	for i := 0; ok && i < len(b.moves); i++ {
		m, fl := &b.moves[i], &flying[i]
		ok = m.Key == fl.key
		m.Ref, m.exchange, m.fromRun = fl.ref, fl.exchange, fl.from.run != nil
		m.dropped = fl.dropped
		m.body, m.large = s.bodies.of(m.Key.Seq), BodyRef{}
		if m.body != nil {
			m.large = m.body.ref
		}
		m.from = fl.from.holder()
	}
	x.mu.Unlock()
	if !ok {
		return ErrUnknownKey
	}
	b.buf = appendRecord(b.buf, kindMove, 0, func(p []byte) []byte {
		var c moveCoder
		for i := range b.moves {
			p = c.append(p, &b.moves[i], b.moves[i].Ref)
		}
		return p
	})
	// Behind it, so that recovery does not take the copy for what ends.
	for i := range b.ops {
		if o := &b.ops[i]; o.kind == kindRetry {
			if err := b.copyRecord(s, o, &b.moves[o.move]); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyRecord adds the record of an entry that is retried, under its new key. One
// of a dropped exchange just ends.
func (b *Batch) copyRecord(s *Store, o *op, m *Move) error {
	if m.dropped {
		o.kind = kindPad
		m.retried = false
		return nil
	}
	v := &b.view
	if err := s.log.read(m.Ref, v.Buf, v); err != nil {
		return err
	}
	o.at, o.id, o.hash = len(b.buf), m.exchange, v.KeyHash
	buf, err := appendDelayedCopy(b.buf, v, o.key)
	if err != nil {
		return err
	}
	b.buf = buf
	o.size = int(le.Uint32(b.buf[o.at:]))
	return nil
}

func (b *Batch) priority() priority {
	if b.adds {
		return forPublisher
	}
	return forControl
}

// log puts the records in place, and does what must happen at that instant. A batch
// that cancels has the index locked and must not wait: then it may be errNoRoom.
func (b *Batch) log(s *Store) (LSN, error) {
	if len(b.buf) > maxRecordBytes {
		return 0, ErrTooLarge
	}
	l := s.log
	reserve := l.reserveLocked
	if len(b.cancels) > 0 {
		reserve = l.tryReserveLocked
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	buf, ref, err := reserve(int64(len(b.buf)), countRecords(b.buf), b.priority())
	if err != nil {
		return 0, err
	}
	copy(buf, b.buf)
	linkGroup(buf)
	g := l.active()
	for i := range b.ops {
		b.logged(l, g, buf, ref, &b.ops[i])
	}
	for rest := b.moves; len(rest) > 0; {
		rest = rest[l.movedLocked(rest):]
	}
	for i := range b.cancels {
		b.cancels[i].logged()
	}
	return l.lsn, nil
}

func countRecords(buf []byte) (n int) {
	for len(buf) > 0 {
		buf = buf[align(int64(le.Uint32(buf))):]
		n++
	}
	return n
}

// linkGroup marks the records as belonging together, so that none of them is
// served alone if the frame is damaged.
func linkGroup(buf []byte) {
	flags := byte(0)
	for len(buf) > 0 {
		size := align(int64(le.Uint32(buf)))
		if int(size) < len(buf) {
			buf[13] |= flags | flagMore
		} else {
			buf[13] |= flags
		}
		flags = flagCont
		buf = buf[size:]
	}
}

// logged does what must happen under the log lock for one operation whose
// record is in place.
func (b *Batch) logged(l *log, g *segment, buf []byte, base Ref, o *op) {
	ref := Ref{File: base.File, Off: base.Off + uint32(o.at/8), Len: uint32(o.size)}
	switch o.kind {
	case kindReady:
		b.Refs[o.index] = ref
		g.live.Add(int64(o.size) * int64(o.holds))
	case kindDelayed:
		o.key.Seq = l.nextSeq
		l.nextSeq++
		le.PutUint64(buf[o.at+delayedSeqOffset:], o.key.Seq)
		b.Keys[o.index] = o.key
		if o.body != nil {
			l.bodies.wait(o.body, o.key.Seq, o.id, g.id)
		} else {
			g.idle++
		}
		b.pin(g, o, ref)
	case kindRetry:
		b.pin(g, o, ref)
	case kindPut:
		l.defineLocked(o.name, buf[o.at:o.at+o.size], ref)
	case kindDelete:
		l.undefineLocked(o.name)
	}
}

func (b *Batch) pin(g *segment, o *op, ref Ref) {
	o.ref, o.seg = ref, g
	g.live.Add(int64(o.size))
	g.pins.Add(1)
}

// movedLocked notes in which queues the first of these delayed records are now, or
// how far their run is consumed. It returns how many it took: those of one run and
// exchange are accounted for together.
func (l *log) movedLocked(moves []Move) int {
	m := &moves[0]
	g := m.from
	if g.run == nil {
		l.claimMoved(m)
		for _, t := range m.Targets {
			g.moved = append(g.moved, movedEntry{off: m.Ref.Off, queue: t.Queue, pos: t.Pos, arrived: m.Arrived, life: lifeOf(m.TTL, m.Persistent)})
		}
		if g.movedMany() {
			wake(l.cleaner.kick)
		}
		return 1
	}
	n, taken := 0, Pending{}
	for ; n < len(moves) && moves[n].from == g && moves[n].exchange == m.exchange; n++ {
		l.claimMoved(&moves[n])
		g.run.state.done = max(g.run.state.done, afterRecord(moves[n].Ref.Off, moves[n].Ref.Len))
		taken.Count++
		taken.Bytes += uint64(moves[n].Ref.Len)
	}
	g.run.lastMove = l.lsn
	g.run.state.take(m.exchange, taken)
	return n
}

func (l *log) claimMoved(m *Move) {
	if m.body != nil {
		l.bodies.claim(m.body, m.Targets)
	}
}

// applied does what must happen under the index lock, or no lock, afterwards.
// Moves are applied in the order of what is in flight.
func (b *Batch) applied(s *Store, o *op) {
	x := s.index
	switch o.kind {
	case kindDelayed, kindRetry:
		x.addLocked(o.seg, o.key, o.id, o.ref)
		if o.hash != 0 {
			o.seg.fresh.keys.add(o.hash, o.key.Seq)
		}
		o.seg.pins.Done()
	case kindMove:
		m := &b.moves[o.move]
		if o.index >= 0 {
			b.Refs[o.index] = m.Ref
		}
		if m.body != nil && !m.retried {
			s.bodies.ended(m.Key.Seq)
		}
		if m.Holds != 1 {
			s.log.addLiveTo(m.from, int64(m.Holds-1)*int64(m.Ref.Len))
		}
		x.landLocked()
	case kindDropExchange:
		s.dropExchangeLocked(o.id)
	case kindSettle:
		s.Drop(o.ref)
		s.bodies.settled(o.id, o.key.Seq)
	case kindDropQueue:
		s.bodies.dropQueue(o.id)
	}
}

func (s *Store) dropExchangeLocked(exchange uint32) {
	x, l := s.index, s.log
	x.dropLocked(exchange, func(r Ref) { l.addLive(r.File, -int64(r.Len)) })
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.files {
		r.live.Add(-int64(r.state.left[exchange].Bytes))
		r.drop(exchange)
	}
	flies := map[uint64]bool{}
	for _, fl := range x.inFlight() { // those still have their hold
		flies[fl.key.Seq] = true
		if r := fl.from.run; r != nil && fl.exchange == exchange {
			r.live.Add(int64(fl.ref.Len))
		}
	}
	s.bodies.dropExchange(exchange, flies)
}

const delayedSeqOffset = 40
