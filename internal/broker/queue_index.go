package broker

import (
	"math/bits"

	"github.com/duepost/duepost/internal/store"
)

// entry is what a queue knows about one message without reading it: 24 bytes, no pointers.
type entry struct {
	ref     store.Ref
	body    uint32 // length of the body in bytes
	arrived uint32 // when it came into this queue: the low 32 bits of unix milliseconds
	meta    uint32 // from the top: 12 more bits of arrived, 8 of flags, 12 of deliveries
}

// Flags of an entry.
const (
	flagLogged      = 1 << iota // the reference is to the log, and leaving is logged
	flagRedelivered             // it was delivered before
	flagOverdue                 // its time ended while it was held
	flagZeroTTL                 // it may be offered once although its time ends on arrival
	flagLeaving                 // an atomic group is under way in which it leaves
)

const (
	arrivedHighShift = 20
	flagShift        = 12
	maxDeliveries    = 1<<12 - 1
)

func newEntry(ref store.Ref, body int, arrived int64, flags uint8) entry {
	return entry{
		ref:     ref,
		body:    uint32(body),
		arrived: uint32(arrived),
		meta:    uint32(arrived>>32)<<arrivedHighShift | uint32(flags)<<flagShift,
	}
}

func (e *entry) arrivedMillis() int64 {
	return int64(e.meta>>arrivedHighShift)<<32 | int64(e.arrived)
}

func (e *entry) has(flag uint8) bool { return e.meta>>flagShift&uint32(flag) != 0 }
func (e *entry) set(flag uint8)      { e.meta |= uint32(flag) << flagShift }
func (e *entry) clear(flag uint8)    { e.meta &^= uint32(flag) << flagShift }
func (e *entry) deliveries() int     { return int(e.meta & maxDeliveries) }

// countDelivery adds one delivery; the count stops at its maximum.
func (e *entry) countDelivery() {
	if e.meta&maxDeliveries != maxDeliveries {
		e.meta++
	}
}

const (
	blockSize = 64 // entries in a block: one bit each in a word
	chunkSize = 16 // blocks in a chunk
	chunkSpan = blockSize * chunkSize
)

// block is 64 positions in a row. A position is unborn (no bit), ready, held, or gone (born
// and neither). entries is nil when nothing in the block is ready or held, and when its chunk
// is paged.
type block struct {
	ready   uint64
	held    uint64
	born    uint64
	entries *[blockSize]entry
}

func (b *block) isGone() bool { return b.born == ^uint64(0) && b.ready|b.held == 0 }

// chunk is 1,024 positions in a row.
type chunk struct {
	blocks [chunkSize]block
	ready  uint16 // bit i: block i has something ready
	gone   uint16 // bit i: all of block i was born and is gone

	// Where the entries are; see queue_index_pages.go.

	paged bool       // only in the scratch file
	page  store.Page // of a copy of the entries as they are, or 0
	edits uint32     // how often a copy became out of date

	counted bool // the store knows how often some of them came back; see queue_counts.go
}

// index finds the messages of a queue by position. Positions are handed out in order and put
// in almost in order; they may be taken away in any order. Costs are O(1), save nextReady,
// which passes over 64 held or gone positions per step and over 1,024 where a whole chunk is.
//
// A chunk of which all is gone is given back and leaves 8 bytes behind while older ones live,
// so one message left for ever does not keep the memory of those that came after it.
//
// The entries of a chunk may be paged: in the scratch file and not in memory. What is known without
// them is: whether a position is ready or held, and which is the next. Whoever needs the entry of
// a position that isPaged has it loaded first; see Queue.loadLocked.
//
// Invariants: no ready position is below cursor. Positions below first*chunkSpan and those of a
// nil chunk are gone; those beyond the last chunk are unborn. chunks[0] is never nil. In a paged
// chunk all positions were born and none is held. The last chunk is not paged.
type index struct {
	chunks []*chunk
	first  uint64 // number of chunks[0], or of the chunk that will be
	cursor uint64
	hand   uint64   // number of the chunk that the pager looks at next
	past   []uint64 // numbers of counted chunks that are gone
	pager  *pager

	totals
	all *totals // of the indexes of all priorities; nil in a queue without
}

