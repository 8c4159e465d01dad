package broker

import "slices"

// expiry is when the message at a position is due to expire.
type expiry struct {
	at  int64  // unix milliseconds
	pos uint64 // with byQueueTTL, if it is that which ends then
}

// byQueueTTL marks a position in the heap whose time is that of the queue and not its own.
const byQueueTTL = 1 << 63

// expiryHeap orders expiries, the earliest first: 16 bytes per message, no pointers, and what
// append keeps in reserve. It may hold positions that are gone meanwhile; see
// Queue.trimExpiriesLocked for their bound.
//
// Invariant: h[i] <= h[2i+1] and h[i] <= h[2i+2]. Costs are O(log n).
type expiryHeap []expiry

func (x expiry) before(y expiry) bool {
	return x.at < y.at || x.at == y.at && x.pos < y.pos
}

func (h *expiryHeap) push(x expiry) {
	s := append(*h, x)
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !x.before(s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = x
	*h = s
}

// pop removes the earliest. The heap must not be empty.
func (h *expiryHeap) pop() expiry {
	s := *h
	top := s[0]
	last := len(s) - 1
	s[0] = s[last]
	*h = s[:last]
	(*h).down(0)
	h.shrink()
	return top
}

// shrinkFrom is the capacity below which memory is not given back.
const shrinkFrom = 1024

// shrink gives back what is not in use once that is most of it. Costs O(1), spread over the pops
// that made it so.
func (h *expiryHeap) shrink() {
	if c := cap(*h); c > shrinkFrom && len(*h) < c/4 {
		*h = append(make(expiryHeap, 0, c/2), *h...)
	}
}

// keep removes all whose position is not wanted. Costs O(n).
func (h *expiryHeap) keep(wanted func(pos uint64) bool) {
	kept := (*h)[:0]
	for _, x := range *h {
		if wanted(x.pos &^ byQueueTTL) {
			kept = append(kept, x)
		}
	}
	if cap(kept) > shrinkFrom && len(kept) < cap(kept)-cap(kept)/8 {
		kept = slices.Clone(kept)
	}
	*h = kept
	h.order()
}

// order makes a heap of what is in any order. Costs O(n).
func (h expiryHeap) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h expiryHeap) down(i int) {
	if i >= len(h) {
		return
	}
	x := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(x) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = x
}
