package server

import (
	"cmp"
	"slices"
	"sort"
)

// unacked is one delivery that was not settled yet. Without pointers, so that
// the garbage collector has nothing to follow however many there are.
type unacked struct {
	tag uint64
	pos uint64 // position in the source's queue
	// source is an index into the channel's sources, negative once settled.
	source int32
	at     uint32 // when it was delivered, see conn.stamp
}

const settled = -1

// window is the deliveries of a channel that wait for ack, in ascending order of
// their tags: a ring buffer with holes where a later delivery was settled before
// an earlier one.
//
// Invariants: the first entry is not settled; holes are at most half of the
// entries, or few.
type window struct {
	ring  []unacked // length is a power of two, or 0
	head  int
	count int // entries including holes
	live  int // entries not settled
}

// at returns entry i counted from the oldest.
func (w *window) at(i int) *unacked { return &w.ring[(w.head+i)&(len(w.ring)-1)] }

// push adds a delivery whose tag is above all others.
func (w *window) push(u unacked) {
	if w.count == len(w.ring) {
		w.resize(max(16, 2*len(w.ring)))
	}
	*w.at(w.count) = u
	w.count++
	w.live++
}

func (w *window) resize(size int) {
	ring := make([]unacked, size)
	for i := range w.count {
		ring[i] = *w.at(i)
	}
	w.ring, w.head = ring, 0
}

// find returns the index of the entry with that tag.
func (w *window) find(tag uint64) (i int, ok bool) {
	if w.count == 0 || tag < w.at(0).tag {
		return 0, false
	}
	// Without gaps the tag is where the difference says, with gaps before it.
	last := int(min(tag-w.at(0).tag, uint64(w.count-1)))
	if w.at(last).tag == tag {
		return last, w.at(last).source >= 0
	}
	i = sort.Search(last, func(i int) bool { return w.at(i).tag >= tag })
	return i, i < last && w.at(i).tag == tag && w.at(i).source >= 0
}

// settle takes entry i out.
func (w *window) settle(i int) unacked {
	u := *w.at(i)
	w.at(i).source = settled
	w.live--
	if i == 0 {
		w.trim()
	}
	if holes := w.count - w.live; holes > 64 && holes > w.live {
		w.compact()
	}
	return u
}

// trim drops the settled entries in front.
func (w *window) trim() {
	for w.count > 0 && w.at(0).source < 0 {
		w.head = (w.head + 1) & (len(w.ring) - 1)
		w.count--
	}
	if w.count == 0 && len(w.ring) > 4096 {
		w.ring, w.head = nil, 0
	}
}

// compact closes the holes. It runs after as many settles as there are entries,
// so each settle pays for a constant part of it.
func (w *window) compact() {
	n := 0
	for i := range w.count {
		if u := *w.at(i); u.source >= 0 {
			*w.at(n) = u
			n++
		}
	}
	w.count = n
}

// takeFirst takes the oldest entry out.
func (w *window) takeFirst() (unacked, bool) {
	if w.count == 0 {
		return unacked{}, false
	}
	return w.settle(0), true
}

// restore puts entries back that were taken out, in any order.
func (w *window) restore(entries []unacked) {
	if len(entries) == 0 {
		return
	}
	for u, ok := w.takeFirst(); ok; u, ok = w.takeFirst() {
		entries = append(entries, u)
	}
	slices.SortFunc(entries, func(a, b unacked) int { return cmp.Compare(a.tag, b.tag) })
	for _, u := range entries {
		w.push(u)
	}
}
