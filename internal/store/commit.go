package store

// Commit logs the batch as one atomic group. b.Refs and b.Keys are valid on
// return; it is not durable yet. On error nothing of it was applied. An empty
// batch has LSN 0.
func (s *Store) Commit(b *Batch) (LSN, error) {
	if b.err != nil || len(b.ops) == 0 {
		return 0, b.err
	}
	x, l := s.index, s.log
	if b.delayed {
		x.mu.Lock()
		defer x.mu.Unlock()
		if err := b.checkFlying(x); err != nil {
			return 0, err
		}
	}
	// The move record needs the entries' places as they are under the index lock.
	plain := len(b.buf)
	defer func() { b.buf = b.buf[:plain] }()
	b.encodeMoves(x)
	ends := b.encodeEnds(x)
	if len(b.buf) > maxRecordBytes {
		return 0, ErrTooLarge
	}
	who := forControl
	if b.adds {
		who = forPublisher
	}
	l.mu.Lock()
	buf, ref, err := l.reserveLocked(int64(len(b.buf)), b.records()+ends, who)
	if err != nil {
		l.mu.Unlock()
		return 0, err
	}
	copy(buf, b.buf)
	linkGroup(buf)
	for i := range b.ops {
		b.logged(l, buf, ref, &b.ops[i])
	}
	for i := range b.moves {
		l.movedLocked(&b.moves[i])
	}
	lsn := l.lsn
	l.mu.Unlock()

	for i := range b.ops {
		b.applied(s, &b.ops[i])
	}
	return lsn, nil
}

// checkFlying refuses the batch unless all entries it ends are in flight.
func (b *Batch) checkFlying(x *index) error {
	for i := range b.ops {
		o := &b.ops[i]
		switch o.kind {
		case kindMove, kindRetry, kindTomb:
			e := x.table.get(o.key.Seq)
			if e == nil || !e.inFlight() || e.key() != o.key {
				return ErrUnknownKey
			}
			o.ref = e.ref()
		}
	}
	return nil
}

func (b *Batch) encodeMoves(x *index) {
	if len(b.moves) == 0 {
		return
	}
	b.buf = appendRecord(b.buf, kindMove, 0, func(p []byte) []byte {
		var c moveCoder
		for i := range b.moves {
			m := &b.moves[i]
			m.Ref = x.table.get(m.Key.Seq).ref()
			p = c.append(p, m, m.Ref)
		}
		return p
	})
}

// encodeEnds adds what ends in runs, if anything does, and where retried records
// of runs are. It returns the number of records added.
func (b *Batch) encodeEnds(x *index) int {
	if !b.delayed || len(x.runs) == 0 {
		return 0
	}
	b.ends = b.ends[:0]
	var c endCoder
	retries := 0
	for i := range b.ops {
		o := &b.ops[i]
		if o.kind != kindMove && o.kind != kindRetry && o.kind != kindTomb {
			continue
		}
		e := x.table.get(o.key.Seq)
		if x.log.run(e.file) == nil {
			continue
		}
		b.ends = c.append(b.ends, e.ref(), e.exchange)
		if o.kind == kindRetry && !x.isDropped(e.exchange) {
			// Once more, with the place of the record; recovery takes the last.
			b.buf = appendRecord(b.buf, kindRetry, 0, func(p []byte) []byte {
				return appendRetryPlace(appendKey(appendKey(p, o.key), b.Keys[o.index]), e.ref(), e.exchange)
			})
			retries++
		}
	}
	if len(b.ends) == 0 {
		return 0
	}
	b.buf = appendRecord(b.buf, kindEnd, 0, func(p []byte) []byte { return append(p, b.ends...) })
	return retries + 1
}

func (b *Batch) records() int {
	n := len(b.ops) - len(b.moves)
	if len(b.moves) > 0 {
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
func (b *Batch) logged(l *log, buf []byte, base Ref, o *op) {
	ref := Ref{File: base.File, Off: base.Off + uint32(o.at/8), Len: uint32(o.size)}
	switch o.kind {
	case kindReady:
		b.Refs[o.index] = ref
		l.active().live.Add(int64(o.size) * int64(o.holds))
	case kindDelayed:
		o.key.Seq = l.nextSeq
		l.nextSeq++
		le.PutUint64(buf[o.at+delayedSeqOffset:], o.key.Seq)
		b.Keys[o.index] = o.key
		o.ref = ref
		l.active().live.Add(int64(o.size))
	case kindPut:
		l.defineLocked(o.name, buf[o.at:o.at+o.size], ref)
	case kindDelete:
		l.undefineLocked(o.name)
	}
}

// movedLocked notes in which queues a delayed record is now.
func (l *log) movedLocked(m *Move) {
	g := l.segment(m.Ref.File)
	if g == nil {
		return
	}
	for _, t := range m.Targets {
		g.moved = append(g.moved, movedEntry{off: m.Ref.Off, queue: t.Queue, pos: t.Pos, arrived: m.Arrived})
	}
	if g.movedMany() {
		wake(l.cleaner.kick)
	}
}

// applied does what must happen under the index lock, or no lock, afterwards.
func (b *Batch) applied(s *Store, o *op) {
	x := s.index
	switch o.kind {
	case kindDelayed:
		x.addLocked(o.key, o.id, o.ref)
	case kindRetry:
		if e := x.table.get(o.key.Seq); e != nil && e.inFlight() {
			x.retryLocked(e, b.Keys[o.index].Due)
		}
	case kindTomb:
		s.ended(o.key, 0)
	case kindMove:
		m := &b.moves[o.move]
		b.Refs[o.index] = m.Ref
		s.ended(o.key, m.Holds)
	case kindDropExchange:
		x.dropLocked(o.id)
	case kindSettle:
		s.Drop(o.ref)
	}
}

// ended removes an entry whose record now has holds holds instead of one.
func (s *Store) ended(k Key, holds int) {
	e := s.index.table.get(k.Seq)
	if e == nil {
		return // named twice in one batch
	}
	if holds != 1 {
		s.log.addLive(e.ref(), holds-1)
	}
	s.index.removeLocked(*e)
}

const delayedSeqOffset = 40