// totals are how much is in an index.
type totals struct {
	ready, held           int
	readyBytes, heldBytes int64
}

func (t *totals) add(ready, held int, body uint32) {
	t.ready += ready
	t.held += held
	t.readyBytes += int64(ready) * int64(body)
	t.heldBytes += int64(held) * int64(body)
}

// count says that so many more messages with a body of that length are ready and held.
func (x *index) count(ready, held int, body uint32) {
	x.add(ready, held, body)
	if x.all != nil {
		x.all.add(ready, held, body)
	}
}

// put makes a reserved position ready.
func (x *index) put(pos uint64, e entry) {
	b, bit := x.born(pos)
	if b.entries == nil {
		b.entries = x.pager.take()
	}
	b.entries[pos%blockSize] = e
	x.makeReady(pos, b, bit)
	x.count(1, 0, e.body)
}

// abandon says that a reserved position will never hold a message.
func (x *index) abandon(pos uint64) {
	b, _ := x.born(pos)
	x.release(pos, b)
}

// born finds the block of a position and marks the position born.
func (x *index) born(pos uint64) (b *block, bit uint64) {
	n := pos / chunkSpan
	for x.first+uint64(len(x.chunks)) <= n {
		x.chunks = append(x.chunks, new(chunk))
	}
	b = &x.chunks[n-x.first].blocks[pos/blockSize%chunkSize]
	bit = 1 << (pos % blockSize)
	b.born |= bit
	return b, bit
}

// at returns the entry of a position that is ready or held and not paged, else nil. Of a ready
// one only relocate may change it.
func (x *index) at(pos uint64) *entry {
	b := x.block(pos)
	if b == nil || b.entries == nil || (b.ready|b.held)>>(pos%blockSize)&1 == 0 {
		return nil
	}
	return &b.entries[pos%blockSize]
}

// isLive reports whether a position is ready or held.
func (x *index) isLive(pos uint64) bool {
	b := x.block(pos)
	return b != nil && (b.ready|b.held)>>(pos%blockSize)&1 != 0
}

// isHeld reports whether a position is held.
func (x *index) isHeld(pos uint64) bool {
	b := x.block(pos)
	return b != nil && b.held>>(pos%blockSize)&1 != 0
}

// block returns the block of a position, or nil if all of its chunk is gone or unborn.
func (x *index) block(pos uint64) *block {
	c := x.chunk(pos / chunkSpan)
	if c == nil {
		return nil
	}
	return &c.blocks[pos/blockSize%chunkSize]
}

// chunk returns the chunk with a number, or nil if all of it is gone or unborn.
func (x *index) chunk(n uint64) *chunk {
	i := n - x.first
	if i >= uint64(len(x.chunks)) { // also when the chunk is before first
		return nil
	}
	return x.chunks[i]
}

// nextReady returns the lowest ready position and moves the cursor there.
func (x *index) nextReady() (pos uint64, ok bool) {
	if x.ready == 0 {
		return 0, false
	}
	x.cursor = max(x.cursor, x.first*chunkSpan)
	for n := x.cursor/chunkSpan - x.first; n < uint64(len(x.chunks)); n++ {
		if pos, ok := x.chunks[n].firstReady((x.first+n)*chunkSpan, x.cursor); ok {
			x.cursor = pos
			return pos, true
		}
	}
	invariant(false, "a queue counts ready messages that its index does not find")
	return 0, false
}

// firstReady returns the lowest ready position of a chunk that begins at start, not below from.
func (c *chunk) firstReady(start, from uint64) (pos uint64, ok bool) {
	if c == nil {
		return 0, false
	}
	for ready := c.ready; ready != 0; ready &= ready - 1 {
		i := bits.TrailingZeros16(ready)
		base := start + uint64(i)*blockSize
		word := c.blocks[i].ready
		if from > base {
			if from-base >= blockSize {
				continue
			}
			word &= ^uint64(0) << (from - base)
		}
		if word != 0 {
			return base + uint64(bits.TrailingZeros64(word)), true
		}
	}
	return 0, false
}

