package store

// source is something that delayed entries come from in (due, seq) order.
type source struct {
	head  node // the first that waits, or something before it
	place int  // in index.sources, plus one; 0 = not there, nothing waits
	fresh *fresh
	run   *run // one of the two
}

// empty reports whether nothing waits here.
func (s *source) empty() bool {
	if s.fresh != nil {
		return s.fresh.waiting == 0
	}
	return s.run.consumed()
}

// holder is the segment or the file of the run.
func (s *source) holder() *segment {
	if s.fresh != nil {
		return s.fresh.seg
	}
	return s.run.segment
}

// fixLocked puts a source where it belongs after its head changed.
func (x *index) fixLocked(s *source) {
	switch {
	case s.empty():
		if s.place > 0 {
			x.removeSource(s)
		}
	case s.place == 0:
		x.sources = append(x.sources, s)
		s.place = len(x.sources)
		x.up(s)
	default:
		x.up(s)
		x.sink(s)
	}
}

func (x *index) removeSource(s *source) {
	last := x.sources[len(x.sources)-1]
	x.sources = x.sources[:len(x.sources)-1]
	if last != s {
		last.place = s.place
		x.sources[last.place-1] = last
		x.up(last)
		x.sink(last)
	}
	s.place = 0
}

// sources is a binary heap; place-1 is an element's own position.

func (x *index) up(s *source) {
	i := s.place - 1
	for i > 0 {
		p := (i - 1) / 2
		if !s.head.less(x.sources[p].head) {
			break
		}
		x.put(i, x.sources[p])
		i = p
	}
	x.put(i, s)
}

func (x *index) sink(s *source) {
	i := s.place - 1
	for {
		c := 2*i + 1
		if c >= len(x.sources) {
			break
		}
		if c+1 < len(x.sources) && x.sources[c+1].head.less(x.sources[c].head) {
			c++
		}
		if !x.sources[c].head.less(s.head) {
			break
		}
		x.put(i, x.sources[c])
		i = c
	}
	x.put(i, s)
}

func (x *index) put(i int, s *source) {
	x.sources[i] = s
	s.place = i + 1
}
