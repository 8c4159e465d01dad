package store

import (
	"bytes"
	"path/filepath"
	"testing"
)

// seeds returns the files of a store after a random workload.
func seedFiles(t testing.TB, seed uint64) [][]byte {
	r := newRig(t, seed, tiny())
	if !r.workload(80) {
		t.Fatal("power gone")
	}
	var files [][]byte
	for _, f := range r.disk.dir {
		files = append(files, f.data)
	}
	return files
}

// FuzzReplay opens directories whose log files were tampered with: it never
// panics, never allocates by an unchecked length, and what it returns can be
// read or is reported. sum repairs the checksums, so that the decoders behind
// them see nonsense too.
func FuzzReplay(f *testing.F) {
	for seed := range uint64(3) {
		for _, data := range seedFiles(f, seed) {
			f.Add(data, uint16(100), []byte{1, 2, 3}, true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint16, patch []byte, sum bool) {
		if len(data) > 1<<16 {
			return
		}
		data = bytes.Clone(data)
		copy(data[min(int(at), len(data)):], patch)
		h, ok := parseSegmentHeader(data, crcTable())
		name := segmentName(7)
		if ok && h.id < 100 {
			name = segmentName(h.id)
		}
		if sum {
			repair(data, h)
		}
		d := newFakeDisk(1)
		d.dir[filepath.Join("d", name)] = &inode{data: data, stable: bytes.Clone(data), dirty: map[int]bool{}, synced: true}
		s, err := Open(d, "d", tiny())
		if err != nil {
			return
		}
		defer s.Abandon()
		rec := s.Recovered()
		for _, q := range rec.Queues {
			entries, err := leftIn(rec, q.ID)
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range entries {
				if _, err := s.Read(e.Ref, nil); err != nil && !IsCorruption(err) && err != ErrMoved {
					t.Fatalf("read %+v: %v", e, err)
				}
				if i > 0 && entries[i-1].Pos >= e.Pos || e.Pos >= q.Next {
					t.Fatalf("positions: %+v", q)
				}
			}
		}
		for _, d := range s.PopDue(maxDue, 1000, nil) {
			if _, err := s.Read(d.Ref, nil); err != nil && !IsCorruption(err) {
				t.Fatalf("read %+v: %v", d, err)
			}
		}
	})
}

// repair makes checksums fit again, as far as lengths allow.
func repair(b []byte, h segmentHeader) {
	if len(b) < segmentHeaderBytes {
		return
	}
	salt, table := h.salt(), crcTable()
	for o := segmentHeaderBytes; o+frameHeaderBytes <= len(b); {
		length := int(le.Uint32(b[o:]))
		if length < frameHeaderBytes || length&7 != 0 || length > len(b)-o {
			return
		}
		le.PutUint32(b[o+8:], salt)
		le.PutUint32(b[o+4:], frameCRC(b[o:], table))
		for p := o + frameHeaderBytes; p < o+length; {
			rec, ok := recordAt(b[p : o+length])
			if !ok {
				break
			}
			sealRecord(rec, salt, table)
			p += int(align(int64(len(rec))))
		}
		o += length
	}
}

// FuzzControl: what decodes encodes to something that decodes to the same.
func FuzzControl(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		var c moveCoder
		var m Move
		r := reader{b: b}
		if c.parse(&r, &m) {
			var e, d moveCoder
			again := reader{b: e.append(nil, &m, m.Ref)}
			var n Move
			if !d.parse(&again, &n) || n.Key != m.Key || n.Ref != m.Ref || n.TTL != m.TTL || n.Arrived != m.Arrived || len(n.Targets) != len(m.Targets) {
				t.Fatalf("%+v became %+v", m, n)
			}
		}
		var runs []stretch
		if parseSettle(b, func(_ uint32, first, n uint64) { runs = append(runs, stretch{first, n}) }) {
			var out []byte
			var end uint64
			out = append(out, 0)
			for _, r := range runs {
				out, end = appendStretch(out, end, r)
			}
			i := 0
			if !parseSettle(out, func(_ uint32, first, n uint64) {
				if runs[i] != (stretch{first, n}) {
					t.Fatalf("run %d: %v became %d, %d", i, runs[i], first, n)
				}
				i++
			}) || i != len(runs) {
				t.Fatal("runs do not decode")
			}
		}
	})
}
