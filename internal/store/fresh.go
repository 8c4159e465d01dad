package store

// fresh holds the delayed entries whose records are in one segment of the log:
// all of them by sequence number, and a heap of those that wait.
//
// Sequence numbers are given in log order, so those of a segment follow each
// other, and an entry is found at its distance from the first. Only what was
// copied or retried (its number is older) is a stray.
//
// The heap may contain ghosts: nodes whose entry was cancelled or belongs to a
// dropped exchange. They are skipped when they come up and swept when they are
// the majority.
//
// Invariant: every entry that waits has exactly one node with its key in the
// heap. All is guarded by the index lock.
type fresh struct {
	source
	seg *segment

	heap    []node
	base    uint64 // sequence number of entries[0]
	entries []entry
	strays  map[uint64]entry
	keys    keyTable // sequence numbers by hash, also of what is not here any more
	waiting int
	flying  int
	bytes   int64 // of records that wait

	// While a run is written of what waits here: what was cancelled, and the
	// exchanges that were dropped, since its content was listed.
	flushed   bool // all that waited here is in a run now
	flushing  bool
	cancelled []Key
	dropped   []uint32
}

// entry is 24 bytes.
type entry struct {
	due      int64
	off      uint32
	length   uint32
	exchange uint32
	state    entryState
}

type entryState uint8

const (
	entryGone entryState = iota
	entryWaits
	entryFlies
)

// node is an entry in a heap.
type node struct {
	due int64
	seq uint64
}

func (a node) less(b node) bool { return a.due < b.due || (a.due == b.due && a.seq < b.seq) }
func (a node) key() Key         { return Key{Due: a.due, Seq: a.seq} }

const maxDue = 1<<62 - 1

// maxGap is how many sequence numbers may be missing before one counts as stray.
const maxGap = 4096

func (f *fresh) ref(e *entry) Ref { return Ref{File: f.seg.id, Off: e.off, Len: e.length} }

// get returns a copy of an entry; its state is entryGone if it is not here.
func (f *fresh) get(seq uint64) entry {
	if i := seq - f.base; i < uint64(len(f.entries)) && f.entries[i].state != entryGone {
		return f.entries[i]
	}
	return f.strays[seq]
}

func (f *fresh) set(seq uint64, e entry) {
	if i := seq - f.base; i < uint64(len(f.entries)) && f.entries[i].state != entryGone {
		f.entries[i] = e
		return
	}
	if e.state == entryGone {
		delete(f.strays, seq)
		return
	}
	f.strays[seq] = e
}

// add makes an entry wait whose record is in the segment.
func (f *fresh) add(k Key, e entry) {
	e.due, e.state = k.Due, entryWaits
	f.place(k.Seq, e)
	f.waiting++
	f.bytes += int64(e.length)
	f.push(node{k.Due, k.Seq})
	f.head = f.heap[0]
}

func (f *fresh) place(seq uint64, e entry) {
	if len(f.entries) == 0 && f.strays == nil {
		f.base = seq
	}
	i, n := seq-f.base, uint64(len(f.entries))
	if i >= n+maxGap {
		if f.strays == nil {
			f.strays = map[uint64]entry{}
		}
		f.strays[seq] = e
		return
	}
	for uint64(len(f.entries)) <= i {
		f.entries = append(f.entries, entry{})
	}
	f.entries[i] = e
}

// pop takes the first that waits into flight. The head is exact.
func (f *fresh) pop() (Key, entry) {
	n := f.heap[0]
	e := f.get(n.seq)
	e.state = entryFlies
	f.set(n.seq, e)
	f.waiting--
	f.bytes -= int64(e.length)
	f.flying++
	f.popNode()
	f.trim()
	return n.key(), e
}

// land is the end of an entry in flight.
func (f *fresh) land(seq uint64) {
	e := f.get(seq)
	invariant(e.state == entryFlies, "an entry that ends is in flight")
	f.flying--
	f.forget(seq, e)
}

