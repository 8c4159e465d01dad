package store

// nearBytes is how much is read at once where a record is asked for that is not in
// memory: a few dozen ordinary ones, for little more than the price of the call.
const nearBytes = 16 << 10

// readNear fills rec with what is at off in a file of the log or in a run, and keeps
// what follows: queues hand out their messages in the order in which they were
// written, so the next one asked for is mostly near. Whoever asks verifies.
func (l *log) readNear(g *segment, rec []byte, off int64) error {
	if len(rec) > nearBytes/4 {
		_, err := g.file.ReadAt(rec, off)
		return err
	}
	p := &l.near
	slot := p.slot(g.id, 0)
	if m := slot.acquire(p); m != nil {
		ok := m.covers(g.id, uint32(off/8), len(rec))
		if ok {
			copy(rec, m.buf[off-int64(m.off)*8:])
		}
		p.release(m)
		if ok {
			return nil
		}
	}
	m := p.get()
	defer p.release(m)
	m.run, m.off, m.buf = g.id, uint32(off/8), sized(m.buf, nearBytes)
	n, _ := g.file.ReadAt(m.buf, off)
	m.buf = m.buf[:n]
	if n < len(rec) { // the end of the file, or a bad place: perhaps behind the record
		_, err := g.file.ReadAt(rec, off)
		return err
	}
	copy(rec, m.buf)
	slot.set(p, m)
	return nil
}
