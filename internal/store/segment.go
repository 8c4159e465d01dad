package store

import (
	"fmt"
	"hash/crc32"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Segment header, the first 64 bytes of a log file. Its place, its magic, the
// version and the checksum stay where they are in all versions.
//
//	 0 "DUEPLOG\n"   8 u16 version   10 u16 zero   12 u32 id
//	16 u32 nonce     20 u32 zero     24 u64 first LSN
//	32 u64 next sequence number of delayed entries
//	40 u32 id of the segment before, 0 = none     44 u32 zero
//	48 u64 offset at which the log ends in the segment before
//	56 u32 zero      60 u32 crc32c of bytes 0..60
const (
	segmentHeaderBytes = 64
	segmentMagic       = "DUEPLOG\n"
	formatVersion      = 2
)

type segmentHeader struct {
	version  uint16
	id       uint32
	nonce    uint32
	firstLSN LSN
	nextSeq  uint64
	prevID   uint32
	prevEnd  int64
}

// salt differs for every segment of a directory and cannot be guessed by
// whoever publishes messages, so a body never passes for a frame.
func (h *segmentHeader) salt() uint32 { return h.id ^ h.nonce }

func (h *segmentHeader) put(b []byte, table *crc32.Table) { h.putAs(segmentMagic, b, table) }

func (h *segmentHeader) putAs(magic string, b []byte, table *crc32.Table) {
	clear(b[:segmentHeaderBytes])
	copy(b, magic)
	le.PutUint16(b[8:], h.version)
	le.PutUint32(b[12:], h.id)
	le.PutUint32(b[16:], h.nonce)
	le.PutUint64(b[24:], uint64(h.firstLSN))
	le.PutUint64(b[32:], h.nextSeq)
	le.PutUint32(b[40:], h.prevID)
	le.PutUint64(b[48:], uint64(h.prevEnd))
	le.PutUint32(b[60:], crc32.Checksum(b[:60], table))
}

func parseSegmentHeader(b []byte, table *crc32.Table) (segmentHeader, bool) {
	return parseHeader(segmentMagic, b, table)
}

func parseHeader(magic string, b []byte, table *crc32.Table) (segmentHeader, bool) {
	if len(b) < segmentHeaderBytes || string(b[:8]) != magic ||
		le.Uint32(b[60:]) != crc32.Checksum(b[:60], table) {
		return segmentHeader{}, false
	}
	return segmentHeader{
		version:  le.Uint16(b[8:]),
		id:       le.Uint32(b[12:]),
		nonce:    le.Uint32(b[16:]),
		firstLSN: LSN(le.Uint64(b[24:])),
		nextSeq:  le.Uint64(b[32:]),
		prevID:   le.Uint32(b[40:]),
		prevEnd:  int64(le.Uint64(b[48:])),
	}, true
}

// segment is one log file in use and, while resident, its image.
type segment struct {
	id   uint32
	salt uint32
	name string
	file File
	size int64 // of the file

	// Of a spare, used by the preparer only.
	warm   bool  // every block of the file was written before
	zeroed int64 // so far

	// buf is the image; nil once evicted. Bytes below written are immutable,
	// bytes 4..12 of a record belong to the committer until then.
	buf atomic.Pointer[[]byte]

	live atomic.Int64 // bytes of records times the holds they still have
	run  *run         // of which this is the file, nil for a segment of the log
	// pins are appends that have their place here and are not in the index yet.
	// Added to under the log lock while the segment is active.
	pins    sync.WaitGroup
	retired atomic.Bool // the cleaner is done with it; what is read may be anything

	waits atomic.Bool // much waits in it, so a run will be written of it
	fresh *fresh      // guarded by the index lock

	// Guarded by the log lock.
	end     int64 // where the next frame or record goes; the final length once sealed
	taken   int64 // up to here given to the committer
	flushed int64 // up to here durable
	first   LSN   // of its first frame
	records int   // in it since it became active
	// idle of them need no look when the segment goes, if nothing in it is live:
	// delayed messages that are no copies, and what is said of runs.
	idle int
	// moved are the delayed records of this segment that went into queues: the
	// records themselves do not say which.
	moved []movedEntry
	// movedKept is len(moved) after the cleaner last thinned it out.
	movedKept int
}

// liveBytes estimates the bytes still needed. A record with several holds counts
// more than once, so it errs on the side of keeping.
func (g *segment) liveBytes() int64 { return min(max(g.live.Load(), 0), g.size) }

// movedEntry is one place in a queue of a record that was delayed.
type movedEntry struct {
	off     uint32
	queue   uint32
	pos     uint64
	arrived int64
	life    int64 // TTL times two, plus one if it is persistent
}

// lifeOf packs what a move says of how long its message stays.
func lifeOf(ttl int64, persistent bool) int64 {
	if persistent {
		return ttl<<1 | 1
	}
	return ttl << 1
}

func (e *movedEntry) ttl() int64 { return e.life >> 1 }

func (e *movedEntry) persistent() bool { return e.life&1 != 0 }

// movedMany says that it may pay to ask which of the moved are still held.
func (g *segment) movedMany() bool { return len(g.moved) > 2*g.movedKept+4096 }

func segmentName(id uint32) string { return fmt.Sprintf("log-%010d", id) }

func parseSegmentName(name string) (uint32, bool) {
	var id uint32
	if n, err := fmt.Sscanf(name, "log-%010d", &id); n != 1 || err != nil || segmentName(id) != name {
		return 0, false
	}
	return id, true
}

// segmentTable finds segments and runs by id without a lock: open addressing with
// linear probing, at most half full. It is immutable.
type segmentTable struct {
	slots []*segment // a power of two
}

func (t *segmentTable) get(id uint32) *segment {
	mask := uint32(len(t.slots) - 1)
	for i := id & mask; ; i = (i + 1) & mask {
		if g := t.slots[i]; g == nil || g.id == id {
			return g
		}
	}
}

func newSegmentTable(segs []*segment, runs []*run) *segmentTable {
	t := &segmentTable{slots: make([]*segment, 2<<bits.Len(uint(len(segs)+len(runs))))}
	for _, g := range segs {
		t.put(g)
	}
	for _, r := range runs {
		t.put(r.segment)
	}
	return t
}

func (t *segmentTable) put(g *segment) {
	mask := uint32(len(t.slots) - 1)
	i := g.id & mask
	for t.slots[i] != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = g
}
