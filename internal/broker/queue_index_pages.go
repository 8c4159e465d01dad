package broker

import (
	"encoding/binary"
	"math/bits"

	"github.com/duepost/duepost/internal/store"
)

// How the entries of an index leave memory for the scratch file and come back. The index does no
// I/O: the queue's lock is given up for that, and what was found under it is looked at again
// after. A page is written once and never changed: when entries are, the page is freed.

// nearChunks is how many chunks from the cursor on stay in memory while there are others.
const nearChunks = 4

// lookAhead is how many chunks are looked at under one hold of the queue's lock.
const lookAhead = 256

// isPaged reports whether a position is ready and its entry in the scratch file only.
func (x *index) isPaged(pos uint64) bool {
	c := x.chunk(pos / chunkSpan)
	return c != nil && c.paged && c.blocks[pos/blockSize%chunkSize].ready>>(pos%blockSize)&1 != 0
}

// relocate changes the reference of a position that is ready or held and not paged, if it was from.
func (x *index) relocate(pos uint64, from, to store.Ref) (changed bool) {
	e := x.at(pos)
	if e.ref != from {
		return false
	}
	e.ref = to
	x.outdate(x.chunk(pos / chunkSpan))
	return true
}

// outdate says that the entries of a chunk are not what was written or is being written or read.
func (x *index) outdate(c *chunk) {
	c.edits++
	if c.page != 0 {
		x.pager.free(c.page)
		c.page = 0
	}
}

// nextPageable moves the hand to the next chunk that can be paged, not nearer to the cursor than
// near chunks, and returns it with its number. It goes round and takes each chunk that it looks
// at from left. nil means that it is to be called again, or that nothing is left. The last chunk
// is passed over: it is being filled, if not by put then by restore.
func (x *index) nextPageable(near uint64, left *int) (uint64, *chunk) {
	first, end := x.first, x.first+uint64(max(len(x.chunks), 1))-1
	if near > 0 {
		first = max(first, x.cursor/chunkSpan+near)
	}
	if first >= end {
		*left = 0
	}
	for range min(*left, lookAhead) {
		if x.hand < first || x.hand >= end {
			x.hand = first
		}
		n := x.hand
		x.hand++
		*left--
		if c := x.chunk(n); c.isPageable() {
			return n, c
		}
	}
	return 0, nil
}

// isPageable reports whether a chunk is complete, in memory, and nothing in it held.
func (c *chunk) isPageable() bool {
	if c == nil || c.paged || c.ready == 0 {
		return false
	}
	for i := range c.blocks {
		if b := &c.blocks[i]; b.born != ^uint64(0) || b.held != 0 {
			return false
		}
	}
	return true
}

// pageOut lets go of the entries of a chunk that is pageable and has a page.
func (x *index) pageOut(c *chunk) {
	c.paged = true
	for i := range c.blocks {
		if b := &c.blocks[i]; b.entries != nil {
			x.pager.give(b.entries)
			b.entries = nil
		}
	}
}

// pageIn gives a paged chunk its entries.
func (x *index) pageIn(c *chunk, p *page) {
	c.paged = false
	for live := c.ready; live != 0; live &= live - 1 {
		i := bits.TrailingZeros16(live)
		c.blocks[i].entries = p[i]
	}
}

// dissolve calls visit for each entry and takes the index apart. It does I/O where chunks are
// paged, so the index must have left its queue.
func (x *index) dissolve(visit func(e *entry)) (unread int, err error) {
	for _, c := range x.chunks {
		if c == nil {
			continue
		}
		if c.paged {
			p, e := x.pager.read(c.page, c.ready)
			if e != nil {
				unread, err = unread+c.liveCount(), e
				x.outdate(c)
				continue
			}
			x.pageIn(c, &p)
		}
		for i := range c.blocks {
			b := &c.blocks[i]
			for live := b.ready | b.held; live != 0; live &= live - 1 {
				visit(&b.entries[bits.TrailingZeros64(live)])
			}
			if b.entries != nil {
				x.pager.give(b.entries)
			}
		}
		x.outdate(c)
	}
	return unread, err
}

func (c *chunk) liveCount() int {
	n := 0
	for i := range c.blocks {
		n += bits.OnesCount64(c.blocks[i].ready | c.blocks[i].held)
	}
	return n
}

// page is the entries of a chunk; those of blocks that are gone are missing.
type page [chunkSize]*[blockSize]entry

const (
	entryBytes = 24
	pageBytes  = chunkSpan * entryBytes
)

// encode writes entries as they are in the scratch file.
func (e *entry) encode(b []byte) {
	_ = b[entryBytes-1]
	binary.LittleEndian.PutUint32(b, e.ref.File)
	binary.LittleEndian.PutUint32(b[4:], e.ref.Off)
	binary.LittleEndian.PutUint32(b[8:], e.ref.Len)
	binary.LittleEndian.PutUint32(b[12:], e.body)
	binary.LittleEndian.PutUint32(b[16:], e.arrived)
	binary.LittleEndian.PutUint32(b[20:], e.meta)
}

func (e *entry) decode(b []byte) {
	_ = b[entryBytes-1]
	e.ref.File = binary.LittleEndian.Uint32(b)
	e.ref.Off = binary.LittleEndian.Uint32(b[4:])
	e.ref.Len = binary.LittleEndian.Uint32(b[8:])
	e.body = binary.LittleEndian.Uint32(b[12:])
	e.arrived = binary.LittleEndian.Uint32(b[16:])
	e.meta = binary.LittleEndian.Uint32(b[20:])
}
