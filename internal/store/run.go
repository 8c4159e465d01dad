package store

import (
	"fmt"
	"slices"
)

// run is a file of delayed entries sorted by key, written once. What of it is
// still pending is its state (see runState), which is in the log.
type run struct {
	*segment
	source

	// Written once.
	blocks    []block
	end       uint32 // of the last record, in units of 8 bytes
	count     uint32 // records
	seqs      [2]uint64
	last      Key
	born      LSN // what tells of it in the log is behind that; 0 = not known
	exchanges []runExchange
	images    *images
	placeOf   map[uint32]int // in exchanges, by exchange; nil when all is noted
	lists     [][]blockCount // of exchanges: their blocks; nil = in the file
	listsAt   int64          // there
	keys      runKeys
	unsure    bool // records are missing from a rebuilt index, so ordinals may be wrong

	// kept is the block that was loaded last.
	kept imageSlot

	// Guarded by the index lock.

	next     uint32 // offset of the first record that was not popped
	number   int    // of the block that next is in
	image    *image // of that block, nil if it is not loaded
	at       int    // of next in image.records
	merging  bool   // a merge copies what waits here
	canceled []Key  // since the merge began
	popped   Key    // the last since the merge began

	// state is guarded by the log lock, its cancelled, dropped and stop by the
	// index lock too: who changes them holds both.
	state runState

	// Guarded by the log lock.

	lastMove   LSN    // of the last move out of it
	stateIn    uint32 // the segment that has the last record of the state
	stateBytes int64  // of that
	punched    int64  // up to here the file's space was given back
}

// block is a stretch of a run that is read as a whole.
type block struct {
	first   Key
	off     uint32 // in units of 8 bytes
	ordinal uint32 // of its first record in the run
}

const blockBytes = 24

// runExchange says what a run held of one exchange when it was written.
type runExchange struct {
	id          uint32
	count       uint32
	bytes       uint64
	first, last int64  // due
	at, length  uint32 // of the list of its blocks, in the section of such lists
	crc         uint32 // of that list
}

// found is one record of a block.
type found struct {
	key      Key
	off      uint32 // in the run, in units of 8 bytes
	length   uint32
	exchange uint32
	ordinal  uint32
}

func runName(id uint32) string { return fmt.Sprintf("run-%010d", id) }

func parseRunName(name string) (uint32, bool) {
	var id uint32
	if n, err := fmt.Sscanf(name, "run-%010d", &id); n != 1 || err != nil || runName(id) != name {
		return 0, false
	}
	return id, true
}

func newRun(l *log, id uint32) *run {
	r := &run{segment: &segment{id: id, salt: id ^ l.nonce, name: runName(id)}, images: &l.images}
	r.source.run = r
	r.segment.run = r
	r.state = runState{left: map[uint32]Pending{}}
	return r
}

// afterRecord is where the next record begins.
func afterRecord(off, length uint32) uint32 { return off + uint32(align(int64(length))/8) }

// blockOf returns the number of the block that an offset is in.
func (r *run) blockOf(off uint32) int {
	i, found := slices.BinarySearchFunc(r.blocks, off, func(b block, off uint32) int { return int(int64(b.off) - int64(off)) })
	if found {
		return i
	}
	return i - 1
}

// blockFor returns the number of the block that a key would be in, or -1.
func (r *run) blockFor(k Key) int {
	if k.Seq < r.seqs[0] || k.Seq > r.seqs[1] || r.last.Less(k) {
		return -1
	}
	i, found := slices.BinarySearchFunc(r.blocks, k, func(b block, k Key) int {
		switch {
		case b.first.Less(k):
			return -1
		case k.Less(b.first):
			return 1
		}
		return 0
	})
	if found {
		return i
	}
	return i - 1
}

// bounds returns where a block lies, in units of 8 bytes.
func (r *run) bounds(number int) (from, to uint32) {
	to = r.end
	if number+1 < len(r.blocks) {
		to = r.blocks[number+1].off
	}
	return r.blocks[number].off, to
}

