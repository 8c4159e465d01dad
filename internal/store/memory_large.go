package store

import (
	"fmt"
	"path/filepath"
)

// appendLarge gives a large message a segment of its own. It is copied, and beyond
// the budget written to a scratch file, by its publisher and without the lock, so
// that only its publisher waits for that.
func (m *memory) appendLarge(msg *Message, size, holds int) (Ref, error) {
	need := align(int64(size))
	m.mu.Lock()
	fits := m.resident+need <= m.o.TransientBytes
	if fits {
		m.resident += need
	}
	m.mu.Unlock()
	v := &memoryView{size: need}
	if fits {
		v.buf = make([]byte, need)
		putMessage(v.buf[:size], msg, &messageParts{kind: kindReady})
		le.PutUint32(v.buf[4:], uint32(holds))
	} else if err := m.writeLarge(v, msg, size, holds); err != nil {
		m.o.Logger.Warn("cannot write scratch file", "err", err)
		return Ref{}, ErrFull
	}
	return m.addLarge(v, size, holds)
}

// addLarge makes a view, which is accounted for, the next segment.
func (m *memory) addLarge(v *memoryView, size, holds int) (Ref, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		m.discardLocked(v)
		return Ref{}, ErrClosed
	}
	m.sealLocked() // the numbers of segments ascend
	g := &memorySegment{id: m.nextNumberLocked(), end: int(v.size), sealed: true}
	if holds > 0 {
		g.live = size
	}
	g.view.Store(v)
	m.publishLocked(g, nil)
	m.releaseIfEmptyLocked(g)
	return Ref{File: g.id, Len: uint32(size)}, nil
}

// writeLarge writes the record of a message to a scratch file, its body piece by
// piece from where it is.
func (m *memory) writeLarge(v *memoryView, msg *Message, size, holds int) error {
	m.mu.Lock()
	m.files++
	v.name = fmt.Sprintf("%slarge-%010d", scratchPrefix, m.files)
	m.mu.Unlock()
	f, err := m.fs.Create(filepath.Join(m.dir, v.name), v.size)
	if err != nil {
		return fmt.Errorf("create scratch file: %w", err)
	}
	v.file = f
	v.places = []place{{size: uint32(size), holds: uint32(holds)}}
	head := make([]byte, size-len(msg.Body))
	short := *msg
	short.Body = nil
	putMessage(head, &short, &messageParts{kind: kindReady})
	le.PutUint32(head, uint32(size))
	err = writePieces(f, head, 0)
	if err == nil {
		err = writePieces(f, msg.Body, int64(len(head)))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scratch += v.size
	if err != nil {
		m.discardLocked(v)
		return fmt.Errorf("write scratch file: %w", err)
	}
	return nil
}

func writePieces(f File, b []byte, off int64) error {
	for len(b) > 0 {
		piece := b[:min(bodyPiece, len(b))]
		if n, err := f.WriteAt(piece, off); err != nil || n < len(piece) {
			return orShort(err)
		}
		b, off = b[len(piece):], off+int64(len(piece))
	}
	return nil
}

// removeGone removes scratch files that are not needed any more.
func (m *memory) removeGone() {
	m.mu.Lock()
	gone := m.gone
	m.gone = nil
	m.mu.Unlock()
	for _, v := range gone {
		v.file.Close()
		if err := m.fs.Remove(filepath.Join(m.dir, v.name)); err != nil {
			m.o.Logger.Warn("cannot remove scratch file", "file", v.name, "err", err) // the next start does
		}
	}
}
