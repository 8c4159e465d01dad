package store

import (
	"encoding/binary"
	"slices"
)

// spans is a set of stretches of a file, in units of 8 bytes: ascending, apart
// and never adjacent. What is left of a run shrinks from its front, which makes
// one span of it however long the run is.
type spans []span

type span struct{ from, to uint32 }

// recordSpan is where a record lies, with its padding.
func recordSpan(r Ref) span { return span{r.Off, r.Off + uint32(align(int64(r.Len))/8)} }

// find returns the first span that ends after at.
func (s spans) find(at uint32) int {
	i, _ := slices.BinarySearchFunc(s, at, func(x span, at uint32) int {
		if x.to > at {
			return 1
		}
		return -1
	})
	return i
}

// overlaps reports whether any of p is in the set.
func (s spans) overlaps(p span) bool {
	i := s.find(p.from)
	return i < len(s) && s[i].from < p.to
}

// add puts p in; nothing of it is there yet.
func (s spans) add(p span) spans {
	i := s.find(p.from)
	joinsLast := i > 0 && s[i-1].to == p.from
	joinsNext := i < len(s) && s[i].from == p.to
	switch {
	case joinsLast && joinsNext:
		s[i-1].to = s[i].to
		return slices.Delete(s, i, i+1)
	case joinsLast:
		s[i-1].to = p.to
	case joinsNext:
		s[i].from = p.from
	default:
		return slices.Insert(s, i, p)
	}
	return s
}

// remove takes p out, all of which is in one span, or nothing.
func (s spans) remove(p span) (spans, bool) {
	i := s.find(p.from)
	if p.to <= p.from || i == len(s) || s[i].from > p.from || s[i].to < p.to {
		return s, false
	}
	x := s[i]
	switch {
	case x == p && i == 0:
		return s[1:], true
	case x == p:
		return slices.Delete(s, i, i+1), true
	case x.from == p.from:
		s[i].from = p.to
	case x.to == p.to:
		s[i].to = p.from
	default:
		s[i].to = p.from
		s = slices.Insert(s, i+1, span{p.to, x.to})
	}
	return s, true
}

func appendSpans(b []byte, s spans) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	var at uint32
	for _, p := range s {
		b = binary.AppendUvarint(b, uint64(p.from-at))
		b = binary.AppendUvarint(b, uint64(p.to-p.from))
		at = p.to
	}
	return b
}

// spans reads what appendSpans wrote.
func (r *reader) spans() spans {
	n := r.uvarint()
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	list := make(spans, 0, n)
	var at uint64
	for range n {
		from := at + r.uvarint()
		to := from + r.uvarint()
		if r.bad || from < at || to <= from || to > 1<<32-1 || (len(list) > 0 && from == at) {
			r.bad = true
			return nil
		}
		list = append(list, span{uint32(from), uint32(to)})
		at = to
	}
	return list
}