// read reads a block into m and finds its records. What is damaged is left out, and
// told to damaged.
func (r *run) read(m *image, number int, l *log, damaged func(off int64, n int64)) error {
	from, to := r.bounds(number)
	b := sized(m.buf, int(to-from)*8)
	m.run, m.number, m.off, m.buf, m.records = r.id, number, from, b, m.records[:0]
	if err := readFull(r.file, b, int64(from)*8); err != nil {
		return fmt.Errorf("read block of %s at %d: %w", r.name, int64(from)*8, err)
	}
	bad := int64(-1)
	for o := int64(0); o < int64(len(b)); {
		rec, ok := recordAt(b[o:])
		if !ok || len(rec) < delayedFixed || kind(rec[12]) != kindDelayed || !recordValid(rec, r.salt, l.table) {
			if bad < 0 {
				bad = o
			}
			o += 8
			continue
		}
		if bad >= 0 {
			damaged(int64(from)*8+bad, o-bad)
			bad = -1
		}
		m.records = append(m.records, found{
			key: recordKey(rec), off: from + uint32(o/8), length: uint32(len(rec)),
			exchange: recordExchange(rec),
			ordinal:  r.blocks[number].ordinal + uint32(le.Uint16(rec[14:])),
		})
		o += align(int64(len(rec)))
	}
	if bad >= 0 {
		damaged(int64(from)*8+bad, int64(len(b))-bad)
	}
	return nil
}

// recordKey is the key of a delayed record.
func recordKey(rec []byte) Key {
	return Key{Due: int64(le.Uint64(rec[delayedSeqOffset-8:])), Seq: le.Uint64(rec[delayedSeqOffset:])}
}

// recordExchange is the exchange of a delayed record.
func recordExchange(rec []byte) uint32 { return le.Uint32(rec[24:]) }

// recordKeyHash is the hash of the publisher's key of a delayed record, 0 if it has
// none.
func recordKeyHash(rec []byte) uint64 {
	o := delayedFixed
	if rec[13]&flagTTL != 0 {
		o += 8
	}
	if rec[13]&flagKeyHash == 0 || len(rec) < o+8 {
		return 0
	}
	return le.Uint64(rec[o:])
}

// consumed reports whether everything was popped that this run has to give.
func (r *run) consumed() bool { return r.next >= r.state.stop }

func (r *run) isLoaded() bool { return r.image != nil }

// seek makes off the offset of the first record to pop.
func (r *run) seek(off uint32) {
	r.next = off
	r.unload()
	if r.consumed() {
		return
	}
	r.number = max(0, r.blockOf(off))
	k := r.blocks[r.number].first
	r.head = node{k.Due, k.Seq}
}

// load takes in the block that next is in.
func (r *run) load(m *image) {
	if r.image != nil || m.number != r.number {
		return // somebody else was here
	}
	m.refs.Add(1)
	r.image = m
	r.at = 0
	for r.at < len(m.records) && m.records[r.at].off < r.next {
		r.at++
	}
	r.settle()
}

// unload lets go of the block.
func (r *run) unload() {
	r.images.release(r.image)
	r.image, r.at = nil, 0
}

// settle finds the first record that waits, from at on, and makes it the head.
func (r *run) settle() {
	recs := r.image.records
	for r.at < len(recs) && r.isSkipped(&recs[r.at]) {
		r.at++
	}
	if r.at < len(recs) && recs[r.at].off < r.state.stop {
		f := &recs[r.at]
		r.next, r.head = f.off, node{f.key.Due, f.key.Seq}
		return
	}
	_, to := r.bounds(r.number)
	r.next = min(to, r.state.stop)
	r.unload()
	if r.consumed() {
		return
	}
	r.number++
	k := r.blocks[r.number].first
	r.head = node{k.Due, k.Seq}
}

func (r *run) isSkipped(f *found) bool {
	return r.state.cancelled.has(f.ordinal) || r.state.isDropped(f.exchange)
}

// drop forgets an exchange.
func (r *run) drop(exchange uint32) {
	delete(r.state.left, exchange)
	has := slices.ContainsFunc(r.exchanges, func(e runExchange) bool { return e.id == exchange })
	if has && !r.state.isDropped(exchange) {
		r.state.dropped = append(r.state.dropped, exchange)
	}
}

// pop takes the head into flight. The block is loaded. It returns false if
// nothing in the block waits any more.
func (r *run) pop() (Due, bool) {
	f := &r.image.records[r.at]
	if r.isSkipped(f) { // since it became the head
		r.settle()
		return Due{}, false
	}
	d := Due{Key: f.key, ExchangeID: f.exchange, Ref: Ref{File: r.id, Off: f.off, Len: f.length}}
	r.popped = f.key
	r.at++
	r.settle()
	return d, true
}
