package store

import (
	"encoding/binary"
	"hash/crc32"
)

// Record layout, little endian; docs/FORMATS.md has the whole picture.
//
//	 0 u32 size    bytes of the record without padding
//	 4 u32 crc     crc32c of bytes 8..size
//	 8 u32 salt    of the segment
//	12 u8  kind    13 u8 flags    14 u16 aux
//	16 body, by kind
//
// Records begin at multiples of 8; the gap is zero. The committer fills in crc
// and salt, so whoever reads a resident record must not look at bytes 4 to 12.
const (
	recordHeaderBytes = 16
	maxRecordBytes    = 1 << 30
	maxName           = 255
)

type kind uint8

const (
	kindReady        kind = 1 // message, in the queues it names
	kindDelayed      kind = 2 // message, waiting
	kindTomb         kind = 3 // a waiting entry was cancelled
	kindMove         kind = 4 // in-flight entries went into queues, or nowhere
	kindMark         kind = 5 // reserved
	kindRetry        kind = 6 // version 1: an in-flight entry waits again
	kindSettle       kind = 7 // positions of one queue acknowledged
	kindPut          kind = 8
	kindDelete       kind = 9
	kindDropQueue    kind = 10
	kindDropExchange kind = 11
	kindPad          kind = 12 // ignored
	kindEnd          kind = 13 // an entry in a run was cancelled
	kindRun          kind = 14 // the state of a run
	kindFlush        kind = 15 // what waited in segments is in a run now
	kindRunGone      kind = 16 // a run is not needed any more
	kindClaim        kind = 17 // the large body of an entry whose record is in a run
)

// isControl reports whether losing a record of this kind can bring something
// back that had ended.
func (k kind) isControl() bool { return k != kindReady && k != kindDelayed && k != kindPad }

const (
	flagPersistent = 1 << iota
	flagMore       // the atomic group goes on in the next record
	flagCont       // belongs to the group of the previous record
	flagCopy       // made by the cleaner
	flagTTL        // u64 ttl present
	flagKeyHash    // u64 hash of the publisher's key present
	flagOrigin     // i64 due of the first id present
	flagLarge      // the body is in a body file
)

const (
	readyFixed   = 32
	delayedFixed = 48
	targetBytes  = 12
	wideTargets  = 0xFFFF // aux: the count is a u32 before the targets
)

var le = binary.LittleEndian

func crcTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// messageSize returns the record size for m, or ErrTooLarge.
func messageSize(k kind, m *Message, targets int, origin bool) (int, error) {
	if len(m.Exchange) > maxName || len(m.RoutingKey) > maxName {
		return 0, ErrTooLarge
	}
	n := readyFixed
	if k == kindDelayed {
		n = delayedFixed
	}
	if m.TTL >= 0 {
		n += 8
	}
	if k == kindDelayed && m.KeyHash != 0 {
		n += 8
	}
	if origin {
		n += 8
	}
	if targets >= wideTargets {
		n += 4
	}
	n += targets*targetBytes + 2 + len(m.Exchange) + len(m.RoutingKey) + len(m.Props)
	if m.Large.isSet() {
		n += bodyRefBytes
	} else {
		n += len(m.Body)
	}
	if n > maxRecordBytes {
		return 0, ErrTooLarge
	}
	return n, nil
}

// messageParts is what a message record has besides the message.
type messageParts struct {
	kind    kind
	flags   byte
	key     Key   // delayed only
	origin  int64 // with flagOrigin
	targets []Target
}

// putMessage encodes into dst, which has exactly messageSize bytes.
func putMessage(dst []byte, m *Message, p *messageParts) {
	flags := p.flags
	if m.Persistent {
		flags |= flagPersistent
	}
	aux := uint16(min(len(p.targets), wideTargets))
	le.PutUint32(dst[0:], uint32(len(dst)))
	dst[12] = byte(p.kind)
	le.PutUint16(dst[14:], aux)
	le.PutUint64(dst[16:], uint64(m.Arrived))
	le.PutUint32(dst[24:], m.ExchangeID)
	le.PutUint32(dst[28:], uint32(len(m.Props)))
	o := readyFixed
	if p.kind == kindDelayed {
		le.PutUint64(dst[32:], uint64(p.key.Due))
		le.PutUint64(dst[40:], p.key.Seq)
		o = delayedFixed
	}
	if m.TTL >= 0 {
		flags |= flagTTL
		le.PutUint64(dst[o:], uint64(m.TTL))
		o += 8
	}
	if p.kind == kindDelayed && m.KeyHash != 0 {
		flags |= flagKeyHash
		le.PutUint64(dst[o:], m.KeyHash)
		o += 8
	}
	if flags&flagOrigin != 0 {
		le.PutUint64(dst[o:], uint64(p.origin))
		o += 8
	}
	if m.Large.isSet() {
		flags |= flagLarge
	}
	dst[13] = flags
	o = putTargets(dst, o, aux, p.targets)
	dst[o] = byte(len(m.Exchange))
	o += 1 + copy(dst[o+1:], m.Exchange)
	dst[o] = byte(len(m.RoutingKey))
	o += 1 + copy(dst[o+1:], m.RoutingKey)
	o += copy(dst[o:], m.Props)
	if flags&flagLarge != 0 {
		appendBodyRef(dst[:o], m.Large)
		return
	}
	copy(dst[o:], m.Body)
}

