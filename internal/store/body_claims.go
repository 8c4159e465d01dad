package store

import "encoding/binary"

// Claims on large bodies: who still needs them.

// claim notes that positions of queues need a body that the caller has pinned.
func (b *bodies) claim(y *body, targets []Target) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range targets {
		b.claimLocked(y, t)
	}
}

func (b *bodies) claimLocked(y *body, t Target) {
	q := b.queues[t.Queue]
	if q == nil {
		q = map[uint64]*body{}
		b.queues[t.Queue] = q
	}
	if q[t.Pos] == nil {
		q[t.Pos] = y
		y.claims++
		b.inQueues.Add(1)
	}
}

// settled ends the claims of positions.
func (b *bodies) settled(queue uint32, positions ...uint64) {
	if b.inQueues.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[queue]
	if q == nil {
		return
	}
	for _, pos := range positions {
		if y := q[pos]; y != nil {
			delete(q, pos)
			b.inQueues.Add(-1)
			b.dropLocked(y)
		}
	}
	if len(q) == 0 {
		delete(b.queues, queue)
	}
}

// queuedLength returns the length of a large body that a position claims, else 0.
func (b *bodies) queuedLength(queue uint32, pos uint64) uint32 {
	if b.inQueues.Load() == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if y := b.queues[queue][pos]; y != nil {
		return y.ref.Length
	}
	return 0
}

// forget takes back the claims of an append that failed.
func (b *bodies) forget(targets []Target) {
	for _, t := range targets {
		b.settled(t.Queue, t.Pos)
	}
}

// dropQueue ends the claims of all positions of a queue.
func (b *bodies) dropQueue(queue uint32) {
	if b.inQueues.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, y := range b.queues[queue] {
		b.inQueues.Add(-1)
		b.dropLocked(y)
	}
	delete(b.queues, queue)
}

// wait notes that an entry, whose record is in the given segment, needs a body
// that the caller has pinned.
func (b *bodies) wait(y *body, seq uint64, exchange, segment uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waitLocked(y, seq, exchange, segment)
}

func (b *bodies) waitLocked(y *body, seq uint64, exchange, segment uint32) {
	b.waits[seq] = &waitingBody{body: y, exchange: exchange, in: segment}
	b.bytes[exchange] += uint64(y.ref.Length)
	y.claims++
	b.waiting.Add(1)
}

// of returns the body of an entry, or nil if it is not large.
func (b *bodies) of(seq uint64) *body {
	if b.waiting.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.waits[seq]; w != nil {
		return w.body
	}
	return nil
}

// ended ends the claim of an entry, if it has one.
func (b *bodies) ended(seq uint64) {
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endLocked(seq)
}

func (b *bodies) endLocked(seq uint64) {
	w := b.waits[seq]
	if w == nil {
		return
	}
	delete(b.waits, seq)
	b.waiting.Add(-1)
	if b.bytes[w.exchange] -= uint64(w.ref.Length); b.bytes[w.exchange] == 0 {
		delete(b.bytes, w.exchange)
	}
	b.unclaim(w)
	b.dropLocked(w.body)
}

// dropExchange ends the claims of what waits for an exchange, but for what flies.
func (b *bodies) dropExchange(exchange uint32, flies map[uint64]bool) {
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for seq, w := range b.waits {
		if w.exchange == exchange && !flies[seq] {
			b.endLocked(seq)
		}
	}
}

// waitingBytes returns the bytes of large bodies that wait for an exchange.
func (b *bodies) waitingBytes(exchange uint32) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes[exchange]
}

func (b *bodies) allWaitingBytes() (n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range b.bytes {
		n += v
	}
	return n
}

// claimRecord is the body of a kindClaim record: it keeps the large body of an
// entry whose own record is in a run, because recovery does not read runs.
type claimRecord struct {
	seq      uint64
	exchange uint32
	ref      BodyRef
}

func (c *claimRecord) append(b []byte) []byte {
	b = binary.AppendUvarint(b, c.seq)
	b = binary.AppendUvarint(b, uint64(c.exchange))
	return appendBodyRef(b, c.ref)
}

func (r *reader) claimRecord() claimRecord {
	return claimRecord{seq: r.uvarint(), exchange: uint32(r.uvarint()), ref: r.bodyRef()}
}

func appendBodyRef(b []byte, ref BodyRef) []byte {
	for _, v := range [...]uint32{ref.File, ref.Block, ref.Length, ref.CRC} {
		b = le.AppendUint32(b, v)
	}
	return b
}

func (r *reader) bodyRef() BodyRef {
	ref := BodyRef{File: r.u32(), Block: r.u32(), Length: r.u32(), CRC: r.u32()}
	if ref.Length == 0 || ref.Block == 0 {
		r.bad = true
	}
	return ref
}

// named notes the segment that has the last record of an entry's own.
func (b *bodies) named(seq uint64, segment uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.waits[seq]; w != nil {
		b.unclaim(w)
		w.in = segment
	}
}

// claimOf returns what is to be logged before the segment goes that has the last
// record that names the body of an entry.
func (b *bodies) claimOf(seq uint64, segment uint32) (claimRecord, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.waits[seq]
	if w == nil || w.in != segment {
		return claimRecord{}, false
	}
	return claimRecord{seq, w.exchange, w.ref}, true
}

// claimBytes is about what a claim record takes.
const claimBytes = recordHeaderBytes + 32

// claimedIn notes that a claim was logged.
func (b *bodies) claimedIn(seq uint64, g *segment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.waits[seq]; w != nil {
		b.unclaim(w)
		w.in, w.claimIn = g.id, g.id
		g.live.Add(claimBytes)
	}
}

// unclaim says that a claim record is not needed any more.
func (b *bodies) unclaim(w *waitingBody) {
	if g := b.log.segment(w.claimIn); w.claimIn != 0 && g != nil {
		g.live.Add(-claimBytes)
	}
	w.claimIn = 0
}

// claim keeps the body of an entry that waits in a run beyond the segment at hand.
// The ending lock is held, so that the entry does not end in the log before the
// claim and in memory after it.
func (c *cleaner) claim(seq uint64, segment uint32) {
	x, s := c.s.index, c.s
	x.ending.Lock()
	defer x.ending.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for c.err == nil {
		claim, needed := s.bodies.claimOf(seq, segment)
		if !needed {
			return
		}
		rec := appendRecord(nil, kindClaim, 0, claim.append)
		err := s.placeLocked(rec, forCleaner, func(LSN) { s.bodies.claimedIn(seq, c.log.active()) })
		if err != errAgain {
			c.err = err
			return
		}
	}
}

// claimRescued logs the claims that recovery found in runs only, before anything of
// the damaged log goes.
func (c *cleaner) claimRescued() {
	b := c.s.bodies
	b.mu.Lock()
	rescued := b.rescued
	b.mu.Unlock()
	for _, seq := range rescued {
		c.claim(seq, 0)
	}
	if c.err == nil {
		b.mu.Lock()
		b.rescued = nil
		b.mu.Unlock()
	}
}

// claimAgain looks at a record that may be the last that names a large body.
func (c *cleaner) claimAgain(rec []byte) {
	if kind(rec[12]) == kindDelayed {
		if rec[13]&flagLarge != 0 && len(rec) >= delayedFixed {
			c.claim(recordKey(rec).Seq, c.seg.id)
		}
		return
	}
	r := reader{b: rec[recordHeaderBytes:]}
	if claim := r.claimRecord(); !r.bad {
		c.claim(claim.seq, c.seg.id)
	}
}
