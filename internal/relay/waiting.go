package relay

import "container/heap"

// waiting is the messages that a worker has and that are not on their way, by the instant at which
// they may go. Of two with the same instant the one that came first goes first. Those that are
// urgent go before others that may go, too.
type waiting struct{ urgent, others itemHeap }

func (w *waiting) len() int { return len(w.urgent) + len(w.others) }

func (w *waiting) add(it *item) {
	if it.urgent {
		heap.Push(&w.urgent, it)
		return
	}
	heap.Push(&w.others, it)
}

// next returns the earliest instant, in milliseconds; only if there is one.
func (w *waiting) next() (atMillis int64, ok bool) {
	for _, items := range []itemHeap{w.urgent, w.others} {
		if len(items) > 0 && (!ok || items[0].at < atMillis) {
			atMillis, ok = items[0].at, true
		}
	}
	return atMillis, ok
}

// take returns the first message whose instant has come, nil if there is none.
func (w *waiting) take(nowMillis int64) *item {
	for _, items := range []*itemHeap{&w.urgent, &w.others} {
		if len(*items) > 0 && (*items)[0].at <= nowMillis {
			return heap.Pop(items).(*item)
		}
	}
	return nil
}

// itemHeap is for container/heap.
type itemHeap []*item

func (h itemHeap) Len() int { return len(h) }
func (h itemHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].came < h[j].came
}
func (h itemHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *itemHeap) Push(x any)   { *h = append(*h, x.(*item)) }
func (h *itemHeap) Pop() any {
	last := len(*h) - 1
	it := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return it
}
