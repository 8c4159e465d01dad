package store

import (
	"sync"
	"sync/atomic"
)

// image is a block of a run in memory. It is shared, and used again when nobody
// has it any more; while anybody has it, it does not change.
type image struct {
	refs    atomic.Int32
	run     uint32
	number  int
	off     uint32 // in units of 8 bytes
	buf     []byte
	records []found
}

// maxImage is the largest buffer that is kept for reuse: a block with one huge
// record is no block like others.
const maxImage = 1 << 20

// images has the memory of images that nobody has, and the blocks loaded last, so
// that what was popped is read from memory. It needs no lock.
type images struct {
	free   sync.Pool // of *image
	recent [32]imageSlot
}

// get returns an image of arbitrary content, which is the caller's.
func (p *images) get() *image {
	m, ok := p.free.Get().(*image)
	if !ok {
		m = &image{}
	}
	m.refs.Store(1)
	return m
}

// release gives up one reference.
func (p *images) release(m *image) {
	if m != nil && m.refs.Add(-1) == 0 && cap(m.buf) <= maxImage {
		p.free.Put(m)
	}
}

// imageSlot has one reference to an image, or none.
type imageSlot struct{ p atomic.Pointer[image] }

// set replaces what is in the slot. The caller keeps its own reference.
func (s *imageSlot) set(p *images, m *image) {
	if m != nil {
		m.refs.Add(1)
	}
	p.release(s.p.Swap(m))
}

// acquire returns what is in the slot, to be released, or nil.
func (s *imageSlot) acquire(p *images) *image {
	for {
		m := s.p.Load()
		if m == nil {
			return nil
		}
		n := m.refs.Load()
		if n == 0 || !m.refs.CompareAndSwap(n, n+1) {
			continue // replaced meanwhile
		}
		if s.p.Load() == m {
			return m
		}
		p.release(m)
	}
}

func (p *images) slot(run uint32, number int) *imageSlot {
	return &p.recent[(uint(run)*7+uint(number))%uint(len(p.recent))]
}

// note remembers a block that was just loaded.
func (p *images) note(r *run, m *image) {
	r.kept.set(p, m)
	p.slot(r.id, m.number).set(p, m)
}

// copyRecord fills dst with what is at off in a run, if that is in memory.
func (p *images) copyRecord(dst []byte, r *run, off uint32) bool {
	m := r.kept.acquire(p)
	if m == nil || !m.covers(r.id, off, len(dst)) {
		p.release(m)
		m = p.slot(r.id, r.blockOf(off)).acquire(p)
	}
	ok := m != nil && m.covers(r.id, off, len(dst))
	if ok {
		copy(dst, m.buf[int64(off-m.off)*8:])
	}
	p.release(m)
	return ok
}

func (m *image) covers(run, off uint32, n int) bool {
	return m.run == run && off >= m.off && int64(off-m.off)*8+int64(n) <= int64(len(m.buf))
}
