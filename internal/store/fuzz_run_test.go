package store

import (
	"bytes"
	"errors"
	"hash/crc32"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// seedRuns returns the files of a directory with a run: the log as one, in the form
// of names and contents, and the name of the run.
func seedRuns(t testing.TB, seed uint64) (files map[string][]byte, runs []string) {
	t.Helper()
	for ; len(runs) == 0; seed++ {
		r := newRig(t, seed, tiny())
		if !r.open() {
			t.Fatal("power gone")
		}
		for range 150 {
			r.step()
		}
		if err := r.s.Close(); err != nil {
			t.Fatal(err)
		}
		files = map[string][]byte{}
		for name, f := range r.disk.dir {
			files[name] = f.data
			if _, ok := parseRunName(filepath.Base(name)); ok {
				runs = append(runs, name)
			}
		}
	}
	return files, runs
}

// FuzzRun opens directories of which a run was tampered with: it never panics, and
// what is popped can be read or is reported. sum repairs the checksums of records,
// index and trailer, so that what is behind them sees nonsense too.
func FuzzRun(f *testing.F) {
	files, runs := seedRuns(f, 1)
	for _, at := range []uint16{0, 70, 100, 500} {
		f.Add(at, []byte{1, 2, 3}, true, true)
		f.Add(at, []byte{255, 255, 255, 255}, false, true)
	}
	f.Fuzz(func(t *testing.T, at uint16, patch []byte, front, sum bool) {
		openTampered(t, files, runs[0], func(data []byte) {
			at := min(int(at), len(data))
			if !front { // counted from the end
				at = len(data) - at
			}
			copy(data[at:], patch)
			if sum {
				repairRun(data)
			}
		})
	})
}

// FuzzReplayRuns opens directories with runs of which a file of the log was tampered with: what the
// log tells of runs may be nonsense. sum repairs the checksums of the log.
func FuzzReplayRuns(f *testing.F) {
	files, _ := seedRuns(f, 1)
	var log []string
	for name := range files {
		if _, ok := parseSegmentName(filepath.Base(name)); ok {
			log = append(log, name)
		}
	}
	slices.Sort(log)
	for which := range log {
		for _, at := range []uint16{0, 64, 130, 700} {
			f.Add(uint8(which), at, []byte{1, 2, 3}, true)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, at uint16, patch []byte, sum bool) {
		openTampered(t, files, log[int(which)%len(log)], func(data []byte) {
			copy(data[min(int(at), len(data)):], patch)
			if h, ok := parseSegmentHeader(data, crcTable()); sum && ok {
				repair(data, h)
			}
		})
	})
}

// openTampered opens a directory after tamper has changed one of its files: what can be served can
// be read or is reported.
func openTampered(t *testing.T, files map[string][]byte, which string, tamper func([]byte)) {
	d := newFakeDisk(1)
	for name, data := range files {
		data = bytes.Clone(data)
		if name == which {
			tamper(data)
		}
		d.dir[name] = &inode{data: data, stable: bytes.Clone(data), dirty: map[int]bool{}, synced: true}
	}
	// The fuzzer does not notice an endless loop by itself.
	late := time.AfterFunc(20*time.Second, func() { panic("opening does not end") })
	defer late.Stop()
	if _, err := Check(d, "d"); err != nil {
		return
	}
	d.locked = false
	s, err := Open(d, "d", tiny())
	if err != nil {
		return
	}
	defer s.Abandon()
	for _, e := range s.PopDue(maxDue, 1000, nil) {
		// The cleaner may be at work and have moved it.
		if _, err := s.Read(e.Ref, nil); err != nil && !IsCorruption(err) && !errors.Is(err, ErrMoved) {
			t.Fatalf("read %+v: %v", e, err)
		}
	}
	if _, err := s.List(ListOptions{}, nil); err != nil && !IsCorruption(err) {
		t.Fatalf("list: %v", err)
	}
}

// repairRun makes the checksums of a run fit again, as far as lengths allow.
func repairRun(b []byte) {
	if len(b) < segmentHeaderBytes+runTrailerBytes {
		return
	}
	table := crcTable()
	h := segmentHeader{id: le.Uint32(b[12:]), nonce: le.Uint32(b[16:])}
	t := b[len(b)-runTrailerBytes:]
	end := int64(le.Uint32(t[20:])) * 8
	for o := int64(segmentHeaderBytes); o < min(end, int64(len(b))); {
		rec, ok := recordAt(b[o:])
		if !ok {
			break
		}
		sealRecord(rec, h.salt(), table)
		o += align(int64(len(rec)))
	}
	n := int64(le.Uint32(t[8:]))*blockBytes + int64(le.Uint32(t[12:]))*exchangeBytes
	if at := int64(len(b)) - runTrailerBytes - n; at >= 0 && n >= 0 {
		le.PutUint32(t[88:], crcOf(b[at:at+n]))
	}
	le.PutUint32(t[92:], crcOf(t[:92]))
}

func crcOf(b []byte) uint32 { return crc32.Checksum(b, crcTable()) }
