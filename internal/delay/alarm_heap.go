package delay

// alarmItem keeps the instant beside the pointer, so that comparing items follows no pointer.
type alarmItem struct {
	at    int64 // unix milliseconds
	alarm *Alarm
}

// alarmHeap is a binary heap with the earliest item at 0. Invariants: for all i > 0,
// h[(i-1)/2].at <= h[i].at; and h[i].alarm.index == i, which is what makes remove and move
// O(log n). Alarms of the same instant come in no particular order.
type alarmHeap []alarmItem

// first returns the earliest item, or the zero item. O(1).
func (h alarmHeap) first() alarmItem {
	if len(h) == 0 {
		return alarmItem{}
	}
	return h[0]
}

// add puts in an alarm that is not in the heap. O(log n).
func (h *alarmHeap) add(it alarmItem) {
	*h = append(*h, it)
	h.up(len(*h) - 1)
}

// move changes the instant of the item at i. O(log n).
func (h alarmHeap) move(i int, at int64) {
	h[i].at = at
	if !h.down(i) {
		h.up(i)
	}
}

// remove takes out the item at i. O(log n).
func (h *alarmHeap) remove(i int) {
	old := *h
	old[i].alarm.index = -1
	last := len(old) - 1
	moved := old[last]
	old[last] = alarmItem{} // let the alarm be collected
	*h = old[:last]
	if i < last {
		(*h)[i] = moved
		if !h.down(i) {
			h.up(i)
		}
	}
}

// up restores the order above i and sets the index of the item that was there.
func (h alarmHeap) up(i int) {
	it := h[i]
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].at <= it.at {
			break
		}
		h.put(i, h[parent])
		i = parent
	}
	h.put(i, it)
}

// down restores the order below i and reports whether the item moved.
func (h alarmHeap) down(i int) bool {
	it, from := h[i], i
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].at < h[child].at {
			child = right
		}
		if it.at <= h[child].at {
			break
		}
		h.put(i, h[child])
		i = child
	}
	h.put(i, it)
	return i != from
}

// put places an item and keeps its index true.
func (h alarmHeap) put(i int, it alarmItem) {
	h[i] = it
	it.alarm.index = i
}
