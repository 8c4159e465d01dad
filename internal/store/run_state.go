package store

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// runState is what of a run is still pending: the records from done up to stop,
// but for those that were cancelled and those of dropped exchanges. The log has
// it, as a whole from time to time and as changes in between.
type runState struct {
	done      uint32 // offset: what is before has ended
	stop      uint32 // offset: what is behind was merged into another run
	cancelled bitmap // by ordinal
	dropped   []uint32
	left      map[uint32]Pending // by exchange; counters only
}

// keepStateLocked notes that the state of a run was logged just now. The record
// counts as live as long as there is no later one.
func (l *log) keepStateLocked(r *run) {
	if g := l.segment(r.stateIn); g != nil {
		g.live.Add(-r.stateBytes)
	}
	g := l.active()
	r.stateIn, r.stateBytes = g.id, recordHeaderBytes+16+8*int64(len(r.state.cancelled))
	g.live.Add(r.stateBytes)
	g.idle++
}

// bitmap is a set of small numbers; nil is empty.
type bitmap []uint64

func (b bitmap) has(i uint32) bool {
	w := int(i / 64)
	return w < len(b) && b[w]>>(i%64)&1 != 0
}

func (b bitmap) with(i uint32) bitmap {
	for len(b) <= int(i/64) {
		b = append(b, 0)
	}
	b[i/64] |= 1 << (i % 64)
	return b
}

func (b bitmap) count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// countIn returns how many there are in [lo, hi).
func (b bitmap) countIn(lo, hi uint32) (n uint32) {
	for i := lo; i < hi && int(i/64) < len(b); {
		w := b[i/64] >> (i % 64)
		width := min(64-i%64, hi-i)
		if width < 64 {
			w &= 1<<width - 1
		}
		n += uint32(bits.OnesCount64(w))
		i += width
	}
	return n
}

func (s *runState) isDropped(exchange uint32) bool {
	return len(s.dropped) > 0 && slices.Contains(s.dropped, exchange)
}

// take subtracts entries that ended.
func (s *runState) take(exchange uint32, ended Pending) {
	p, ok := s.left[exchange]
	if !ok {
		return
	}
	p.Count -= min(ended.Count, p.Count)
	p.Bytes -= min(ended.Bytes, p.Bytes)
	if p.Count == 0 {
		delete(s.left, exchange)
		return
	}
	s.left[exchange] = p
}

func oneOf(length uint32) Pending { return Pending{1, uint64(length)} }

// cancel takes one entry out of those that wait.
func (s *runState) cancel(c *canceledInRun) {
	s.cancelled = s.cancelled.with(c.ordinal)
	s.take(c.exchange, oneOf(c.length))
}

func (s *runState) put(exchange, length uint32) {
	p := s.left[exchange]
	s.left[exchange] = Pending{p.Count + 1, p.Bytes + uint64(length)}
}

func (s *runState) total() (p Pending) {
	for _, q := range s.left {
		p.Count += q.Count
		p.Bytes += q.Bytes
	}
	return p
}

// append encodes the body of a kindRun record.
func (s *runState) append(b []byte, id uint32) []byte {
	b = binary.AppendUvarint(b, uint64(id))
	b = binary.AppendUvarint(b, uint64(s.done))
	b = binary.AppendUvarint(b, uint64(s.stop))
	b = binary.AppendUvarint(b, uint64(len(s.left)))
	for ex, p := range s.left {
		b = binary.AppendUvarint(b, uint64(ex))
		b = binary.AppendUvarint(b, p.Count)
		b = binary.AppendUvarint(b, p.Bytes)
	}
	b = binary.AppendUvarint(b, uint64(len(s.dropped)))
	for _, ex := range s.dropped {
		b = binary.AppendUvarint(b, uint64(ex))
	}
	for _, w := range s.cancelled {
		b = le.AppendUint64(b, w)
	}
	return b
}

// runState decodes the body of a kindRun record.
func (r *reader) runState() (id uint32, s runState) {
	id = uint32(r.uvarint())
	s.done, s.stop = uint32(r.uvarint()), uint32(r.uvarint())
	s.left = map[uint32]Pending{}
	for range r.length() {
		ex := uint32(r.uvarint())
		s.left[ex] = Pending{Count: r.uvarint(), Bytes: r.uvarint()}
	}
	for range r.length() {
		s.dropped = append(s.dropped, uint32(r.uvarint()))
	}
	if len(r.b)%8 != 0 {
		r.bad = true
	}
	for len(r.b) > 0 && !r.bad {
		s.cancelled = append(s.cancelled, r.u64())
	}
	return id, s
}

// length reads a number of items, each of which takes a byte or more.
func (r *reader) length() uint64 {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return n
}

// canceledInRun is the body of a kindEnd record: an entry was cancelled whose
// record is in a run.
type canceledInRun struct {
	run, ordinal, exchange, length uint32
}

func (c *canceledInRun) append(b []byte) []byte {
	for _, v := range [...]uint32{c.run, c.ordinal, c.exchange, c.length} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return b
}

func (r *reader) canceledInRun() canceledInRun {
	return canceledInRun{
		run: uint32(r.uvarint()), ordinal: uint32(r.uvarint()),
		exchange: uint32(r.uvarint()), length: uint32(r.uvarint()),
	}
}

// flushedSegments is the body of a kindFlush record: from here on what waited in
// these segments is served from the run that the next record of the group names,
// but for the entries that were in flight.
type flushedSegments struct {
	segments []uint32
	flying   []uint64 // sequence numbers
}

func (f *flushedSegments) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(f.segments)))
	for _, id := range f.segments {
		b = binary.AppendUvarint(b, uint64(id))
	}
	for _, seq := range f.flying {
		b = binary.AppendUvarint(b, seq)
	}
	return b
}

func (r *reader) flushedSegments() (f flushedSegments) {
	for range r.length() {
		f.segments = append(f.segments, uint32(r.uvarint()))
	}
	for len(r.b) > 0 && !r.bad {
		f.flying = append(f.flying, r.uvarint())
	}
	return f
}
