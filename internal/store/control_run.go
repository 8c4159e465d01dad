package store

import (
	"encoding/binary"
	"slices"
)

// Records of the log that say what is left of a run; see docs/FORMATS.md. In log
// order they give the state: a cover adds, an end takes away, a state replaces.

// cover says that entries are served from a run from now on, not from the log.
type cover struct {
	run  uint32
	rest spans
	seqs []uint64 // ascending
	left map[uint32]Pending
}

func (c *cover) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(c.run))
	b = appendSpans(b, c.rest)
	b = appendLeft(b, c.left)
	var last uint64
	for _, s := range c.seqs {
		b = binary.AppendUvarint(b, s-last)
		last = s
	}
	return b
}

func (r *reader) cover() cover {
	c := cover{run: uint32(r.uvarint()), rest: r.spans(), left: r.left()}
	var last uint64
	for len(r.b) > 0 && !r.bad {
		last += r.uvarint()
		c.seqs = append(c.seqs, last)
	}
	return c
}

func appendLeft(b []byte, left map[uint32]Pending) []byte {
	b = binary.AppendUvarint(b, uint64(len(left)))
	for ex, p := range left {
		b = binary.AppendUvarint(b, uint64(ex))
		b = binary.AppendUvarint(b, p.Count)
		b = binary.AppendUvarint(b, p.Bytes)
	}
	return b
}

func (r *reader) left() map[uint32]Pending {
	n := r.uvarint()
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	left := make(map[uint32]Pending, n)
	for range n {
		ex := uint32(r.uvarint())
		left[ex] = Pending{Count: r.uvarint(), Bytes: r.uvarint()}
	}
	return left
}

// endCoder encodes entries of runs that ended, each as the difference from the
// end of the one before.
type endCoder struct {
	file, at, ex uint32
}

func (c *endCoder) append(b []byte, ref Ref, ex uint32) []byte {
	b = binary.AppendVarint(b, int64(ref.File)-int64(c.file))
	b = binary.AppendVarint(b, int64(ref.Off)-int64(c.at))
	b = binary.AppendUvarint(b, uint64(ref.Len))
	b = binary.AppendVarint(b, int64(ex)-int64(c.ex))
	*c = endCoder{ref.File, recordSpan(ref).to, ex}
	return b
}

func (c *endCoder) parse(r *reader) (Ref, uint32) {
	ref := Ref{File: uint32(int64(c.file) + r.varint()), Off: uint32(int64(c.at) + r.varint())}
	ref.Len = uint32(r.uvarint())
	ex := uint32(int64(c.ex) + r.varint())
	*c = endCoder{ref.File, recordSpan(ref).to, ex}
	return ref, ex
}

// appendRetryPlace adds to a retry of an entry whose record is in a run what
// recovery cannot know: it has the run's index only.
func appendRetryPlace(b []byte, ref Ref, ex uint32) []byte {
	b = binary.AppendUvarint(b, uint64(ex))
	b = binary.AppendUvarint(b, uint64(ref.File))
	b = binary.AppendUvarint(b, uint64(ref.Off))
	return binary.AppendUvarint(b, uint64(ref.Len))
}

func (r *reader) retryPlace() (Ref, uint32) {
	ex := uint32(r.uvarint())
	return Ref{File: uint32(r.uvarint()), Off: uint32(r.uvarint()), Len: uint32(r.uvarint())}, ex
}

// runState is what is left of a run, as recovery gathers it.
type runState struct {
	rest spans
	left map[uint32]Pending
}

// end takes an entry out and reports whether it was there.
func (s *runState) end(ref Ref, ex uint32) bool {
	var ok bool
	if s.rest, ok = s.rest.remove(recordSpan(ref)); !ok {
		return false
	}
	takeLeft(s.left, ex, 1, uint64(ref.Len))
	return true
}

func takeLeft(left map[uint32]Pending, ex uint32, n, bytes uint64) {
	p := left[ex]
	p.Count -= min(n, p.Count)
	p.Bytes -= min(bytes, p.Bytes)
	if p.Count == 0 {
		delete(left, ex)
		return
	}
	left[ex] = p
}

func (s *runState) cover(c *cover) {
	for _, p := range c.rest {
		if !s.rest.overlaps(p) {
			s.rest = s.rest.add(p)
		}
	}
	for ex, p := range c.left {
		q := s.left[ex]
		s.left[ex] = Pending{q.Count + p.Count, q.Bytes + p.Bytes}
	}
}

func appendState(b []byte, id uint32, rest spans, left map[uint32]Pending) []byte {
	b = binary.AppendUvarint(b, uint64(id))
	return appendLeft(appendSpans(b, rest), left)
}

func sortedSeqs(seqs []uint64) []uint64 {
	slices.Sort(seqs)
	return seqs
}
