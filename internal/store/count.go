package store

import (
	"fmt"
	"slices"
	"sort"
)

// maxBuckets is how many numbers a histogram may have.
const maxBuckets = 100_000

// histogramReads is how many blocks a histogram reads where it takes that to know
// exactly; what it would take more is estimated.
const histogramReads = 256

// Count returns how many entries that are due at or after from and before to wait;
// to 0 means no end. Of exchanges only those count, if any are given. It is exact
// unless much changes its place meanwhile. It may read up to two blocks of each run
// from the disk, and those from which something was cancelled if they are shared
// among exchanges, and holds up nobody.
func (s *Store) Count(from, to int64, exchanges ...uint32) (n uint64, exact bool, err error) {
	if to == 0 {
		to = maxDue + 1
	}
	c := census{from: from, to: to, step: max(1, to-from), exchanges: exchanges, counts: make([]uint64, 1)}
	exact, err = s.take(&c, 0)
	return c.counts[0], exact, err
}

// Histogram returns how many entries wait that are due in [from, from+step),
// [from+step, from+2*step) and so on, the last of them before to. exact is false if
// blocks of runs that lie in several of these were counted by what they have on
// average; the sum is hardly ever wrong.
func (s *Store) Histogram(from, to, step int64, exchanges ...uint32) (counts []uint64, exact bool, err error) {
	n := int64(0)
	if step > 0 && to > from {
		n = (to-from-1)/step + 1
	}
	if n <= 0 || n > maxBuckets {
		return nil, false, fmt.Errorf("count by due: %d numbers, allowed are 1 to %d", n, maxBuckets)
	}
	c := census{from: from, to: to, step: step, exchanges: exchanges, counts: make([]uint64, n)}
	exact, err = s.take(&c, histogramReads)
	return c.counts, exact, err
}

// census counts entries by due.
type census struct {
	from, to, step int64
	exchanges      []uint32
	counts         []uint64
	reads          int // blocks that may still be read, if limited
	limited        bool
	exact          bool
	image          image
}

// take counts all that waits, with up to reads reads, 0 = no limit. It begins anew
// when entries changed their place meanwhile.
func (s *Store) take(c *census, reads int) (exact bool, err error) {
	for tries := 1; ; tries++ {
		clear(c.counts)
		c.reads, c.limited, c.exact = reads, reads > 0, true
		moves := s.index.movesNow()
		s.eachFresh(func(k Key, e *entry) {
			if c.takes(e.exchange) {
				c.add(k.Due, 1)
			}
		})
		err := s.countRuns(c)
		if err == ErrMoved {
			continue
		}
		if err != nil {
			return false, err
		}
		if moves == s.index.movesNow() {
			return c.exact, nil
		}
		if tries == maxTries {
			return false, nil
		}
	}
}

func (s *Store) countRuns(c *census) error {
	for _, r := range s.index.runsNow() {
		v, err := s.view(r, c)
		if err == nil {
			err = v.count(c, s.log)
		}
		if err != nil {
			return s.movedOr(r, err)
		}
	}
	return nil
}

func (c *census) takes(exchange uint32) bool {
	return len(c.exchanges) == 0 || slices.Contains(c.exchanges, exchange)
}

func (c *census) add(due int64, n uint64) {
	if due >= c.from && due < c.to {
		c.counts[(due-c.from)/c.step] += n
	}
}

// runView is what of a run waited at one instant.
type runView struct {
	*run
	first, end int          // its blocks that matter
	own        []blockCount // blocks of the exchanges that count, if not all do
	dropped    []uint32     // by block, how many records are of dropped exchanges; nil = none
	next, stop uint32
	state      runState // cancelled and dropped
}

func (s *Store) view(r *run, c *census) (*runView, error) {
	x := s.index
	x.mu.Lock()
	v := &runView{run: r, next: r.next, stop: r.state.stop}
	v.state.cancelled, v.state.dropped = slices.Clone(r.state.cancelled), slices.Clone(r.state.dropped)
	x.mu.Unlock()
	v.first = max(0, r.blockOf(v.next), r.blockBefore(Key{Due: c.from}))
	v.end = max(v.first, min(r.blockBefore(Key{Due: c.to}), r.blockOf(v.stop-1))+1)
	var err error
	if len(c.exchanges) > 0 {
		wanted := slices.DeleteFunc(slices.Clone(c.exchanges), v.state.isDropped)
		v.own, err = r.blocksOfAll(wanted, s.log)
		return v, err
	}
	if len(v.state.dropped) > 0 {
		v.dropped = make([]uint32, len(r.blocks))
		list, err := r.blocksOfAll(v.state.dropped, s.log)
		if err != nil {
			return nil, err
		}
		for _, b := range list {
			v.dropped[b.block] = b.count
		}
	}
	return v, nil
}

