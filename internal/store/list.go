package store

import (
	"container/heap"
	"slices"
)

// ListOptions say which of the waiting entries to list.
type ListOptions struct {
	After     Key      // begin behind this; zero means with the first
	From, To  int64    // From <= due < To, unix ms; To 0 means no end
	Exchanges []uint32 // of these; none means of all
	Limit     int      // at most so many; 0 means 100
}

// Listed is an entry that waits.
type Listed struct {
	Key        Key
	ExchangeID uint32
	Bytes      uint32 // of its record
}

// List appends to dst the next waiting entries in (due, seq) order; the key of the
// last is where to go on. What waits all the time, from the first page to the last,
// is listed once. It reads from the disk, a block or a few of each run that has any
// of them, and holds up nobody meanwhile.
func (s *Store) List(o ListOptions, dst []Listed) ([]Listed, error) {
	if o.Limit == 0 {
		o.Limit = 100
	}
	if o.To == 0 {
		o.To = maxDue + 1
	}
	if k := (Key{Due: o.From}); o.After.Less(k) {
		o.After = k // sequence numbers begin with 1
	}
	for tries := 1; ; tries++ {
		moves := s.index.movesNow()
		page, err := s.page(&o)
		if err == ErrMoved {
			continue
		}
		if err != nil {
			return dst, err
		}
		if moves == s.index.movesNow() || tries == maxTries {
			return append(dst, page...), nil
		}
	}
}

// maxTries is how often a page is read again because entries changed their place
// meanwhile. After that it is taken as it is: what goes from the log to a run is not
// missed, because the runs are looked at last.
const maxTries = 8

// movesNow returns a number that changes whenever entries that wait change their
// place.
func (x *index) movesNow() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.moves
}

// takes reports whether an entry passes the filters.
func (o *ListOptions) takes(k Key, exchange uint32) bool {
	return o.After.Less(k) && k.Due < o.To && o.takesExchange(exchange)
}

func (o *ListOptions) takesExchange(exchange uint32) bool {
	return len(o.Exchanges) == 0 || slices.Contains(o.Exchanges, exchange)
}

// page merges what is in the log and in each run.
func (s *Store) page(o *ListOptions) ([]Listed, error) {
	var cursors cursors
	if list := s.listFresh(o); len(list) > 0 {
		cursors = append(cursors, &cursor{low: list[0].Key, list: list})
	}
	for _, r := range s.index.runsNow() {
		c, err := s.newCursor(r, o)
		if err != nil {
			return nil, s.movedOr(r, err)
		}
		if c != nil {
			cursors = append(cursors, c)
		}
	}
	heap.Init(&cursors)
	var page []Listed
	for len(cursors) > 0 && len(page) < o.Limit {
		c := cursors[0]
		if len(c.list) == 0 {
			if err := s.fillCursor(c, o); err != nil {
				return nil, s.movedOr(c.run, err)
			}
		} else {
			// One that went from the log to a run meanwhile is met twice.
			if n := len(page); n == 0 || page[n-1].Key != c.list[0].Key {
				page = append(page, c.list[0])
			}
			c.list = c.list[1:]
		}
		if c.next() {
			heap.Fix(&cursors, 0)
		} else {
			heap.Pop(&cursors)
		}
	}
	return page, nil
}

// freshPiece is how many entries are looked at before the index is unlocked.
const freshPiece = 4096

// eachFresh visits all that waits in the log, in no order. The index is locked in
// between only.
func (s *Store) eachFresh(visit func(k Key, e *entry)) {
	x := s.index
	x.mu.Lock()
	sets := slices.Clone(x.fresh)
	x.mu.Unlock()
	for _, f := range sets {
		for from, more := 0, true; more; from += freshPiece {
			more = x.visitFresh(f, from, visit)
		}
	}
}

// visitFresh visits the entries from a place on, and with the last the strays.
func (x *index) visitFresh(f *fresh, from int, visit func(k Key, e *entry)) (more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if f.seg.fresh != f {
		return false // nothing is left in it
	}
	to := min(from+freshPiece, len(f.entries))
	for i := from; i < to; i++ {
		if e := &f.entries[i]; e.state == entryWaits {
			visit(Key{e.due, f.base + uint64(i)}, e)
		}
	}
	if to < len(f.entries) {
		return true
	}
	for seq, e := range f.strays {
		if e.state == entryWaits {
			visit(Key{e.due, seq}, &e)
		}
	}
	return false
}

