package store

import "sync"

// index holds the delayed entries that wait or are in flight: a heap in
// (due, seq) order and a table by seq. Neither has a pointer per entry.
//
// The heap may contain ghosts: nodes whose entry was cancelled, re-timed or
// belongs to a dropped exchange. They are skipped when they come up and swept
// when they are the majority.
//
// Invariant: every entry of the table that is not in flight has exactly one
// node with its key in the heap.
type index struct {
	mu sync.Mutex

	// All below is guarded by mu.

	heap    []node
	table   table
	flying  int // entries in flight
	total   Pending
	pending map[uint32]*Pending // by exchange
	last    *Pending            // of lastID, saves the map lookup
	lastID  uint32
	// dropped has, per dropped exchange, how many of its entries are still in the table.
	dropped map[uint32]int

	gone func(Ref) // told of records of dropped exchanges as they are removed
	log  *log      // where the runs are

	// now is the last that PopDue was given: what is due soon after it is not
	// worth a run. Not the highest, so that a clock that was ahead for a moment
	// does not matter.
	now   int64
	fresh int64 // bytes of entries that came since the last flush
	// While a run is written, adders wait when much has come meanwhile. A flush
	// waits for none of them, and ends also if it fails.
	flushing bool
	calm     sync.Cond // on mu: a flush ended
	runs     []*run
	// bound is the first key that is in a run only: nothing from there on may be
	// popped before that block is in the index.
	bound node
}

type node struct {
	due int64
	seq uint64
}

func (a node) less(b node) bool { return a.due < b.due || (a.due == b.due && a.seq < b.seq) }

// entry is 32 bytes. seq 0 is a free slot.
type entry struct {
	seq      uint64
	due      int64 // shifted left by one; bit 0 = in flight
	file     uint32
	off      uint32
	length   uint32
	exchange uint32
}

const maxDue = 1<<62 - 1

func (e *entry) key() Key       { return Key{Due: e.due >> 1, Seq: e.seq} }
func (e *entry) ref() Ref       { return Ref{File: e.file, Off: e.off, Len: e.length} }
func (e *entry) inFlight() bool { return e.due&1 != 0 }
func (e *entry) setRef(r Ref)   { e.file, e.off, e.length = r.File, r.Off, r.Len }

func newIndex(l *log, gone func(Ref)) *index {
	x := &index{log: l, gone: gone, pending: map[uint32]*Pending{}, dropped: map[uint32]int{}, bound: unbound()}
	x.calm.L = &x.mu
	return x
}

// addLocked makes an entry pending.
func (x *index) addLocked(k Key, exchange uint32, ref Ref) {
	e := entry{seq: k.Seq, due: k.Due << 1, exchange: exchange}
	e.setRef(ref)
	x.table.put(e)
	x.pushLocked(node{k.Due, k.Seq})
	x.countLocked(exchange, 1, ref.Len)
	x.fresh += int64(ref.Len)
}

func (x *index) countLocked(exchange uint32, n int, length uint32) {
	if x.last == nil || x.lastID != exchange {
		p := x.pending[exchange]
		if p == nil {
			p = &Pending{}
			x.pending[exchange] = p
		}
		x.last, x.lastID = p, exchange
	}
	bytes := uint64(n) * uint64(length)
	x.last.Count += uint64(n)
	x.last.Bytes += bytes
	x.total.Count += uint64(n)
	x.total.Bytes += bytes
}

// removeLocked takes an entry out for good.
func (x *index) removeLocked(e entry) {
	x.table.remove(e.seq)
	x.leaveLocked(&e)
	if e.inFlight() {
		x.flying--
	}
	if left, ok := x.dropped[e.exchange]; ok {
		if left == 1 {
			delete(x.dropped, e.exchange)
		} else {
			x.dropped[e.exchange] = left - 1
		}
		if !e.inFlight() {
			x.gone(e.ref())
		}
		return // subtracted when the exchange was dropped
	}
	x.countLocked(e.exchange, -1, e.length)
}