// count adds what waits to the census.
func (v *runView) count(c *census, l *log) error {
	if len(c.exchanges) > 0 {
		for _, b := range v.own[placeOfBlock(v.own, v.first):placeOfBlock(v.own, v.end)] {
			if err := v.countBlock(int(b.block), int(b.count), c, l); err != nil {
				return err
			}
		}
		return nil
	}
	for n := v.first; n < v.end; n++ {
		if to := v.insideUpTo(n, c); to > n {
			waiting := v.ordinal(to) - v.ordinal(n) - v.state.cancelled.countIn(v.ordinal(n), v.ordinal(to))
			c.add(v.blocks[n].first.Due, uint64(waiting))
			n = to - 1
			continue
		}
		if err := v.countBlock(n, int(v.ordinal(n+1)-v.ordinal(n)), c, l); err != nil {
			return err
		}
	}
	return nil
}

// ordinal is that of the first record of a block, or how many records there are.
func (v *runView) ordinal(block int) uint32 {
	if block < len(v.blocks) {
		return v.blocks[block].ordinal
	}
	return v.run.count
}

// isInside reports whether all of a block lies between next and stop and in one
// bucket that ends before until.
func (v *runView) isInside(block int, until int64, c *census) bool {
	from, to := v.bounds(block)
	last := v.last.Due
	if block+1 < len(v.blocks) {
		last = v.blocks[block+1].first.Due
	}
	return from >= v.next && to <= v.stop && v.blocks[block].first.Due >= c.from && last < until
}

// insideUpTo returns up to which block, from one on, all lie in one bucket. None does
// if some records are of dropped exchanges.
func (v *runView) insideUpTo(block int, c *census) int {
	due := v.blocks[block].first.Due
	if v.dropped != nil || due < c.from {
		return block
	}
	until := c.bucketEnd(due)
	if !v.isInside(block, until, c) {
		return block // its beginning does not wait, that of later ones may
	}
	n := sort.Search(v.end-block, func(i int) bool { return !v.isInside(block+i, until, c) })
	return block + n
}

// bucketEnd returns where the bucket ends that a due is in.
func (c *census) bucketEnd(due int64) int64 {
	return min(c.to, c.from+((due-c.from)/c.step+1)*c.step)
}

// countBlock counts the records of one block, of which total are of exchanges that
// count, or were dropped.
func (v *runView) countBlock(block, total int, c *census, l *log) error {
	lo, hi := v.ordinal(block), v.ordinal(block+1)
	all, cancelled, dropped := int(hi-lo), int(v.state.cancelled.countIn(lo, hi)), 0
	if v.dropped != nil {
		dropped = int(v.dropped[block])
	}
	due := v.blocks[block].first.Due
	whole := due >= c.from && v.isInside(block, c.bucketEnd(due), c)
	switch {
	case whole && cancelled == 0:
		c.add(due, uint64(total-dropped))
	case whole && dropped == 0 && total == all:
		c.add(due, uint64(total-cancelled))
	case c.limited && c.reads == 0:
		v.estimate(block, total*(all-cancelled-dropped)/max(1, all), c)
	default:
		c.reads--
		return v.readBlock(block, c, l)
	}
	return nil
}

// readBlock counts record by record.
func (v *runView) readBlock(block int, c *census, l *log) error {
	m := &c.image
	if err := v.read(m, block, l, func(int64, int64) {}); err != nil {
		return err
	}
	for i := range m.records {
		f := &m.records[i]
		waits := f.off >= v.next && f.off < v.stop && !v.state.cancelled.has(f.ordinal) && !v.state.isDropped(f.exchange)
		if waits && c.takes(f.exchange) {
			c.add(f.key.Due, 1)
		}
	}
	return nil
}

// estimate spreads n records evenly over a block.
func (v *runView) estimate(block, n int, c *census) {
	c.exact = false
	from, to := v.bounds(block)
	first, last := v.blocks[block].first.Due, v.last.Due
	if block+1 < len(v.blocks) {
		last = v.blocks[block+1].first.Due
	}
	for i := range n {
		if off := from + uint32(int(to-from)*i/n); off >= v.next && off < v.stop {
			c.add(first+(last-first)/int64(n)*int64(i), 1)
		}
	}
}
