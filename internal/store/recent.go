package store

import "sync/atomic"

// recent keeps the blocks of runs that were loaded last, so that what was popped
// is read from memory. It needs no lock.
type recent struct {
	slots [32]atomic.Pointer[recentImage]
}

type recentImage struct {
	run uint32
	*image
}

func (c *recent) slot(run uint32, number int) *atomic.Pointer[recentImage] {
	return &c.slots[(uint(run)*7+uint(number))%uint(len(c.slots))]
}

func (c *recent) put(run uint32, m *image) {
	c.slot(run, m.number).Store(&recentImage{run, m})
}

// get returns a block, or nil.
func (c *recent) get(run uint32, number int) *image {
	if m := c.slot(run, number).Load(); m != nil && m.run == run && m.number == number {
		return m.image
	}
	return nil
}

// view returns the record of a run at off if it is in memory.
func (c *recent) view(r *run, off uint32, length int64) []byte {
	m := r.kept.Load()
	if m == nil || off < m.off || int64(off-m.off)*8+length > int64(len(m.buf)) {
		if m = c.get(r.id, r.blockOf(off)); m == nil {
			return nil
		}
	}
	at := int64(off-m.off) * 8
	if at+length > int64(len(m.buf)) {
		return nil
	}
	return m.buf[at : at+length : at+length]
}