// listFresh returns the first entries of the page that are in the log.
func (s *Store) listFresh(o *ListOptions) []Listed {
	var list []Listed
	s.eachFresh(func(k Key, e *entry) {
		if !o.takes(k, e.exchange) {
			return
		}
		list = append(list, Listed{k, e.exchange, e.length})
		if len(list) >= 2*o.Limit+1024 {
			list = firstOf(list, o.Limit)
		}
	})
	return firstOf(list, o.Limit)
}

func firstOf(list []Listed, n int) []Listed {
	slices.SortFunc(list, func(a, b Listed) int { return a.Key.compare(b.Key) })
	return list[:min(n, len(list))]
}

func (x *index) runsNow() []*run {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(x.runs), (*run).consumed)
}

// cursor goes through what a page takes of one source.
type cursor struct {
	low     Key // not after the next entry
	list    []Listed
	run     *run         // nil = in the log
	at, end int          // blocks of the run, to be read when list is empty; or, with
	blocks  []blockCount // a filter, their places here
}

// block is the number of the next block.
func (c *cursor) block() int {
	if c.blocks != nil {
		return int(c.blocks[c.at].block)
	}
	return c.at
}

// next sets low. It returns false if nothing is left.
func (c *cursor) next() bool {
	switch {
	case len(c.list) > 0:
		c.low = c.list[0].Key
	case c.at < c.end:
		c.low = c.run.blocks[c.block()].first
	default:
		return false
	}
	return true
}

// newCursor returns a cursor over the blocks of a run that matter, or nil if none
// does.
func (s *Store) newCursor(r *run, o *ListOptions) (*cursor, error) {
	if !o.After.Less(r.last) || r.blocks[0].first.Due >= o.To {
		return nil, nil
	}
	x := s.index
	x.mu.Lock()
	next := r.next
	x.mu.Unlock()
	first := max(0, r.blockOf(next), r.blockBefore(o.After))
	end := r.blockBefore(Key{Due: o.To}) + 1
	c := &cursor{run: r, at: first, end: end}
	if len(o.Exchanges) > 0 {
		list, err := r.blocksOfAll(o.Exchanges, s.log)
		if err != nil {
			return nil, err
		}
		c.blocks = list
		c.at, c.end = placeOfBlock(list, first), placeOfBlock(list, end)
	}
	if !c.next() {
		return nil, nil
	}
	return c, nil
}

// placeOfBlock returns the place of the first item for a block or a later one.
func placeOfBlock(list []blockCount, block int) int {
	i, _ := slices.BinarySearchFunc(list, block, func(c blockCount, block int) int { return int(c.block) - block })
	return i
}

// blockBefore returns the last block that begins at or before a key, or -1.
func (r *run) blockBefore(k Key) int {
	i, found := slices.BinarySearchFunc(r.blocks, k, func(b block, k Key) int { return b.first.compare(k) })
	if found {
		return i
	}
	return i - 1
}

// fillCursor reads the next block.
func (s *Store) fillCursor(c *cursor, o *ListOptions) error {
	r, p := c.run, &s.log.images
	m := p.get()
	defer p.release(m)
	if err := r.read(m, c.block(), s.log, func(int64, int64) {}); err != nil {
		return err
	}
	c.at++
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range m.records {
		f := &m.records[i]
		if len(c.list) < o.Limit && o.takes(f.key, f.exchange) && r.waits(f) {
			c.list = append(c.list, Listed{f.key, f.exchange, f.length})
		}
	}
	return nil
}

// waits reports whether a record waits. The index is locked.
func (r *run) waits(f *found) bool {
	return f.off >= r.next && f.off < r.state.stop && !r.isSkipped(f)
}

// cursors is a heap by low; see container/heap.
type cursors []*cursor

func (h cursors) Len() int           { return len(h) }
func (h cursors) Less(i, j int) bool { return h[i].low.Less(h[j].low) }
func (h cursors) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *cursors) Push(c any) { *h = append(*h, c.(*cursor)) }

// Pop implements heap.Interface.
func (h *cursors) Pop() any {
	old := *h
	c := old[len(old)-1]
	*h = old[:len(old)-1]
	return c
}
