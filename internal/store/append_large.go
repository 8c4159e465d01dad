package store

// Appends of messages whose bodies go to body files. The caller waits for its
// body; nobody else does.

// appendLarge is Append of a large message.
func (s *Store) appendLarge(m *Message, targets []Target, holds int) (Ref, LSN, error) {
	y, err := s.bodies.keep(m)
	if err != nil {
		return Ref{}, 0, err
	}
	defer s.bodies.unpin(y)
	// From here on a drop of a queue ends the claim.
	s.bodies.claim(y, targets)
	small := *m
	small.Body, small.Large = nil, y.ref
	ref, lsn, err := s.append(&small, targets, holds)
	if err != nil {
		s.bodies.forget(targets)
	}
	return ref, lsn, err
}

// appendDelayedLarge is AppendDelayed of a large message.
func (s *Store) appendDelayedLarge(m *Message, due int64) (Key, LSN, error) {
	y, err := s.bodies.keep(m)
	if err != nil {
		return Key{}, 0, err
	}
	defer s.bodies.unpin(y)
	small := *m
	small.Body, small.Large = nil, y.ref
	return s.appendDelayed(&small, due, y)
}

// commitLarge is Commit of a batch with large messages: their bodies are written
// first, and what the batch has instead is their places. After an error the batch
// is as it was.
func (s *Store) commitLarge(b *Batch) (LSN, error) {
	buf, ops := b.buf, b.ops
	b.buf, b.ops = nil, append([]op(nil), ops...)
	lsn, err := b.commitWithBodies(s, buf)
	for i := range b.ops {
		if y := b.ops[i].body; y != nil {
			s.bodies.unpin(y)
			b.ops[i].body = nil
		}
	}
	if err != nil {
		b.buf, b.ops = buf, ops
	}
	return lsn, err
}

func (b *Batch) commitWithBodies(s *Store, buf []byte) (LSN, error) {
	var claimed []Target
	for i := range b.ops {
		o := &b.ops[i]
		rec := buf[o.at : o.at+o.size]
		padded := rec[:align(int64(o.size)):align(int64(o.size))]
		if o.size == 0 { // moves have their record later
			continue
		}
		if o.kind == kindReady || o.kind == kindDelayed {
			targets, err := b.encodeLarge(s, o, rec, padded)
			claimed = append(claimed, targets...)
			if err != nil {
				s.bodies.forget(claimed)
				return 0, err
			}
			continue
		}
		o.at = len(b.buf)
		b.buf = append(b.buf, padded...)
	}
	lsn, err := s.commit(b)
	if err != nil {
		s.bodies.forget(claimed)
	}
	return lsn, err
}

// encodeLarge puts a message into the batch again, with its body in a body file if
// it is large. It returns the positions that claim that now.
func (b *Batch) encodeLarge(s *Store, o *op, rec, padded []byte) (targets []Target, err error) {
	var v messageView
	if !parseMessage(rec, &v) || !s.isLarge(&v.Message) {
		o.at = len(b.buf)
		b.buf = append(b.buf, padded...)
		return nil, nil
	}
	if o.body, err = s.bodies.keep(&v.Message); err != nil {
		return nil, err
	}
	for i := range v.targetCount() {
		targets = append(targets, v.target(i))
	}
	s.bodies.claim(o.body, targets)
	m := v.Message
	m.Body, m.Large = nil, o.body.ref
	size, err := messageSize(o.kind, &m, len(targets), false)
	if err != nil {
		return targets, err
	}
	o.at, o.size = len(b.buf), size
	b.buf = grow(b.buf, int(align(int64(size))))
	putMessage(b.buf[o.at:o.at+size], &m, &messageParts{kind: o.kind, key: o.key, targets: targets})
	return targets, nil
}
