package store

import "encoding/binary"

// Control records: everything that is not a message. Their bodies are made of
// varints, because there may be one item per message.

// appendRecord appends a control record to b, padded, with the body made by fill.
func appendRecord(b []byte, k kind, aux uint16, fill func([]byte) []byte) []byte {
	start := len(b)
	b = append(b, make([]byte, recordHeaderBytes)...)
	b = fill(b)
	putHeader(b[start:], k, 0, aux)
	return appendPad(b)
}

func appendPad(b []byte) []byte {
	for len(b)&7 != 0 {
		b = append(b, 0)
	}
	return b
}

// stretch is n positions from first on.
type stretch struct{ first, n uint64 }

// appendSettle encodes positions as stretches; see appendStretch.
func appendSettle(b []byte, queue uint32, positions []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(queue))
	var end uint64
	for i := 0; i < len(positions); {
		j := i + 1
		for j < len(positions) && positions[j] == positions[j-1]+1 {
			j++
		}
		b, end = appendStretch(b, end, stretch{positions[i], uint64(j - i)})
		i = j
	}
	return b
}

// appendStretch encodes a stretch: its distance from the end of the one before, and its
// length.
func appendStretch(b []byte, end uint64, r stretch) ([]byte, uint64) {
	b = binary.AppendVarint(b, int64(r.first-end))
	return binary.AppendUvarint(b, r.n), r.first + r.n
}

// parseSettle calls each for every stretch of positions.
func parseSettle(body []byte, each func(queue uint32, first, n uint64)) bool {
	r := reader{b: body}
	queue := uint32(r.uvarint())
	var end uint64
	for len(r.b) > 0 {
		first := end + uint64(r.varint())
		n := r.uvarint()
		if r.bad || n == 0 || first+n < first {
			return false
		}
		each(queue, first, n)
		end = first + n
	}
	return !r.bad
}

// moveCoder encodes and decodes the entries of a move record, each as the
// difference from the one before: they come in due order, so this is short.
type moveCoder struct {
	due     int64
	seq     uint64
	file    uint32
	arrived int64
	pos     uint64 // that follows the last one
}

// moveFromRun is a flag of a move: the record is in a run, and its exchange
// follows, because recovery does not read runs.
const moveFromRun = 1 << 1

// moveLarge is a flag of a move: the place of its large body follows, because the
// record of the entry, or the claim, may go before the move does.
const moveLarge = 1 << 2

// movePosDelta is another: positions are differences from the one that follows the
// last. Version 1 did without.
const movePosDelta = 1 << 3

func (c *moveCoder) append(b []byte, m *Move, ref Ref) []byte {
	flags := byte(movePosDelta)
	if m.Persistent {
		flags |= flagPersistent
	}
	if m.TTL >= 0 {
		flags |= flagTTL
	}
	if m.fromRun {
		flags |= moveFromRun
	}
	if m.large.isSet() {
		flags |= moveLarge
	}
	b = binary.AppendVarint(b, m.Key.Due-c.due)
	b = binary.AppendVarint(b, int64(m.Key.Seq-c.seq))
	b = binary.AppendVarint(b, int64(ref.File)-int64(c.file))
	b = binary.AppendUvarint(b, uint64(ref.Off))
	b = binary.AppendUvarint(b, uint64(ref.Len))
	b = append(b, flags)
	if m.fromRun {
		b = binary.AppendUvarint(b, uint64(m.exchange))
	}
	if m.large.isSet() {
		b = appendBodyRef(b, m.large)
	}
	b = binary.AppendVarint(b, m.Arrived-c.arrived)
	if m.TTL >= 0 {
		b = binary.AppendUvarint(b, uint64(m.TTL))
	}
	b = binary.AppendUvarint(b, uint64(len(m.Targets)))
	pos := c.pos
	for _, t := range m.Targets {
		b = binary.AppendUvarint(b, uint64(t.Queue))
		b = binary.AppendVarint(b, int64(t.Pos-pos))
		pos = t.Pos + 1
	}
	*c = moveCoder{m.Key.Due, m.Key.Seq, ref.File, m.Arrived, pos}
	return b
}

// parse decodes the next entry from r into m; m.Targets is reused.
func (c *moveCoder) parse(r *reader, m *Move) bool {
	m.Key.Due = c.due + r.varint()
	m.Key.Seq = c.seq + uint64(r.varint())
	m.Ref.File = uint32(int64(c.file) + r.varint())
	m.Ref.Off, m.Ref.Len = uint32(r.uvarint()), uint32(r.uvarint())
	flags := r.u8()
	m.Persistent = flags&flagPersistent != 0
	m.exchange, m.fromRun = 0, flags&moveFromRun != 0
	if m.fromRun {
		m.exchange = uint32(r.uvarint())
	}
	m.large = BodyRef{}
	if flags&moveLarge != 0 {
		m.large = r.bodyRef()
	}
	m.Arrived = c.arrived + r.varint()
	m.TTL = -1
	if flags&flagTTL != 0 {
		m.TTL = int64(r.uvarint())
	}
	n := r.uvarint()
	m.Targets = m.Targets[:0]
	if r.bad || n > uint64(len(r.b)) {
		return false
	}
	pos := c.pos
	for range n {
		t := Target{Queue: uint32(r.uvarint())}
		if flags&movePosDelta != 0 {
			t.Pos = pos + uint64(r.varint())
		} else {
			t.Pos = r.uvarint()
		}
		m.Targets = append(m.Targets, t)
		pos = t.Pos + 1
	}
	*c = moveCoder{m.Key.Due, m.Key.Seq, m.Ref.File, m.Arrived, pos}
	return !r.bad
}

func appendKey(b []byte, k Key) []byte {
	b = binary.AppendVarint(b, k.Due)
	return binary.AppendUvarint(b, k.Seq)
}

func (r *reader) key() Key { return Key{Due: r.varint(), Seq: r.uvarint()} }

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func (r *reader) str() string {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad = true
		return ""
	}
	return string(r.take(int(n)))
}
