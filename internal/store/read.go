package store

import "fmt"

// Read returns the record at ref: a view of a resident segment, which the
// garbage collector keeps alive as long as it is used, or else read with a
// single call into buf (replaced by a larger one if too small; see Record.Buf)
// and verified. ErrMoved means that the cleaner moved the record: look the
// reference up again in the queue and retry. Damage is a *CorruptError.
func (s *Store) Read(ref Ref, buf []byte) (Record, error) {
	if ref.File&memoryBit != 0 {
		return s.memory.read(ref, buf)
	}
	var v messageView
	err := s.log.read(ref, buf, &v)
	if err == nil && v.Large.isSet() {
		err = s.readBody(&v)
	}
	return v.Record, err
}

// ReadHead is Read without the body of a message that has that in a body file:
// then Body is nil and Large says where it is.
func (s *Store) ReadHead(ref Ref, buf []byte) (Record, error) {
	if ref.File&memoryBit != 0 {
		return s.memory.read(ref, buf)
	}
	var v messageView
	err := s.log.read(ref, buf, &v)
	return v.Record, err
}

// readBody reads the body of a large message behind its record, if that was read
// into the buffer, too.
func (s *Store) readBody(v *messageView) error {
	at := 0
	if len(v.Buf) > 0 && &v.Buf[0] == &v.rec[0] {
		at = len(v.rec)
	}
	buf, err := s.bodies.read(v.Large, v.Buf, at)
	if err != nil {
		return err
	}
	if at > 0 {
		parseMessage(buf[:at:at], v) // it may be elsewhere now
	}
	v.Buf, v.Body = buf, buf[at:]
	return nil
}

func (l *log) read(ref Ref, buf []byte, v *messageView) error {
	v.Buf = buf
	g := l.segment(ref.File)
	if g == nil {
		return ErrMoved
	}
	off, n := int64(ref.Off)*8, int64(ref.Len)
	if off+n > g.size {
		return l.damaged(g, off, "reference beyond the end of the file")
	}
	if p := g.buf.Load(); p != nil {
		rec, ok := recordAt((*p)[off : off+n])
		if !ok || len(rec) != int(n) || !parseMessage(rec, v) {
			return l.damaged(g, off, "no message here")
		}
		return nil
	}
	rec := sized(buf, int(n))
	v.Buf = rec
	if g.run != nil && l.images.copyRecord(rec, g.run, ref.Off) {
		return l.check(g, rec, off, v)
	}
	if err := l.readNear(g, rec, off); err != nil {
		if g.retired.Load() {
			return ErrMoved
		}
		return fmt.Errorf("read record: %w", err)
	}
	return l.check(g, rec, off, v)
}

// check verifies and decodes a record that came from the disk.
func (l *log) check(g *segment, rec []byte, off int64, v *messageView) error {
	if got, ok := recordAt(rec); !ok || len(got) != len(rec) || !recordValid(rec, g.salt, l.table) {
		return l.damaged(g, off, "checksum mismatch")
	}
	if !parseMessage(rec, v) {
		return l.damaged(g, off, "no message here")
	}
	return nil
}

// damaged tells damage from a file that was recycled during the read.
func (l *log) damaged(g *segment, off int64, reason string) error {
	if g.retired.Load() {
		return ErrMoved
	}
	return &CorruptError{File: g.name, Offset: off, Reason: reason}
}

func sized(buf []byte, n int) []byte {
	if cap(buf) < n {
		return make([]byte, n, n+n/4)
	}
	return buf[:n]
}
