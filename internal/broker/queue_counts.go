package broker

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"

	"github.com/duepost/duepost/internal/store"
)

// How often each message came back to a quorum queue survives a restart. The store has, for each
// chunk of a queue in which messages came back, one definition with the counts of those that are
// there; it is written anew when more come back, and goes with the chunk. Nobody waits for it: what
// a crash forgets is what was not durable yet, as with acks.

// countBytes is the size of one count in a definition: the place in the chunk, and how often.
const countBytes = 4

// countChanges are the chunks in which a message came back.
type countChanges struct{ chunks []uint64 }

func (c *countChanges) add(pos uint64) {
	n := pos / chunkSpan
	if len(c.chunks) == 0 || c.chunks[len(c.chunks)-1] != n && !slices.Contains(c.chunks, n) {
		c.chunks = append(c.chunks, n)
	}
}

// storeCountsLocked makes the store know the counts of chunks that have changed.
func (q *Queue) storeCountsLocked(changes *countChanges) {
	if !q.quorum || !q.logged || q.deleted || len(changes.chunks) == 0 {
		return
	}
	var b store.Batch
	for _, n := range changes.chunks {
		if c := q.index.chunk(n); c != nil {
			b.Put(countDefinition(q.id, n), c.appendCounts([]byte{definitionVersion}))
			c.counted = true
		}
	}
	q.commitCountsLocked(&b)
}

// forgetPastCountsLocked makes the store forget the counts of chunks that are gone.
func (q *Queue) forgetPastCountsLocked() {
	if len(q.index.past) == 0 || q.deleted {
		return
	}
	var b store.Batch
	for _, n := range q.index.past {
		b.Delete(countDefinition(q.id, n))
	}
	q.index.past = q.index.past[:0]
	q.commitCountsLocked(&b)
}

func (q *Queue) commitCountsLocked(b *store.Batch) {
	_, err := q.broker.store.Commit(b) // what a full disk refuses is told when more come back
	q.broker.logIfFailed("store delivery counts", err)
}

// forgetCounts puts the end of all that the store knows of a queue's counts into a batch.
func (q *Queue) forgetCounts(b *store.Batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, c := range q.index.chunks {
		if c != nil && c.counted {
			b.Delete(countDefinition(q.id, q.index.first+uint64(i)))
		}
	}
	for _, n := range q.index.past {
		b.Delete(countDefinition(q.id, n))
	}
}

// appendCounts appends the counts of the logged messages of a chunk that came back. A chunk to
// which one came back is in memory.
func (c *chunk) appendCounts(dst []byte) []byte {
	for i := range c.blocks {
		b := &c.blocks[i]
		for live := b.ready | b.held; live != 0; live &= live - 1 {
			k := bits.TrailingZeros64(live)
			if e := &b.entries[k]; e.deliveries() > 0 && e.has(flagLogged) {
				dst = binary.BigEndian.AppendUint16(dst, uint16(i*blockSize+k))
				dst = binary.BigEndian.AppendUint16(dst, uint16(e.deliveries()))
			}
		}
	}
	return dst
}

// count reads how often messages of a chunk came back.
func (r *recovery) count(key string, d *definition) error {
	k := definition{rest: []byte(key)}
	d.version()
	id, n := k.uint32(), k.position()
	d.bad = d.bad || k.bad || len(d.rest)%countBytes != 0
	if q := r.broker.queues[id]; q == nil || !q.quorum {
		r.batch.Delete(countPrefix + key)
		return nil
	}
	if r.counts[id] == nil {
		r.counts[id] = make(map[uint64][]byte)
	}
	r.counts[id][n] = d.rest
	return nil
}

// countOf returns how often the message at a position came back.
func (r *recovery) countOf(q *Queue, pos uint64) uint32 {
	counts := r.counts[q.id][pos/chunkSpan]
	n, at := len(counts)/countBytes, uint16(pos%chunkSpan)
	i := sort.Search(n, func(i int) bool { return binary.BigEndian.Uint16(counts[i*countBytes:]) >= at })
	if i == n || binary.BigEndian.Uint16(counts[i*countBytes:]) != at {
		return 0
	}
	return min(uint32(binary.BigEndian.Uint16(counts[i*countBytes+2:])), maxDeliveries)
}

// endCounts marks the chunks that were counted, and forgets the counts of those that are gone.
func (r *recovery) endCounts() {
	for id, chunks := range r.counts {
		q := r.broker.queues[id]
		for n := range chunks {
			if c := q.index.chunk(n); c != nil {
				c.counted = true
			} else {
				r.batch.Delete(countDefinition(id, n))
			}
		}
	}
}
