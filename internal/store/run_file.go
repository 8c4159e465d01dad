package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A run file: header, records, keys, lists, filter, index, trailer; see
// docs/FORMATS.md.
//
// Header, 64 bytes: as that of a segment, with the magic "DUEPRUN\n", as first LSN
// the one that was next when the run was begun, and zero where that has what else
// only a log needs.
//
// Keys: see runKeys. Lists: see blockCount. Filter: see keyFilter.
//
// Index: blocks of 24 bytes (i64 due and u64 seq of the first record, u32
// offset / 8, u32 ordinal), then exchanges of 48 bytes (u32 id, u32 count, u64
// bytes, i64 first due, i64 last due, u32 offset of its list among the lists, u32
// length and u32 crc32c of that, u32 zero).
//
// Trailer, the last 96 bytes:
//
//	 0 "DUEPRIDX"   8 u32 blocks   12 u32 exchanges   16 u32 records
//	20 u32 end of the records / 8
//	24 u64 lowest, 32 u64 highest sequence number
//	40 i64 due, 48 u64 seq of the last record
//	56 u32 keys   60 u32 bytes of the lists   64 u32 bytes of the filter
//	68 u32 crc32c of the filter   72 16 bytes zero
//	88 u32 crc32c of the index    92 u32 crc32c of bytes 0..92
const (
	runMagic        = "DUEPRUN\n"
	runIndexMagic   = "DUEPRIDX"
	runTrailerBytes = 96
	exchangeBytes   = 48
)

// appendTail appends all that comes behind the records to b.
func (r *run) appendTail(b []byte, l *log) []byte {
	b = r.keys.append(b, l.table)
	lists := len(b)
	b = appendPad(r.appendLists(b, l))
	filter := len(b)
	b = r.keys.filter.append(b)
	index := len(b)
	for _, k := range r.blocks {
		b = le.AppendUint64(b, uint64(k.first.Due))
		b = le.AppendUint64(b, k.first.Seq)
		b = le.AppendUint32(b, k.off)
		b = le.AppendUint32(b, k.ordinal)
	}
	for _, e := range r.exchanges {
		b = le.AppendUint32(b, e.id)
		b = le.AppendUint32(b, e.count)
		b = le.AppendUint64(b, e.bytes)
		b = le.AppendUint64(b, uint64(e.first))
		b = le.AppendUint64(b, uint64(e.last))
		b = le.AppendUint32(b, e.at)
		b = le.AppendUint32(b, e.length)
		b = le.AppendUint32(b, e.crc)
		b = le.AppendUint32(b, 0)
	}
	trailer := len(b)
	b = append(b, runIndexMagic...)
	b = le.AppendUint32(b, uint32(len(r.blocks)))
	b = le.AppendUint32(b, uint32(len(r.exchanges)))
	b = le.AppendUint32(b, r.count)
	b = le.AppendUint32(b, r.end)
	b = le.AppendUint64(b, r.seqs[0])
	b = le.AppendUint64(b, r.seqs[1])
	b = le.AppendUint64(b, uint64(r.last.Due))
	b = le.AppendUint64(b, r.last.Seq)
	b = le.AppendUint32(b, r.keys.count)
	b = le.AppendUint32(b, uint32(filter-lists))
	b = le.AppendUint32(b, uint32(index-filter))
	b = le.AppendUint32(b, crc32.Checksum(b[filter:index], l.table))
	b = append(b, make([]byte, 16)...)
	b = le.AppendUint32(b, crc32.Checksum(b[index:trailer], l.table))
	return le.AppendUint32(b, crc32.Checksum(b[trailer:], l.table))
}

