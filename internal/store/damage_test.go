package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// written makes a directory with n messages, each confirmed on its own, and the
// places of their records.
func written(t *testing.T, d *fakeDisk, n int) []Ref {
	t.Helper()
	s, err := Open(d, "d", Options{SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	var refs []Ref
	for i := range n {
		ref, lsn, err := s.Append(&Message{Body: fmt.Appendf(nil, "message %d", i), TTL: -1}, []Target{{1, uint64(i)}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Wait(t.Context(), lsn); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	return refs
}

func reopened(t *testing.T, d *fakeDisk) *Recovery {
	t.Helper()
	s, err := Open(d, "d", Options{SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	r := s.Recovered()
	if again := s.Recovered(); again != nil {
		t.Error("recovered twice")
	}
	return r
}

func positions(r *Recovery, queue uint32) []uint64 {
	var list []uint64
	entries, err := leftIn(r, queue)
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		list = append(list, e.Pos)
	}
	return list
}

// leftIn reads all that is left in a queue, in pieces.
func leftIn(r *Recovery, queue uint32) (list []Entry, err error) {
	var piece [3]Entry
	for {
		n, err := r.Entries(queue, piece[:])
		if n == 0 || err != nil {
			return list, err
		}
		list = append(list, piece[:n]...)
	}
}

// flip changes a byte on the disk, for good.
func (d *fakeDisk) flip(name string, off int64) {
	f := d.dir[filepath.Join("d", name)]
	f.data[off] ^= 0x40
	f.stable[off] ^= 0x40
}

// TestDamage: each byte of a confirmed record costs that record, is reported
// by file and offset, and nothing else is lost.
func TestDamage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, victim := range []int{0, 3} {
			for at := range int64(56) {
				d := newFakeDisk(1)
				refs := written(t, d, 6)
				off := int64(refs[victim].Off)*8 - frameHeaderBytes + at
				if end := int64(refs[victim].Off)*8 + int64(refs[victim].Len); off >= end {
					continue
				}
				d = d.kill(1)
				d.flip(segmentName(refs[victim].File), off)
				r := reopened(t, d)
				want := []uint64{0, 1, 2, 3, 4, 5}
				if at >= frameHeaderBytes { // else the header alone is bad: the record is saved
					want = slices.Delete(want, victim, victim+1)
				}
				if got := positions(r, 1); !slices.Equal(got, want) {
					t.Fatalf("byte %d of message %d: left %v, want %v", at, victim, got, want)
				}
				if len(r.Damages) != 1 || r.Cut != nil {
					t.Fatalf("byte %d of message %d: damages %+v, cut %+v", at, victim, r.Damages, r.Cut)
				}
				g := r.Damages[0]
				if g.File != segmentName(refs[victim].File) || off < g.Offset || off >= g.Offset+g.Length {
					t.Fatalf("byte %d: reported %+v", off, g)
				}
			}
		}
	})
}

// TestDamagedTail: the last frame has nothing behind it that proves it was ever
// confirmed; it is cut.
func TestDamagedTail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDisk(1)
		refs := written(t, d, 4)
		d = d.kill(1)
		last := refs[3]
		d.flip(segmentName(last.File), int64(last.Off)*8+20)
		r := reopened(t, d)
		if got := positions(r, 1); !slices.Equal(got, []uint64{0, 1, 2}) {
			t.Fatalf("left %v", got)
		}
		want := Cut{segmentName(last.File), int64(last.Off)*8 - frameHeaderBytes}
		if len(r.Damages) != 0 || r.Cut == nil || *r.Cut != want {
			t.Fatalf("damages %v, cut %+v, want %+v", r.Damages, r.Cut, want)
		}
	})
}

// TestDamagedGroup: of an atomic group nothing is served if one record is bad,
// and of its neighbours in the frame everything.
func TestDamagedGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for victim := range 3 {
			d := newFakeDisk(1)
			s, err := Open(d, "d", Options{})
			if err != nil {
				t.Fatal(err)
			}
			m := &Message{Body: []byte("alone"), TTL: -1}
			must := func(_ Ref, _ LSN, err error) {
				if err != nil {
					t.Fatal(err)
				}
			}
			must(s.Append(m, []Target{{1, 0}}, 1))
			b := &Batch{}
			for i := range uint64(3) {
				b.Append(m, []Target{{1, 1 + i}}, 1)
			}
			lsn, err := s.Commit(b)
			must(Ref{}, 0, err)
			must(s.Append(m, []Target{{1, 4}}, 1))
			if err := s.Wait(t.Context(), lsn); err != nil {
				t.Fatal(err)
			}
			_, lsn, err = s.Append(m, []Target{{1, 5}}, 1)
			must(Ref{}, 0, err)
			if err := s.Wait(t.Context(), lsn); err != nil {
				t.Fatal(err)
			}
			s.Abandon()
			d = d.kill(1)
			d.flip(segmentName(b.Refs[victim].File), int64(b.Refs[victim].Off)*8+30)
			r := reopened(t, d)
			if got := positions(r, 1); !slices.Equal(got, []uint64{0, 4, 5}) {
				t.Fatalf("record %d of the group damaged: left %v", victim, got)
			}
			if len(r.Damages) != 1 || r.Damages[0].Records != 3 || !r.Damages[0].Control {
				t.Fatalf("damages %+v", r.Damages)
			}
		}
	})
}

