package store

import (
	"fmt"
	"math"
	"slices"
)

// find looks for a key in the new run.
func (m *merge) find(k Key) (found, bool, error) {
	if m.run.count == 0 {
		return found{}, false, nil
	}
	number := m.run.blockFor(k)
	if number < 0 {
		return found{}, false, nil
	}
	if err := m.load(number); err != nil {
		return found{}, false, err
	}
	i, ok := slices.BinarySearchFunc(m.image.records, k, func(f found, k Key) int { return f.key.compare(k) })
	if !ok {
		return found{}, false, nil
	}
	return m.image.records[i], true, nil
}

func (m *merge) load(number int) error {
	if m.loaded && m.image.number == number {
		return nil
	}
	err := m.run.read(&m.image, number, m.c.log, func(int64, int64) {})
	m.loaded = err == nil
	return err
}

// after returns the offset of the first record behind a key.
func (m *merge) after(k Key) (uint32, error) {
	r := m.run
	if r.count == 0 || k.Less(r.blocks[0].first) {
		return segmentHeaderBytes / 8, nil
	}
	if !k.Less(r.last) {
		return r.end, nil
	}
	i, ok := slices.BinarySearchFunc(r.blocks, k, func(b block, k Key) int { return b.first.compare(k) })
	if !ok {
		i--
	}
	if err := m.load(i); err != nil {
		return 0, err
	}
	for _, f := range m.image.records {
		if k.Less(f.key) {
			return f.off, nil
		}
	}
	_, to := r.bounds(i)
	return to, nil
}

// install is step 3. Reads are done before the index is locked: first of all
// what was cancelled, while it is much.
func (m *merge) install() error {
	x := m.c.s.index
	ended := map[Key]found{}
	for more := math.MaxInt; more > mergeWidth; {
		var err error
		if more, err = m.resolveCancelled(ended); err != nil {
			return err
		}
	}
	x.popping.Lock()
	defer x.popping.Unlock()
	x.ending.Lock()
	defer x.ending.Unlock()
	for {
		if _, err := m.resolveCancelled(ended); err != nil {
			return err
		}
		popped, next, err := m.resolvePopped()
		if err != nil {
			return err
		}
		if err := m.swap(ended, popped, next); err != errAgain {
			return err
		}
	}
}

// resolveCancelled looks for what was cancelled since step 1, and returns how
// much that was.
func (m *merge) resolveCancelled(ended map[Key]found) (n int, err error) {
	x := m.c.s.index
	x.mu.Lock()
	var keys []Key
	for _, s := range m.sources {
		keys = append(keys, s.run.canceled...)
		s.run.canceled = nil
	}
	x.mu.Unlock()
	slices.SortFunc(keys, Key.compare)
	for _, k := range keys {
		f, ok, err := m.find(k)
		if err != nil {
			return 0, fmt.Errorf("merge runs: %w", err)
		}
		if ok {
			ended[k] = f
		}
	}
	return len(keys), nil
}

// resolvePopped looks for what is in flight since step 1, and for what waits
// first. Nothing is popped or ended meanwhile.
func (m *merge) resolvePopped() (popped map[Key]found, next uint32, err error) {
	x := m.c.s.index
	x.mu.Lock()
	last := Key{Due: -1}
	var flying []Key
	for _, s := range m.sources {
		if last.Less(s.run.popped) {
			last = s.run.popped
		}
	}
	for _, fl := range x.inFlight() {
		if r := fl.from.run; r != nil && r.merging {
			flying = append(flying, fl.key)
		}
	}
	x.mu.Unlock()
	popped = map[Key]found{}
	for _, k := range flying {
		f, ok, err := m.find(k)
		if err != nil {
			return nil, 0, fmt.Errorf("merge runs: %w", err)
		}
		if ok {
			popped[k] = f
		}
	}
	next, err = m.after(last)
	return popped, next, err
}

