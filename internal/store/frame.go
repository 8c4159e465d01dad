package store

import "hash/crc32"

// Frame header, 32 bytes before the records of a frame:
//
//	 0 u32 length   bytes of the frame with this header, a multiple of 8
//	 4 u32 crc      crc32c of bytes 0..4 and 8..32
//	 8 u32 salt     of the segment
//	12 u32 count    records
//	16 u64 LSN      one more than the frame before
//	24 u64 synced   highest LSN that was durable when this was written
//
// A frame is valid if its header is and exactly count valid records fill it.
// Every byte is under one checksum: the header's or a record's.
const frameHeaderBytes = 32

type frameHeader struct {
	length int
	count  int
	lsn    LSN
	synced LSN
}

func frameCRC(b []byte, table *crc32.Table) uint32 {
	return crc32.Update(crc32.Checksum(b[:4], table), table, b[8:frameHeaderBytes])
}

// putFrame writes what is known when the frame is closed; sealFrames does the rest.
func putFrame(b []byte, length, count int, lsn LSN) {
	le.PutUint32(b, uint32(length))
	le.PutUint32(b[12:], uint32(count))
	le.PutUint64(b[16:], uint64(lsn))
}

// sealFrames fills in the checksums of the closed frames that make up b, and
// returns the number of records.
func sealFrames(b []byte, salt uint32, synced LSN, table *crc32.Table) int {
	records := 0
	for len(b) > 0 {
		length, count := int(le.Uint32(b)), int(le.Uint32(b[12:]))
		invariant(length >= frameHeaderBytes && length <= len(b), "frame length")
		for o, i := frameHeaderBytes, 0; i < count; i++ {
			rec, ok := recordAt(b[o:length])
			invariant(ok, "record size")
			sealRecord(rec, salt, table)
			o += int(align(int64(len(rec))))
		}
		le.PutUint32(b[8:], salt)
		le.PutUint64(b[24:], uint64(synced))
		le.PutUint32(b[4:], frameCRC(b, table))
		records += count
		b = b[length:]
	}
	return records
}

// frameAt decodes the header at the start of b and checks it, not the records.
func frameAt(b []byte, salt uint32, table *crc32.Table) (frameHeader, bool) {
	if len(b) < frameHeaderBytes || le.Uint32(b[8:]) != salt {
		return frameHeader{}, false
	}
	h := frameHeader{
		length: int(le.Uint32(b)),
		count:  int(le.Uint32(b[12:])),
		lsn:    LSN(le.Uint64(b[16:])),
		synced: LSN(le.Uint64(b[24:])),
	}
	if h.length < frameHeaderBytes || h.length&7 != 0 || h.length > len(b) {
		return frameHeader{}, false
	}
	return h, le.Uint32(b[4:]) == frameCRC(b, table)
}

// frameIntact checks the records of the frame at the start of b.
func frameIntact(b []byte, h frameHeader, salt uint32, table *crc32.Table) bool {
	o := frameHeaderBytes
	for range h.count {
		rec, ok := recordAt(b[o:h.length])
		if !ok || !recordValid(rec, salt, table) {
			return false
		}
		o += int(align(int64(len(rec))))
	}
	return o == h.length
}

// invariant panics if a condition that the code itself guarantees is broken.
func invariant(ok bool, what string) {
	if !ok {
		panic("store: broken invariant: " + what)
	}
}