// hold makes a ready position held and returns its entry. The position is not paged.
func (x *index) hold(pos uint64) *entry {
	c := x.chunks[pos/chunkSpan-x.first]
	i := pos / blockSize % chunkSize
	b := &c.blocks[i]
	bit := uint64(1) << (pos % blockSize)
	invariant(b.ready&bit != 0, "a message is claimed that is not ready")
	b.ready &^= bit
	b.held |= bit
	if b.ready == 0 {
		c.ready &^= 1 << i
	}
	e := &b.entries[pos%blockSize]
	x.count(-1, 1, e.body)
	return e
}

// unhold makes a held position ready again, in its old place. Its entry may be changed before
// others see the index.
func (x *index) unhold(pos uint64) *entry {
	c := x.chunk(pos / chunkSpan)
	invariant(c != nil, "a message is put back that is gone")
	x.outdate(c)
	b := &c.blocks[pos/blockSize%chunkSize]
	bit := uint64(1) << (pos % blockSize)
	invariant(b.held&bit != 0, "a message is put back that is not held")
	b.held &^= bit
	x.makeReady(pos, b, bit)
	e := &b.entries[pos%blockSize]
	x.count(1, -1, e.body)
	return e
}

func (x *index) makeReady(pos uint64, b *block, bit uint64) {
	b.ready |= bit
	x.chunks[pos/chunkSpan-x.first].ready |= 1 << (pos / blockSize % chunkSize)
	x.cursor = min(x.cursor, pos)
}

// remove takes a held position away and returns what its entry was.
func (x *index) remove(pos uint64) entry {
	b := x.block(pos)
	bit := uint64(1) << (pos % blockSize)
	invariant(b != nil && b.held&bit != 0, "a message is settled that is not held")
	e := b.entries[pos%blockSize]
	b.held &^= bit
	x.count(0, -1, e.body)
	x.release(pos, b)
	return e
}

// release gives back what the block, its chunk and the front of the index no longer need.
func (x *index) release(pos uint64, b *block) {
	if b.ready|b.held == 0 && b.entries != nil && b.born == ^uint64(0) {
		x.pager.give(b.entries)
		b.entries = nil
	}
	if !b.isGone() {
		return
	}
	n := pos/chunkSpan - x.first
	c := x.chunks[n]
	c.gone |= 1 << (pos / blockSize % chunkSize)
	if c.gone != 1<<chunkSize-1 {
		return
	}
	x.outdate(c)
	x.chunks[n] = nil
	if c.counted {
		x.past = append(x.past, x.first+n)
	}
	for len(x.chunks) > 0 && x.chunks[0] == nil {
		x.chunks = x.chunks[1:]
		x.first++
	}
}

// restore puts an entry back that was there before a restart. Positions must ascend; those
// between are gone. After the last one the queue goes on at restoredNext.
func (x *index) restore(pos uint64, e entry) {
	n := pos / chunkSpan
	if len(x.chunks) == 0 {
		x.first = n
	}
	for x.first+uint64(len(x.chunks)) < n {
		x.chunks = append(x.chunks, nil)
	}
	if x.first+uint64(len(x.chunks)) == n {
		c := &chunk{gone: 1<<chunkSize - 1}
		for i := range c.blocks {
			c.blocks[i].born = ^uint64(0)
		}
		x.chunks = append(x.chunks, c)
	}
	x.chunks[n-x.first].gone &^= 1 << (pos / blockSize % chunkSize)
	x.put(pos, e)
}

// resume says that positions are handed out anew after a restart, from next on, and returns the
// first: that of a new chunk, so that nothing before it is unborn for ever.
func (x *index) resume(next uint64) uint64 {
	n := (next + chunkSpan - 1) / chunkSpan
	if len(x.chunks) == 0 {
		x.first = max(x.first, n)
	}
	for x.first+uint64(len(x.chunks)) < n {
		x.chunks = append(x.chunks, nil)
	}
	return (x.first + uint64(len(x.chunks))) * chunkSpan
}

// wasBorn reports whether a position was put or abandoned.
func (x *index) wasBorn(pos uint64) bool {
	if b := x.block(pos); b != nil {
		return b.born>>(pos%blockSize)&1 != 0
	}
	return pos/chunkSpan < x.first+uint64(len(x.chunks)) // else the chunk is gone, or unborn
}