// popLocked takes the first waiting entry due at or before now into flight. If
// x.bound is due too there may be more, once it is loaded.
func (x *index) popLocked(now int64) (Due, bool) {
	for len(x.heap) > 0 && x.heap[0].due <= now && x.heap[0].less(x.bound) {
		n := x.heap[0]
		x.popNodeLocked()
		e := x.table.get(n.seq)
		if e == nil || e.inFlight() || e.due>>1 != n.due {
			continue
		}
		if x.isDropped(e.exchange) {
			x.removeLocked(*e)
			continue
		}
		e.due |= 1
		x.flying++
		return Due{Key: e.key(), ExchangeID: e.exchange, Ref: e.ref()}, true
	}
	return Due{}, false
}

// nextDueLocked returns the earliest due of the waiting, dropping ghosts on top.
// For what is in runs it is that of the next block: never too late.
func (x *index) nextDueLocked() (int64, bool) {
	for len(x.heap) > 0 && x.heap[0].less(x.bound) {
		n := x.heap[0]
		e := x.table.get(n.seq)
		if e != nil && !e.inFlight() && e.due>>1 == n.due {
			if !x.isDropped(e.exchange) {
				return n.due, true
			}
			x.removeLocked(*e)
		}
		x.popNodeLocked()
	}
	return x.bound.due, x.bound != unbound()
}

func (x *index) isDropped(exchange uint32) bool {
	if len(x.dropped) == 0 {
		return false
	}
	_, ok := x.dropped[exchange]
	return ok
}

// retryLocked lets an in-flight entry wait again, under a new due. An entry of
// a dropped exchange ends instead.
func (x *index) retryLocked(e *entry, due int64) {
	if x.isDropped(e.exchange) {
		x.gone(e.ref())
		x.removeLocked(*e)
		return
	}
	x.leaveLocked(e)
	x.flying--
	e.due = due << 1
	x.pushLocked(node{due, e.seq})
}

// dropLocked forgets the waiting entries of an exchange: subtracted at once,
// removed as they come up.
func (x *index) dropLocked(exchange uint32) {
	p := x.pending[exchange]
	delete(x.pending, exchange)
	x.last = nil
	if p == nil || p.Count == 0 {
		return
	}
	x.total.Count -= p.Count
	x.total.Bytes -= p.Bytes
	x.dropped[exchange] = int(p.Count)
	x.sweepLocked()
}

// sweepLocked rebuilds the heap when more than half of it is ghosts; the cost
// is shared by as many cancels and drops.
func (x *index) sweepLocked() {
	ghosts := len(x.heap) - (x.table.count - x.flying)
	for _, n := range x.dropped {
		ghosts += n
	}
	if ghosts < 1024 || ghosts < len(x.heap)/2 {
		return
	}
	x.rebuildLocked()
}

func (x *index) rebuildLocked() {
	x.heap = x.heap[:0]
	var gone []entry
	x.table.each(func(e *entry) {
		switch {
		case e.inFlight():
		case x.isDropped(e.exchange):
			gone = append(gone, *e)
		default:
			x.heap = append(x.heap, node{e.due >> 1, e.seq})
		}
	})
	for _, e := range gone {
		x.removeLocked(e)
	}
	for i := (len(x.heap) - 2) / 4; i >= 0 && len(x.heap) > 1; i-- {
		x.down(i)
	}
}

// A 4-ary heap: heap[i] is not greater than heap[4i+1] .. heap[4i+4].

func (x *index) pushLocked(n node) {
	x.heap = append(x.heap, n)
	h, i := x.heap, len(x.heap)-1
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

func (x *index) popNodeLocked() {
	last := len(x.heap) - 1
	x.heap[0] = x.heap[last]
	x.heap = x.heap[:last]
	if last > 1 {
		x.down(0)
	}
	if c := cap(x.heap); c > 1<<16 && last < c/4 {
		x.heap = append(make([]node, 0, c/2), x.heap...) // give memory back after a burst
	}
}

func (x *index) down(i int) {
	h := x.heap
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

// relocateLocked lets an entry refer to a copy of its record, whose length may
// differ.
func (x *index) relocateLocked(e *entry, to Ref) {
	if !x.isDropped(e.exchange) {
		x.countLocked(e.exchange, 0, 0)
		d := uint64(to.Len) - uint64(e.length)
		x.last.Bytes += d
		x.total.Bytes += d
	}
	e.setRef(to)
}
