package store

import "sync"

// index holds the delayed entries that wait or are in flight. They come from
// sources, each in (due, seq) order: what is fresh, by segment of the log, and
// runs. What comes first of all is found by a heap of the sources.
//
// Entries in flight are ended in the order in which they were popped. A run is
// therefore consumed from its front, and how far says all about it but for
// what was cancelled further on.
//
// Locks, outermost first: popping, ending, mu, and the log's.
type index struct {
	// popping is held while entries are popped, with the reads that takes, and by
	// whoever must know that none is popped meanwhile.
	popping sync.Mutex
	// ending is held from when a batch is checked against what is in flight until
	// it is applied. What is in flight changes its place only under it.
	ending sync.Mutex

	mu   sync.Mutex
	calm sync.Cond // on mu: there is room for fresh entries, or the store stopped

	// All below is guarded by mu.

	sources []*source
	fresh   []*fresh
	runs    []*run
	flying  []flight // in the order popped; flying[:landed] have ended
	landed  int
	bytes   int64    // of fresh records that wait
	arrays  []arrays // of fresh sets that are gone, for the next ones
	stopped error
	moves   uint64 // how often entries that wait changed their place

	total   Pending
	pending map[uint32]*Pending // by exchange
	last    *Pending            // of lastID, saves the map lookup
	lastID  uint32
}

// flight is an entry that was popped and has not ended.
type flight struct {
	key      Key
	ref      Ref
	exchange uint32
	dropped  bool // its exchange was dropped and its count subtracted
	from     *source
}

func newIndex() *index {
	x := &index{pending: map[uint32]*Pending{}}
	x.calm.L = &x.mu
	return x
}

// freshLocked returns the fresh entries of a segment, made if there are none.
func (x *index) freshLocked(g *segment) *fresh {
	if g.fresh == nil {
		g.fresh = &fresh{seg: g}
		if n := len(x.arrays); n > 0 {
			g.fresh.entries, g.fresh.heap = x.arrays[n-1].entries, x.arrays[n-1].heap
			x.arrays = x.arrays[:n-1]
		}
		g.fresh.source.fresh = g.fresh
		x.fresh = append(x.fresh, g.fresh)
	}
	return g.fresh
}

// addLocked makes an entry pending whose record is in a segment of the log.
func (x *index) addLocked(g *segment, k Key, exchange uint32, ref Ref) {
	x.insertLocked(g, k, exchange, ref)
	x.countLocked(exchange, 1, ref.Len)
}

func (x *index) insertLocked(g *segment, k Key, exchange uint32, ref Ref) {
	f := x.freshLocked(g)
	f.add(k, entry{off: ref.Off, length: ref.Len, exchange: exchange})
	x.bytes += int64(ref.Len)
	x.fixLocked(&f.source)
}

func (x *index) countLocked(exchange uint32, n int, length uint32) {
	if x.last == nil || x.lastID != exchange {
		p := x.pending[exchange]
		if p == nil {
			p = &Pending{}
			x.pending[exchange] = p
		}
		x.last, x.lastID = p, exchange
	}
	bytes := uint64(n) * uint64(length)
	x.last.Count += uint64(n)
	x.last.Bytes += bytes
	x.total.Count += uint64(n)
	x.total.Bytes += bytes
}

// popLocked takes the first waiting entry due at or before now into flight. It
// returns the run that has to be loaded first, if that is so.
func (x *index) popLocked(now int64) (d Due, ok bool, load *run) {
	for len(x.sources) > 0 && x.sources[0].head.due <= now {
		s := x.sources[0]
		if s.fresh != nil {
			k, e := s.fresh.pop()
			x.bytes -= int64(e.length)
			d = Due{Key: k, ExchangeID: e.exchange, Ref: s.fresh.ref(&e)}
			ok = true
		} else {
			if !s.run.isLoaded() {
				return Due{}, false, s.run
			}
			d, ok = s.run.pop()
		}
		x.fixLocked(s)
		if ok {
			x.flying = append(x.flying, flight{key: d.Key, ref: d.Ref, exchange: d.ExchangeID, from: s})
			return d, true, nil
		}
	}
	return Due{}, false, nil
}

// inFlight returns what is in flight, oldest first.
func (x *index) inFlight() []flight { return x.flying[x.landed:] }

func (x *index) isFlying(k Key) bool {
	for i := range x.inFlight() {
		if x.flying[x.landed+i].key == k {
			return true
		}
	}
	return false
}

// landLocked ends the oldest entry in flight.
func (x *index) landLocked() {
	fl := &x.flying[x.landed]
	if f := fl.from.fresh; f != nil {
		f.land(fl.key.Seq)
		x.discardIfDone(f)
	}
	if !fl.dropped {
		x.countLocked(fl.exchange, -1, fl.ref.Len)
	}
	x.landed++
	switch {
	case x.landed == len(x.flying):
		x.flying, x.landed = x.flying[:0], 0
	case x.landed >= 1024 && x.landed >= len(x.flying)/2:
		x.flying = x.flying[:copy(x.flying, x.flying[x.landed:])]
		x.landed = 0
	}
}

// discardIfDone forgets the entries of a segment of which none is left.
func (x *index) discardIfDone(f *fresh) {
	if !f.flushed || f.waiting+f.flying > 0 {
		return
	}
	x.forgetFresh(f)
}

func (x *index) forgetFresh(f *fresh) {
	for i, o := range x.fresh {
		if o == f {
			x.fresh[i] = x.fresh[len(x.fresh)-1]
			x.fresh = x.fresh[:len(x.fresh)-1]
			break
		}
	}
	f.seg.fresh = nil
	x.keepLocked(arrays{f.entries, f.heap})
}

// arrays is the memory of a fresh set.
type arrays struct {
	entries []entry
	heap    []node
}

// keepLocked keeps memory for the next fresh set, unless there is enough.
func (x *index) keepLocked(a arrays) {
	if cap(a.entries) > 0 && len(x.arrays) < maxArrays {
		x.arrays = append(x.arrays, arrays{a.entries[:0], a.heap[:0]})
	}
}

const maxArrays = 4

// findFresh returns where an entry is that waits or is in flight.
func (x *index) findFresh(seq uint64) (*fresh, entry) {
	for _, f := range x.fresh {
		if e := f.get(seq); e.state != entryGone {
			return f, e
		}
	}
	return nil, entry{}
}

// dropLocked forgets what waits for an exchange in the log. What is in runs is
// passed over when it comes up.
func (x *index) dropLocked(exchange uint32, gone func(Ref)) {
	if p := x.pending[exchange]; p != nil {
		x.total.Count -= p.Count
		x.total.Bytes -= p.Bytes
		delete(x.pending, exchange)
		x.last = nil
	}
	for i := range x.inFlight() {
		if fl := &x.flying[x.landed+i]; fl.exchange == exchange {
			fl.dropped = true
		}
	}
	for _, f := range x.fresh {
		before := f.bytes
		f.drop(exchange, gone)
		x.bytes += f.bytes - before
		x.fixLocked(&f.source)
	}
}

// nextDueLocked returns the earliest due of the waiting, or, if that is in a run
// that is not loaded, a time not after it.
func (x *index) nextDueLocked() (int64, bool) {
	if len(x.sources) == 0 {
		return 0, false
	}
	return x.sources[0].head.due, true
}

// stop ends all waiting for room.
func (x *index) stop(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopped == nil {
		x.stopped = err
	}
	x.calm.Broadcast()
}