func putTargets(dst []byte, o int, aux uint16, targets []Target) int {
	if aux == wideTargets {
		le.PutUint32(dst[o:], uint32(len(targets)))
		o += 4
	}
	for _, t := range targets {
		le.PutUint32(dst[o:], t.Queue)
		le.PutUint64(dst[o+4:], t.Pos)
		o += targetBytes
	}
	return o
}

// messageView is a decoded message record; everything points into the record.
type messageView struct {
	Record
	rec     []byte // itself
	flags   byte
	origin  int64
	number  uint16 // of a record in its block of a run
	targets []byte // n x targetBytes
}

func (v *messageView) targetCount() int { return len(v.targets) / targetBytes }

func (v *messageView) target(i int) Target {
	t := v.targets[i*targetBytes:]
	return Target{Queue: le.Uint32(t), Pos: le.Uint64(t[4:])}
}

// parseMessage decodes rec, whose length is the record's size. It checks every
// length, so that a record with a valid checksum but nonsense inside (a bug, a
// fuzzer) is refused.
func parseMessage(rec []byte, v *messageView) bool {
	if len(rec) < readyFixed+2 {
		return false
	}
	k := kind(rec[12])
	if k != kindReady && k != kindDelayed {
		return false
	}
	v.flags, v.number = rec[13], le.Uint16(rec[14:])
	v.Arrived = int64(le.Uint64(rec[16:]))
	v.ExchangeID = le.Uint32(rec[24:])
	v.Persistent = v.flags&flagPersistent != 0
	props := int(le.Uint32(rec[28:]))
	r := reader{b: rec[readyFixed:]}
	v.Key, v.TTL, v.KeyHash, v.origin = Key{}, -1, 0, 0
	if k == kindDelayed {
		v.Key = Key{Due: int64(r.u64()), Seq: r.u64()}
	}
	if v.flags&flagTTL != 0 {
		v.TTL = int64(r.u64())
	}
	if v.flags&flagKeyHash != 0 {
		v.KeyHash = r.u64()
	}
	if v.flags&flagOrigin != 0 {
		v.origin = int64(r.u64())
	}
	n := 0
	if k == kindReady {
		n = int(le.Uint16(rec[14:])) // else it is the record's number in its block
	}
	if n == wideTargets {
		n = int(r.u32())
	}
	if n > len(r.b)/targetBytes {
		return false
	}
	v.targets = r.take(n * targetBytes)
	names := r.b
	v.Exchange = r.take(int(r.u8()))
	v.RoutingKey = r.take(int(r.u8()))
	if r.bad || props > len(r.b) {
		return false
	}
	v.ExchangeAndKey = names[:2+len(v.Exchange)+len(v.RoutingKey)]
	v.Props = r.take(props)
	v.rec, v.Body, v.Large = rec, r.b, BodyRef{}
	if v.flags&flagLarge != 0 {
		v.Body, v.Large = nil, r.bodyRef()
		return !r.bad && len(r.b) == 0
	}
	return true
}

// reader takes fields off a slice; once too short it is bad and returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) u8() byte {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (r *reader) u32() uint32 {
	if p := r.take(4); p != nil {
		return le.Uint32(p)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if p := r.take(8); p != nil {
		return le.Uint64(p)
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// putHeader writes the parts of a record header that the appender knows.
func putHeader(dst []byte, k kind, flags byte, aux uint16) {
	le.PutUint32(dst, uint32(len(dst)))
	dst[12], dst[13] = byte(k), flags
	le.PutUint16(dst[14:], aux)
}

// sealRecord fills in salt and checksum.
func sealRecord(rec []byte, salt uint32, table *crc32.Table) {
	le.PutUint32(rec[8:], salt)
	le.PutUint32(rec[4:], crc32.Checksum(rec[8:], table))
}

// recordAt returns the record at the start of b, if its size is possible.
func recordAt(b []byte) ([]byte, bool) {
	if len(b) < recordHeaderBytes {
		return nil, false
	}
	n := le.Uint32(b)
	if n < recordHeaderBytes || uint64(n) > uint64(len(b)) || n > maxRecordBytes {
		return nil, false
	}
	return b[:n:n], true
}

// recordValid reports whether rec is intact and belongs to the segment.
func recordValid(rec []byte, salt uint32, table *crc32.Table) bool {
	return le.Uint32(rec[8:]) == salt && le.Uint32(rec[4:]) == crc32.Checksum(rec[8:], table)
}