// swap is the instant of step 3. errAgain means that it has to be repeated.
func (m *merge) swap(ended, popped map[Key]found, next uint32) error {
	x, l := m.c.s.index, m.c.log
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range m.sources {
		if len(s.run.canceled) > 0 {
			return errAgain
		}
	}
	r := m.run
	r.next = next
	r.state = runState{done: next, stop: r.end, left: map[uint32]Pending{}}
	olds := make([]runState, len(m.sources))
	for i, s := range m.sources {
		olds[i] = m.split(s, popped)
	}
	for _, f := range ended {
		r.state.cancelled = r.state.cancelled.with(f.ordinal)
	}
	var rec []byte
	if r.count > 0 {
		rec = appendRecord(rec, kindRun, 0, func(b []byte) []byte { return r.state.append(b, r.id) })
	}
	for i, s := range m.sources {
		rec = appendRecord(rec, kindRun, 0, func(b []byte) []byte { return olds[i].append(b, s.run.id) })
	}
	linkGroup(rec)
	err := m.c.s.placeLocked(rec, forCleaner, func(LSN) {
		for i, s := range m.sources {
			moved := int64(s.run.state.total().Bytes - olds[i].total().Bytes)
			s.run.live.Add(-moved)
			r.live.Add(moved)
			s.run.state = olds[i]
			l.keepStateLocked(s.run)
		}
		if r.count > 0 {
			l.files = append(l.files, r)
			l.publishLocked()
			l.keepStateLocked(r)
		}
		l.stats.Merged += uint64(r.count)
		l.stats.MergedBytes += uint64(r.size)
	})
	if err != nil {
		return err
	}
	m.serveLocked(popped)
	return nil
}

// split divides the state of a run: what stays in it, which is returned, and what
// goes to the new one.
func (m *merge) split(s *mergeSource, popped map[Key]found) runState {
	st := s.run.state
	old := runState{done: st.done, stop: s.from, cancelled: st.cancelled, dropped: st.dropped, left: map[uint32]Pending{}}
	x := m.c.s.index
	for _, fl := range x.inFlight() {
		if fl.from.run != s.run {
			continue
		}
		if f, ok := popped[fl.key]; ok {
			m.run.state.done = min(m.run.state.done, f.off)
		} else if !fl.dropped {
			old.put(fl.exchange, fl.ref.Len)
		}
	}
	old.done = min(old.done, old.stop)
	for ex, p := range st.left {
		stays := old.left[ex]
		if p.Count <= stays.Count {
			continue
		}
		q := m.run.state.left[ex]
		m.run.state.left[ex] = Pending{q.Count + p.Count - stays.Count, q.Bytes + p.Bytes - stays.Bytes}
	}
	for _, ex := range st.dropped {
		if !slices.Contains(m.run.state.dropped, ex) {
			m.run.state.dropped = append(m.run.state.dropped, ex)
		}
	}
	return old
}

func (m *merge) serveLocked(popped map[Key]found) {
	x := m.c.s.index
	x.moves++
	r := m.run
	for i := range x.inFlight() {
		fl := &x.flying[x.landed+i]
		if fl.from.run == nil || !fl.from.run.merging {
			continue
		}
		f, ok := popped[fl.key]
		if !ok {
			continue
		}
		if fl.dropped { // else it is among what is left
			fl.from.run.live.Add(-int64(f.length))
			r.live.Add(int64(f.length))
		}
		fl.ref = Ref{File: r.id, Off: f.off, Len: f.length}
		fl.from = &r.source
	}
	for _, s := range m.sources {
		s.run.seek(s.run.state.stop)
		x.fixLocked(&s.run.source)
		x.runs = slices.DeleteFunc(x.runs, func(o *run) bool { return o == s.run })
	}
	if r.count == 0 {
		return
	}
	x.runs = append(x.runs, r)
	r.seek(r.next)
	x.fixLocked(&r.source)
}