// openRun opens a run file. A damaged index is rebuilt from the records and
// reported.
func openRun(l *log, id uint32, damaged func(Damage)) (*run, error) {
	f, err := l.fs.Open(l.path(runName(id)))
	if err != nil {
		return nil, fmt.Errorf("open run: %w", err)
	}
	r := newRun(l, id)
	r.file = f
	if err := r.open(l, damaged); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func (r *run) open(l *log, damaged func(Damage)) (err error) {
	if r.size, err = r.file.Size(); err != nil {
		return fmt.Errorf("open run: %w", err)
	}
	head := make([]byte, min(segmentHeaderBytes, r.size))
	if err := readFull(r.file, head, 0); err != nil {
		return fmt.Errorf("read header of %s: %w", r.name, err)
	}
	if h, ok := parseRunHeader(head, l.table); ok {
		if h.version > formatVersion {
			return &VersionError{File: r.name, Got: h.version, Want: formatVersion}
		}
		r.salt, r.born = h.salt(), h.firstLSN
	} else {
		damaged(Damage{File: r.name, Length: segmentHeaderBytes, Reason: "run header"})
	}
	if ok, err := r.readTail(l); ok || err != nil {
		return err
	}
	damaged(Damage{File: r.name, Offset: max(0, r.size-runTrailerBytes), Length: runTrailerBytes, Reason: "run index"})
	err = r.rebuildIndex(l)
	r.keys.lost = true
	return err
}

func parseRunHeader(b []byte, table *crc32.Table) (segmentHeader, bool) {
	return parseHeader(runMagic, b, table)
}

// readTail reads the index. It returns false if that is damaged.
func (r *run) readTail(l *log) (bool, error) {
	if r.size < segmentHeaderBytes+runTrailerBytes {
		return false, nil
	}
	t := make([]byte, runTrailerBytes)
	if err := readFull(r.file, t, r.size-runTrailerBytes); err != nil {
		return false, fmt.Errorf("read index of %s: %w", r.name, err)
	}
	sum := runTrailerBytes - 4
	if string(t[:8]) != runIndexMagic || le.Uint32(t[sum:]) != crc32.Checksum(t[:sum], l.table) {
		return false, nil
	}
	blocks, exchanges := int64(le.Uint32(t[8:])), int64(le.Uint32(t[12:]))
	r.count, r.end = le.Uint32(t[16:]), le.Uint32(t[20:])
	r.seqs = [2]uint64{le.Uint64(t[24:]), le.Uint64(t[32:])}
	r.last = Key{int64(le.Uint64(t[40:])), le.Uint64(t[48:])}
	filter := int64(le.Uint32(t[64:]))
	r.keys = runKeys{count: le.Uint32(t[56:]), at: int64(r.end) * 8}
	r.listsAt = r.keys.at + r.keys.bytes()
	filterAt := r.listsAt + int64(le.Uint32(t[60:]))
	n := blocks*blockBytes + exchanges*exchangeBytes
	if blocks == 0 || filterAt+filter+n+runTrailerBytes != r.size {
		return false, nil
	}
	b := make([]byte, n)
	if err := readFull(r.file, b, filterAt+filter); err != nil {
		return false, fmt.Errorf("read index of %s: %w", r.name, err)
	}
	if le.Uint32(t[88:]) != crc32.Checksum(b, l.table) {
		return false, nil
	}
	r.parseIndex(b, blocks, exchanges)
	if !r.isIndexPossible(filterAt) {
		return false, nil
	}
	return true, r.readFilter(l, filterAt, filter, le.Uint32(t[68:]))
}

func (r *run) parseIndex(b []byte, blocks, exchanges int64) {
	r.blocks = make([]block, blocks)
	for i := range r.blocks {
		r.blocks[i] = block{Key{int64(le.Uint64(b)), le.Uint64(b[8:])}, le.Uint32(b[16:]), le.Uint32(b[20:])}
		b = b[blockBytes:]
	}
	r.exchanges = make([]runExchange, exchanges)
	for i := range r.exchanges {
		r.exchanges[i] = runExchange{
			id: le.Uint32(b), count: le.Uint32(b[4:]), bytes: le.Uint64(b[8:]),
			first: int64(le.Uint64(b[16:])), last: int64(le.Uint64(b[24:])),
			at: le.Uint32(b[32:]), length: le.Uint32(b[36:]), crc: le.Uint32(b[40:]),
		}
		b = b[exchangeBytes:]
	}
}

// isIndexPossible reports whether all that is read by the index lies in the file, so
// that no length in it is trusted. The lists end at an offset.
func (r *run) isIndexPossible(listsEnd int64) bool {
	for i, b := range r.blocks {
		first := b.off == segmentHeaderBytes/8 && b.ordinal == 0
		if i == 0 && !first || i > 0 && (b.off <= r.blocks[i-1].off || b.ordinal <= r.blocks[i-1].ordinal) {
			return false
		}
	}
	last := r.blocks[len(r.blocks)-1]
	if last.off >= r.end || last.ordinal >= r.count || int64(r.count) > int64(r.end)*8/delayedFixed {
		return false
	}
	for i := range r.exchanges {
		if e := &r.exchanges[i]; r.listsAt+int64(e.at)+int64(e.length) > listsEnd {
			return false
		}
	}
	return true
}

// rebuildIndex makes the index from the records. Each says which of its block it
// is, so the blocks come out as they were, but for one whose first record is
// damaged: what is left of it counts as part of the block before.
func (r *run) rebuildIndex(l *log) error {
	b := make([]byte, r.size)
	if err := readFull(r.file, b, 0); err != nil {
		return fmt.Errorf("read %s: %w", r.name, err)
	}
	r.blocks, r.exchanges, r.count, r.end = nil, nil, 0, segmentHeaderBytes/8
	r.lists, r.keys = nil, runKeys{}
	r.placeOf = map[uint32]int{}
	defer func() { r.placeOf = nil }()
	last := uint16(0)
	for o := int64(segmentHeaderBytes); o < r.size; {
		rec, ok := recordAt(b[o:])
		if !ok || len(rec) < delayedFixed || kind(rec[12]) != kindDelayed || !recordValid(rec, r.salt, l.table) {
			o += 8
			continue
		}
		r.unsure = r.unsure || o != int64(r.end)*8
		i := le.Uint16(rec[14:])
		if len(r.blocks) == 0 || i <= last {
			r.blocks = append(r.blocks, block{recordKey(rec), uint32(o / 8), r.count - uint32(i)})
		}
		last = i
		r.count = r.blocks[len(r.blocks)-1].ordinal + uint32(i) + 1
		r.note(rec, recordKey(rec))
		o += align(int64(len(rec)))
		r.end = uint32(o / 8)
	}
	if len(r.blocks) == 0 {
		return &CorruptError{File: r.name, Offset: 0, Reason: "no record is left"}
	}
	return nil
}

// note takes a record, the next one, into account. Its block is the last.
func (r *run) note(rec []byte, k Key) {
	if r.seqs[0] == 0 || k.Seq < r.seqs[0] {
		r.seqs[0] = k.Seq
	}
	r.seqs[1] = max(r.seqs[1], k.Seq)
	r.last = k
	exchange := recordExchange(rec)
	i, ok := r.placeOf[exchange]
	if !ok {
		i = len(r.exchanges)
		r.exchanges = append(r.exchanges, runExchange{id: exchange, first: k.Due})
		r.lists = append(r.lists, nil)
		r.placeOf[exchange] = i
	}
	e := &r.exchanges[i]
	e.count++
	e.bytes += uint64(len(rec))
	e.last = k.Due
	r.lists[i] = noteBlock(r.lists[i], uint32(len(r.blocks)-1))
	if recordKeyHash(rec) != 0 {
		r.keys.count++
	}
}

// readFull fills b from off on.
func readFull(f io.ReaderAt, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
