package store

import (
	"math"
	"slices"
)

// Merging writes what waits in several runs into one: when there are too many, or
// when most of what is in them was cancelled. It is work of the cleaner's
// goroutine:
//
//  1. note how far each is popped;
//  2. write what waits behind that into a new run, in key order;
//  3. in one group of the log: the new run, and that the others end where they
//     were; and at the same instant the index serves it from there.
//
// As nothing can come to wait in a run, what was popped since step 1 is the front
// of the new one. If it is still in flight it is made to refer to that. What was
// in flight at step 1 stays in its run until it ends.

const mergeWidth = 16 // runs at once

type merge struct {
	c       *cleaner
	sources []*mergeSource
	run     *run // the new one
	image   image
	loaded  bool // image
}

// mergeSource is a run that is merged.
type mergeSource struct {
	run    *run
	from   uint32   // offset of what waited at step 1
	flying []flight // of before
	number int      // of image
	image  *image
	at     int
	eof    bool
}

// mergeDue returns the runs that should be merged now, or nil.
func (c *cleaner) mergeDue() []*run {
	x, l := c.s.index, c.log
	x.mu.Lock()
	defer x.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	var sparse []*run
	var garbage int64
	for _, r := range x.runs {
		if r.consumed() {
			continue
		}
		rest := int64(r.state.stop-r.next) * 8
		left := int64(r.state.total().Bytes)
		if rest-left > rest/2 {
			sparse = append(sparse, r)
			garbage += rest - left
		}
	}
	if garbage > l.o.RunBytes {
		return sparse[:min(len(sparse), mergeWidth)]
	}
	if len(x.runs) <= l.o.MaxRuns {
		return nil
	}
	return smallestNeighbours(x.runs)
}

// smallestNeighbours returns the neighbours, in order of age, that have the
// least to copy.
func smallestNeighbours(runs []*run) []*run {
	best, sum := 0, int64(math.MaxInt64)
	width := min(mergeWidth, len(runs))
	for i := 0; i+width <= len(runs); i++ {
		var n int64
		for _, r := range runs[i : i+width] {
			n += int64(r.state.total().Bytes)
		}
		if n < sum {
			best, sum = i, n
		}
	}
	return slices.Clone(runs[best : best+width])
}

// mergeRuns merges the runs into one.
func (c *cleaner) mergeRuns(runs []*run) error {
	m := &merge{c: c}
	size := m.begin(runs)
	defer m.end()
	w, err := newRunWriter(c.log, size)
	if err == nil {
		m.run = w.run
		if err = m.write(w); err == nil {
			err = m.install()
		}
		if err != nil || w.run.count == 0 {
			w.abandon()
		}
	}
	if isFailed(err) {
		c.log.mu.Lock()
		c.log.failLocked(err)
		c.log.mu.Unlock()
	}
	return err
}

// begin is step 1. It returns the most that the new run can hold.
func (m *merge) begin(runs []*run) (size int64) {
	x := m.c.s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range runs {
		r.merging, r.canceled, r.popped = true, nil, Key{Due: -1}
		s := &mergeSource{run: r, from: r.next}
		if !r.consumed() {
			s.number = max(0, r.blockOf(r.next))
		}
		s.eof = r.consumed()
		for _, fl := range x.inFlight() {
			if fl.from.run == r {
				s.flying = append(s.flying, fl)
			}
		}
		m.sources = append(m.sources, s)
		size += int64(r.state.stop-r.next) * 8
	}
	return size
}

func (m *merge) end() {
	x := m.c.s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range m.sources {
		s.run.merging, s.run.canceled = false, nil
	}
}

// write is step 2.
func (m *merge) write(w *runWriter) error {
	for {
		var first *mergeSource
		for _, s := range m.sources {
			if err := m.fill(s); err != nil {
				return err
			}
			if !s.eof && (first == nil || s.image.records[s.at].key.Less(first.image.records[first.at].key)) {
				first = s
			}
		}
		if first == nil {
			break
		}
		f := &first.image.records[first.at]
		at := int64(f.off-first.image.off) * 8
		if _, err := w.add(f.key, first.image.buf[at:at+int64(f.length)]); err != nil {
			return err
		}
		first.at++
	}
	if w.run.count == 0 {
		return nil
	}
	_, err := w.finish()
	return err
}

// fill makes s.at a record that waits, unless there are no more.
func (m *merge) fill(s *mergeSource) error {
	for !s.eof {
		if s.image != nil && s.at < len(s.image.records) {
			return nil
		}
		if s.image != nil {
			s.number++
		}
		if s.number >= len(s.run.blocks) || s.run.blocks[s.number].off >= s.run.state.stop {
			s.eof = true
			return nil
		}
		if s.image == nil {
			s.image = &image{}
		}
		s.at = 0
		if err := s.run.read(s.image, s.number, m.c.log, func(int64, int64) {}); err != nil {
			return err
		}
		m.keepWaiting(s)
	}
	return nil
}

// keepWaiting leaves out of a block what does not wait.
func (m *merge) keepWaiting(s *mergeSource) {
	x := m.c.s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	s.image.records = slices.DeleteFunc(s.image.records, func(f found) bool {
		return f.off < s.from || f.off >= s.run.state.stop || s.run.isSkipped(&f)
	})
}