// TestDamagedSegmentHeader: the frames say enough.
func TestDamagedSegmentHeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, off := range []int64{0, 9, 12, 17, 25, 33, 41, 50, 61} {
			d := newFakeDisk(1)
			refs := written(t, d, 4)
			d = d.kill(1)
			d.flip(segmentName(refs[0].File), off)
			r := reopened(t, d)
			if got := positions(r, 1); !slices.Equal(got, []uint64{0, 1, 2, 3}) {
				t.Fatalf("byte %d: left %v, %+v", off, got, r)
			}
			if len(r.Damages) != 1 || r.Damages[0].Offset != 0 {
				t.Fatalf("byte %d: damages %+v", off, r.Damages)
			}
		}
	})
}

// TestMissingSegment is reported, and the rest is served.
func TestMissingSegment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDisk(1)
		var all [][]Ref
		for range 3 {
			all = append(all, written(t, d, 2))
			d = d.kill(1)
		}
		if err := d.Remove(filepath.Join("d", segmentName(all[1][0].File))); err != nil {
			t.Fatal(err)
		}
		r := reopened(t, d)
		if len(r.Damages) != 1 || r.Damages[0].File != segmentName(all[1][0].File) || !strings.Contains(r.Damages[0].Reason, "missing") {
			t.Fatalf("damages %+v", r.Damages)
		}
	})
}

// TestReadDamage: what rots between recovery and reading is noticed.
func TestReadDamage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDisk(1)
		refs := written(t, d, 2)
		d = d.kill(1)
		s, err := Open(d, "d", Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Abandon()
		d.mu.Lock()
		d.flip(segmentName(refs[0].File), int64(refs[0].Off)*8+40)
		d.mu.Unlock()
		var c *CorruptError
		if _, err := s.Read(refs[0], nil); !errors.As(err, &c) || !IsCorruption(err) || c.Offset != int64(refs[0].Off)*8 {
			t.Fatalf("read: %v", err)
		}
		if rec, err := s.Read(refs[1], nil); err != nil || string(rec.Body) != "message 1" {
			t.Fatalf("read the other: %q, %v", rec.Body, err)
		}
	})
}

// TestForgedFrame: a message that contains what looks like frames, copied from
// the log itself, does not become part of the log when the tail is torn.
func TestForgedFrame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDisk(1)
		refs := written(t, d, 2)
		name := filepath.Join("d", segmentName(refs[0].File))
		forged := slices.Clone(d.dir[name].data[segmentHeaderBytes:][:256])
		d = d.kill(1)
		s, err := Open(d, "d", Options{SegmentBytes: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		ref, lsn, err := s.Append(&Message{Body: forged, TTL: -1}, []Target{{1, 2}}, 1)
		if err != nil || s.Wait(t.Context(), lsn) != nil {
			t.Fatal(err)
		}
		s.Abandon()
		d = d.kill(1)
		d.flip(segmentName(ref.File), segmentHeaderBytes+5)
		r := reopened(t, d)
		if got := positions(r, 1); !slices.Equal(got, []uint64{0, 1}) || len(r.Damages) > 0 {
			t.Fatalf("left %v, damages %+v", got, r.Damages)
		}
	})
}

func TestLockedDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(OS(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(OS(), dir, Options{}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "in use by another process") {
		t.Fatalf("open twice: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, ErrClosed) {
		t.Fatalf("close twice: %v", err)
	}
	s, err = Open(OS(), dir, Options{})
	if err != nil {
		t.Fatalf("open after close: %v", err)
	}
	s.Abandon()
	s.Abandon()
}

func TestUnwritableDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "sub")} {
		if _, err := Open(OS(), dir, Options{}); err == nil || !strings.Contains(err.Error(), dir) {
			t.Fatalf("open %s: %v", dir, err)
		}
	}
}

// TestTornFirstWrite: the first write to a segment lost its header and kept its
// frames. They were never confirmed, and do not come back behind the frames of
// the next life, which have the same size and numbers.
func TestTornFirstWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDisk(1)
		written(t, d, 2)
		life := func(pos ...uint64) Ref {
			d = d.kill(1)
			s, err := Open(d, "d", Options{SegmentBytes: 64 << 10, FrameBytes: 64})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Abandon()
			var ref Ref
			for _, p := range pos {
				var lsn LSN
				if ref, lsn, err = s.Append(&Message{Body: make([]byte, 50), TTL: -1}, []Target{{1, p}}, 1); err != nil {
					t.Fatal(err)
				}
				if p == pos[len(pos)-1] && s.Wait(t.Context(), lsn) != nil {
					t.Fatal("wait")
				}
			}
			return ref
		}
		torn := life(10, 11, 12)
		clear(d.dir[filepath.Join("d", segmentName(torn.File))].data[:segmentHeaderBytes])
		life(20)
		d = d.kill(1)
		r := reopened(t, d)
		if got := positions(r, 1); !slices.Equal(got, []uint64{0, 1, 20}) || len(r.Damages) > 0 {
			t.Fatalf("left %v, %+v", got, r)
		}
	})
}