func (f *fresh) forget(seq uint64, e entry) {
	e.state = entryGone
	f.set(seq, e)
}

// leave takes out an entry that waits, but for its node.
func (f *fresh) leave(seq uint64, e entry) {
	f.waiting--
	f.bytes -= int64(e.length)
	f.forget(seq, e)
}

// empty takes out all that waits, and returns the memory that held it.
func (f *fresh) empty() arrays {
	flying := map[uint64]entry{}
	f.each(func(seq uint64, e entry) {
		if e.state == entryFlies {
			flying[seq] = e
		}
	})
	a := arrays{f.entries, f.heap}
	f.entries, f.strays, f.heap, f.keys = nil, flying, nil, keyTable{}
	f.waiting, f.bytes = 0, 0
	f.flushed = true
	f.seg.waits.Store(false)
	return a
}

// cancel takes out an entry that waits.
func (f *fresh) cancel(k Key, e entry) {
	f.leave(k.Seq, e)
	if f.flushing {
		f.cancelled = append(f.cancelled, k)
	}
	f.sweep()
	f.trim()
}

// drop takes out what waits for an exchange and calls gone for each.
func (f *fresh) drop(exchange uint32, gone func(Ref)) {
	f.each(func(seq uint64, e entry) {
		if e.exchange == exchange && e.state == entryWaits {
			f.leave(seq, e)
			gone(f.ref(&e))
		}
	})
	if f.flushing {
		f.dropped = append(f.dropped, exchange)
	}
	f.sweep()
	f.trim()
}

// each calls visit for every entry that waits or is in flight.
func (f *fresh) each(visit func(seq uint64, e entry)) {
	for i := range f.entries {
		if f.entries[i].state != entryGone {
			visit(f.base+uint64(i), f.entries[i])
		}
	}
	for seq, e := range f.strays {
		if e.state != entryGone {
			visit(seq, e)
		}
	}
}

// trim removes ghosts from the top, so that the head is exact.
func (f *fresh) trim() {
	for len(f.heap) > 0 {
		n := f.heap[0]
		if e := f.get(n.seq); e.state == entryWaits && e.due == n.due {
			f.head = n
			return
		}
		f.popNode()
	}
}

// sweep rebuilds the heap when more than half of it is ghosts; the cost is
// shared by as many cancels.
func (f *fresh) sweep() {
	if ghosts := len(f.heap) - f.waiting; ghosts < 1024 || ghosts < len(f.heap)/2 {
		return
	}
	f.heap = f.heap[:0]
	f.each(func(seq uint64, e entry) {
		if e.state == entryWaits {
			f.heap = append(f.heap, node{e.due, seq})
		}
	})
	f.order()
}

func (f *fresh) order() {
	for i := (len(f.heap) - 2) / 4; i >= 0 && len(f.heap) > 1; i-- {
		f.down(i)
	}
}

// A 4-ary heap: heap[i] is not greater than heap[4i+1] .. heap[4i+4].

func (f *fresh) push(n node) {
	f.heap = append(f.heap, n)
	h, i := f.heap, len(f.heap)-1
	for i > 0 {
		p := (i - 1) / 4
		if !n.less(h[p]) {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = n
}

func (f *fresh) popNode() {
	last := len(f.heap) - 1
	f.heap[0] = f.heap[last]
	f.heap = f.heap[:last]
	if last > 1 {
		f.down(0)
	}
}

func (f *fresh) down(i int) {
	h := f.heap
	n := h[i]
	for {
		c := 4*i + 1
		if c >= len(h) {
			break
		}
		m := c
		for j := c + 1; j < min(c+4, len(h)); j++ {
			if h[j].less(h[m]) {
				m = j
			}
		}
		if !h[m].less(n) {
			break
		}
		h[i] = h[m]
		i = m
	}
	h[i] = n
}
