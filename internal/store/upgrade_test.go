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

	"github.com/google/go-cmp/cmp"
)

// version1 returns a disk with a directory that the last program with format
// version 1 wrote:
//
//   - queue 7: messages at 0 to 3, of which 1 was settled; 4 was delayed (due 1001)
//     and moved there, as 5, which was settled;
//   - exchange 2: entries 1 to 16, due 1000 to 1015. 1 was cancelled, 2 and 3 moved,
//     4 discarded, 5 retried to 5000, 6 in flight, 7 retried to 6000 and cancelled;
//   - exchange 4: entries 17 to 20, dropped;
//   - definition "kept"; "gone" was deleted.
func version1(t *testing.T) *fakeDisk {
	t.Helper()
	d := newFakeDisk(1)
	files, err := filepath.Glob("testdata/version1/log-*")
	if err != nil || len(files) != 2 {
		t.Fatalf("testdata: %v, %v", files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := parseSegmentHeader(b, crcTable()); !ok || h.version != 1 {
			t.Fatalf("%s: header %+v", name, h)
		}
		d.dir[filepath.Join("d", filepath.Base(name))] = &inode{
			data: b, stable: slices.Clone(b), dirty: map[int]bool{}, synced: true,
		}
	}
	return d
}

// TestUpgrade: what version 1 wrote means what it meant, and is in version 2 after
// a while.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := version1(t)
		o := tiny()
		o.SlackBytes = 1
		for _, start := range []string{"first", "second"} {
			s, err := Open(d, "d", o)
			if err != nil {
				t.Fatalf("%s start: %v", start, err)
			}
			checkVersion1(t, s)
			if start == "second" {
				s.Abandon()
				break
			}
			s.SetOwner(ownerOfQueue7{})
			for i := range uint64(40) {
				if _, _, err := s.Append(&Message{Body: make([]byte, 100), TTL: -1}, []Target{{9, i}}, 0); err != nil {
					t.Fatal(err)
				}
				settled(t, s)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			d = d.kill(1)
			for name, f := range d.dir {
				h, ok := parseSegmentHeader(f.data, crcTable())
				id, isLog := parseSegmentName(filepath.Base(name))
				if isLog && ok && h.id == id && h.version != 2 {
					t.Errorf("%s still has version %d", name, h.version)
				}
			}
		}
	})
}

// checkVersion1 compares a store with what version1 says.
func checkVersion1(t *testing.T, s *Store) {
	t.Helper()
	rec := s.Recovered()
	if len(rec.Damages) > 0 || rec.Cut != nil {
		t.Errorf("damages %+v, cut %+v", rec.Damages, rec.Cut)
	}
	if diff := cmp.Diff([]Definition{{"kept", []byte("value")}}, rec.Definitions); diff != "" {
		t.Errorf("definitions (- want, + got):\n%s", diff)
	}
	got := map[string]string{}
	for _, q := range rec.Queues {
		if q.ID != 7 {
			continue
		}
		entries, err := leftIn(rec, q.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			r, err := s.Read(e.Ref, nil)
			if err != nil {
				t.Fatal(err)
			}
			got[fmt.Sprint("position ", e.Pos)] = fmt.Sprint(string(r.Body), " arrived ", e.Arrived, " ttl ", e.TTL)
		}
		if q.Next < 5 {
			t.Errorf("next position %d is in use", q.Next)
		}
	}
	due := s.PopDue(maxDue, 1000, nil)
	for _, e := range due {
		r, err := s.Read(e.Ref, nil)
		if err != nil {
			t.Fatal(err)
		}
		got[fmt.Sprint("entry ", e.Key.Seq)] = fmt.Sprint("due ", e.Key.Due, " exchange ", e.ExchangeID, " ", string(r.Body))
	}
	want := map[string]string{
		"position 0": "message 0 arrived 100 ttl -1", "position 2": "message 2 arrived 102 ttl -1",
		"position 3": "message 3 arrived 103 ttl -1", "position 4": "message 101 arrived 2000 ttl 60",
		"entry 5": "due 5000 exchange 2 message 104", "entry 6": "due 1005 exchange 2 message 105",
	}
	for i := 7; i < 16; i++ {
		want[fmt.Sprint("entry ", i+1)] = fmt.Sprint("due ", 1000+i, " exchange 2 message ", 100+i)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
	b := &Batch{}
	for _, e := range due {
		b.Retry(e.Key, e.Ref, e.Key.Due)
	}
	if _, err := s.Commit(b); err != nil {
		t.Fatal(err)
	}
	if p := s.PendingTotal(); p.Count != uint64(len(due)) {
		t.Errorf("%d pending, want %d", p.Count, len(due))
	}
	if k := delayedAt(t, s, 1<<40); k.Seq <= 20 {
		t.Errorf("sequence number %d was used before", k.Seq)
	} else if out, _, err := s.Cancel(k); out != Cancelled || err != nil {
		t.Errorf("cancel: %v, %v", out, err)
	}
}

// ownerOfQueue7 holds the positions of queue 7 that version1 has.
type ownerOfQueue7 struct{}

func (ownerOfQueue7) Holds(queue uint32, pos uint64) bool {
	return queue == 7 && pos < 5 && pos != 1
}

func (o ownerOfQueue7) Relocate(queue uint32, pos uint64, _, _ Ref) bool { return o.Holds(queue, pos) }

// TestNewerVersion: a file of a later format, be it of the log or a run, is named
// and nothing is touched.
func TestNewerVersion(t *testing.T) {
	t.Parallel()
	for _, magic := range []string{segmentMagic, runMagic} {
		synctest.Test(t, func(t *testing.T) {
			s, d, _ := withRun(t, runOptions())
			s.Abandon()
			d = d.kill(1)
			file := ""
			for name, f := range d.dir {
				if string(f.data[:8]) == magic {
					file = name
				}
			}
			h := segmentHeader{version: formatVersion + 1, id: 1, nonce: 2}
			h.id = le.Uint32(d.dir[file].data[12:])
			h.putAs(magic, d.dir[file].data, crcTable())
			d.lookedAt(t)
			_, err := Open(d, "d", Options{})
			var v *VersionError
			if !errors.As(err, &v) || v.File != filepath.Base(file) || v.Got != 3 || v.Want != 2 {
				t.Fatalf("open: %v", err)
			}
			for _, want := range []string{v.File, "format version 3", "knows up to 2", "use a newer duepost"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if _, err := Check(d.kill(1), "d"); !errors.As(err, &v) {
				t.Errorf("check: %v", err)
			}
		})
	}
}
