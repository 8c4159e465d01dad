package broker

import "github.com/duepost/duepost/internal/store"

// What a queue does with chunks that are paged; see index and pager.

// listLocked tells the pager of a queue that may have complete chunks.
func (q *Queue) listLocked(pos uint64) {
	if q.listed {
		return
	}
	if x, _ := q.index.of(pos); len(x.chunks) > 1 {
		q.listed = true
		q.broker.pager.add(q)
	}
}

// pageOut pages chunks, not nearer to the cursor than near, until the pager has room. It is the
// pager's: one call at a time.
func (q *Queue) pageOut(near uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	short := true
	for x := range q.index.each {
		if len(x.chunks) > 1 {
			short = false
			if err := q.pageOutLocked(x, near); err != nil {
				return err
			}
		}
	}
	if short {
		q.listed = false
		q.broker.pager.remove(q)
	}
	return nil
}

// pageOutLocked does so with one index. It gives up the lock again and again.
func (q *Queue) pageOutLocked(x *index, near uint64) error {
	for left := len(x.chunks); left > 0 && !q.broker.pager.hasRoom(); {
		n, c := x.nextPageable(near, &left)
		if c != nil && c.page == 0 {
			if err := q.writeLocked(x, n, c); err != nil {
				return err
			}
		}
		if c != nil && x.chunk(n) == c && c.page != 0 && c.isPageable() {
			x.pageOut(c)
		}
		q.mu.Unlock() // others first
		q.mu.Lock()
	}
	return nil
}

// writeLocked gives a chunk its page, unless it changes meanwhile. It gives up the lock while it
// writes.
func (q *Queue) writeLocked(x *index, n uint64, c *chunk) error {
	p := q.broker.pager
	p.copyOf(c)
	edits := c.edits
	q.mu.Unlock()
	page, err := p.write()
	q.mu.Lock()
	if err != nil {
		return err
	}
	if x.chunk(n) != c || c.edits != edits {
		p.free(page)
		return nil
	}
	c.page = page
	return nil
}

// loadLocked brings the entry of a paged position into memory, with all of its chunk. It gives up the lock while it reads:
// whoever calls it looks again at all that it knew. A chunk that somebody else has loaded or
// emptied meanwhile is no error.
func (q *Queue) loadLocked(pos uint64) error {
	x, at := q.index.of(pos)
	n := at / chunkSpan
	c := x.chunk(n)
	if c == nil || !c.paged {
		return nil
	}
	p := q.broker.pager
	where, edits, live := c.page, c.edits, c.ready
	q.mu.Unlock()
	entries, err := p.read(where, live)
	q.mu.Lock()
	if x.chunk(n) != c || !c.paged || c.edits != edits {
		p.discard(&entries)
		return nil
	}
	if err != nil {
		return err
	}
	x.pageIn(c, &entries)
	if len(q.relocated) > 0 {
		q.followPageLocked(pos - pos%chunkSpan)
	}
	q.loadRetry = 0
	return nil
}

// followPageLocked corrects references that were relocated while the page could not be read.
func (q *Queue) followPageLocked(first uint64) {
	for pos := first; pos < first+chunkSpan; pos++ {
		if r, ok := q.relocated[pos]; ok && q.index.isLive(pos) {
			if q.index.relocate(pos, r.from, r.to) {
				q.broker.store.Drop(r.from)
			}
			delete(q.relocated, pos)
		}
	}
}

// loadAhead is the pager's.
func (q *Queue) loadAhead(pos uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	// Who needs the chunk will meet the same error and tell of it.
	_ = q.loadLocked(pos)
}

// readAheadLocked has the chunk behind that of a position loaded, once for each.
func (q *Queue) readAheadLocked(pos uint64) {
	n := pos / chunkSpan
	if n == q.readFrom {
		return
	}
	q.readFrom = n
	x, at := q.index.of(pos)
	if c := x.chunk(at/chunkSpan + 1); c != nil && c.paged {
		q.broker.pager.readAhead(q, pos+chunkSpan)
	}
}

// loadAbsentLocked loads what a round has missed. If that is not possible the queue stands still
// until it is: its order is kept, and nothing is lost.
func (q *Queue) loadAbsentLocked(d *dispatch) (loaded bool) {
	now := q.broker.nowMillis()
	if now < q.loadRetry {
		return false
	}
	if err := q.loadLocked(d.absent); err != nil {
		q.loadRetry = now + pageRetry.Milliseconds()
		q.noteUnloaded(err)
		return false
	}
	return true
}

func (q *Queue) noteUnloaded(err error) {
	q.broker.log.Error("queue stands still: entries in the scratch file cannot be read; a restart makes them anew",
		"vhost", q.vhost.name, "queue", q.name, "err", err)
}

// relocation is a change of a reference that could not be made yet.
type relocation struct{ from, to store.Ref }

// relocateLaterLocked keeps a change of the reference of a position that is reserved or paged.
func (q *Queue) relocateLaterLocked(pos uint64, from, to store.Ref) {
	if q.relocated == nil {
		q.relocated = make(map[uint64]relocation)
	}
	known, ok := q.relocated[pos]
	switch {
	case !ok:
		q.relocated[pos] = relocation{from, to}
	case known.to == from:
		q.relocated[pos] = relocation{known.from, to}
	}
}
