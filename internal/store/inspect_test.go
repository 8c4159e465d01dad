package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// lookedAt forbids everything that changes a disk.
func (d *fakeDisk) lookedAt(t *testing.T) {
	d.rule = func(call, name string, _ int) error {
		switch call {
		case "create", "write", "sync", "syncdir", "reuse", "remove", "truncate", "punch":
			t.Errorf("%s of %s", call, name)
		}
		return nil
	}
}

// stopped returns a disk after a random workload, with runs, and the rig that did
// it, whose model says what is there.
func stopped(t *testing.T, seed uint64) *rig {
	t.Helper()
	for ; ; seed += 1000 {
		r := newRig(t, seed, tiny())
		if !r.open() {
			t.Fatal("power gone")
		}
		for range 200 {
			r.step()
		}
		if err := r.s.Close(); err != nil {
			t.Fatal(err)
		}
		waiting := slices.ContainsFunc(r.s.log.files, func(f *run) bool { return f.state.total().Count > 5 })
		r.disk = r.disk.kill(seed)
		if waiting {
			return r
		}
	}
}

// TestCheck: the report has what is there, and nothing is changed.
func TestCheck(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	for n := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			r := stopped(t, seed+n)
			r.disk.lookedAt(t)
			rep, err := Check(r.disk, "d")
			if err != nil {
				t.Fatal(err)
			}
			exchanges, queues := map[uint32]uint64{}, map[uint32]uint64{}
			for _, e := range r.model.pending {
				exchanges[e.ex]++
			}
			for q := range r.model.queues {
				queues[q.Queue]++
			}
			for ex, p := range rep.Exchanges {
				if exchanges[ex] != p.Count || p.Bytes == 0 {
					t.Errorf("exchange %d: %+v, want %d", ex, p, exchanges[ex])
				}
			}
			for q, s := range rep.Queues {
				if queues[q] != s.Count || s.Bytes == 0 {
					t.Errorf("queue %d: %+v, want %d", q, s, queues[q])
				}
			}
			if len(exchanges) != len(rep.Exchanges) || len(queues) != len(rep.Queues) {
				t.Errorf("exchanges %v, queues %v, want %v, %v", rep.Exchanges, rep.Queues, exchanges, queues)
			}
			if rep.Pending.Count != uint64(len(r.model.pending)) || rep.Definitions != len(r.model.defs) {
				t.Errorf("pending %d, definitions %d, want %d, %d",
					rep.Pending.Count, rep.Definitions, len(r.model.pending), len(r.model.defs))
			}
			if rep.Runs == 0 || rep.Segments == 0 || len(rep.Damages) > 0 {
				t.Errorf("report: %+v", rep)
			}
		})
	}
}

// TestCheckFindsDamage: a flipped bit anywhere in what is needed is reported at
// its place.
func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := stopped(t, testSeed(t))
		places, tail := map[string][]int64{}, "" // the last segment, which may be torn
		needed := func(d *Dumped) error {
			if strings.HasPrefix(d.File, "log-") {
				tail = d.File
			}
			places[d.File] = append(places[d.File], d.Offset+d.Bytes-1, d.Offset+13)
			return nil
		}
		if err := Dump(r.disk, "d", DumpOptions{}, needed); err != nil {
			t.Fatal(err)
		}
		done := map[string]int64{} // what is before that in a run is not looked at
		state := func(d *Dumped) error {
			if d.State != nil {
				done[runName(d.Run)] = d.State.Done
			}
			return nil
		}
		if err := Dump(r.disk, "d", DumpOptions{}, state); err != nil {
			t.Fatal(err)
		}
		runs := 0
		for file, offs := range places {
			isRun := strings.HasPrefix(file, "run-")
			if file == tail {
				continue
			}
			for _, off := range offs {
				if isRun && off <= done[file]+16 {
					continue
				}
				r.disk.flip(file, off)
				rep, err := Check(r.disk, "d")
				if err != nil {
					t.Fatal(err)
				}
				found := slices.ContainsFunc(rep.Damages, func(d Damage) bool {
					return d.File == file && d.Offset <= off && off < d.Offset+d.Length
				})
				if !found && (!isRun || slices.Contains(rep.Unnamed, file)) {
					t.Fatalf("%s at %d: reported %+v", file, off, rep.Damages)
				}
				if isRun && found {
					runs++
				}
				r.disk.flip(file, off)
			}
		}
		if runs == 0 {
			t.Error("no damage of a run was tried")
		}
	})
}

// TestCheckRunSections: the same for every byte behind the records of a run, but
// for padding.
func TestCheckRunSections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := openFake(t, runOptions())
		for i := int64(0); len(runsOf(s)) == 0; i++ {
			m := &Message{Body: make([]byte, 100), ExchangeID: uint32(1 + i%3), TTL: -1, KeyHash: uint64(1+i) << 50}
			if _, _, err := s.AppendDelayed(m, i); err != nil {
				t.Fatal(err)
			}
			settled(t, s)
		}
		r := runsOf(s)[0]
		if r.keys.count == 0 {
			t.Fatal("no keys")
		}
		s.Abandon()
		d = d.kill(1)
		data := d.dir[filepath.Join("d", r.name)].data
		lists := r.listsAt + int64(r.exchanges[0].at)
		for off := int64(r.end) * 8; off < r.size; off += 7 {
			if off > lists+int64(r.exchanges[2].at+r.exchanges[2].length) && off < lists+32 && data[off] == 0 {
				continue // padding
			}
			d.flip(r.name, off)
			rep, err := Check(d, "d")
			if err != nil {
				t.Fatal(err)
			}
			if len(rep.Damages) == 0 || rep.Damages[0].File != r.name {
				t.Fatalf("byte %d of %d: reported %+v", off, r.size, rep.Damages)
			}
			d.flip(r.name, off)
		}
	})
}

// TestCheckMissing: what refers to a file that is gone is reported.
func TestCheckMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := stopped(t, 1)
		for name := range r.disk.dir {
			if strings.Contains(name, "/run-") {
				if err := r.disk.Remove(name); err != nil {
					t.Fatal(err)
				}
				rep, err := Check(r.disk, "d")
				if err != nil {
					t.Fatal(err)
				}
				if !slices.ContainsFunc(rep.Damages, func(d Damage) bool { return d.File == filepath.Base(name) }) {
					t.Fatalf("%s is missing: reported %+v", name, rep.Damages)
				}
				return
			}
		}
	})
}

// TestDump: each record of a run and of the log is shown once, where it is.
func TestDump(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) { testDump(t, seed, kinds) })
	}
	for _, want := range strings.Fields("ready delayed move settle put run flush end") {
		if kinds[want] == 0 {
			t.Errorf("nothing of kind %s: %v", want, kinds)
		}
	}
}

func testDump(t *testing.T, seed uint64, kinds map[string]int) {
	r := stopped(t, seed)
	r.disk.lookedAt(t)
	dump := func(o DumpOptions) (list []Dumped) {
		t.Helper()
		err := Dump(r.disk, "d", o, func(d *Dumped) error {
			list = append(list, *d)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	all := dump(DumpOptions{})
	for _, d := range all {
		kinds[d.Kind]++
		data := r.disk.dir[filepath.Join("d", d.File)].data
		if n := int64(le.Uint32(data[d.Offset:])); n != d.Bytes || d.Body != nil {
			t.Fatalf("%+v: %d bytes are there", d, n)
		}
	}
	from := len(all) / 2
	part := dump(DumpOptions{File: all[from].File, Offset: all[from].Offset, Limit: 7})
	if diff := cmp.Diff(all[from:min(from+7, len(all))], part); diff != "" {
		t.Errorf("from %s, %d (- want, + got):\n%s", all[from].File, all[from].Offset, diff)
	}
	for seq := range r.model.pending {
		for _, d := range dump(DumpOptions{Seqs: []uint64{seq}, Bodies: true}) {
			if d.Kind == "delayed" && (d.Key.Seq != seq || !bytes.Contains(d.Body, []byte(":")) || len(d.Body) != *d.BodyBytes) {
				t.Fatalf("entry %d: %+v", seq, d)
			}
		}
	}
	stop := errors.New("stop")
	if err := Dump(r.disk, "d", DumpOptions{}, func(*Dumped) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped dump: %v", err)
	}
	if err := Dump(r.disk, "d", DumpOptions{File: "log-1"}, nil); err == nil || !strings.Contains(err.Error(), "no file log-1") {
		t.Errorf("dump from nowhere: %v", err)
	}
}

// TestReadOnly: a directory in use is left alone, and in none is anything made.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if rep, err := Check(ReadOnly(), dir); err != nil || rep.Segments > 0 {
		t.Fatalf("empty directory: %+v, %v", rep, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Fatalf("made %v, %v", names, err)
	}
	s, err := Open(OS(), dir, Options{SegmentBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.AppendDelayed(&Message{TTL: -1, ExchangeID: 3}, 5); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(ReadOnly(), dir); !errors.Is(err, ErrLocked) {
		t.Fatalf("check of a directory in use: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	rep, err := Check(ReadOnly(), dir)
	if err != nil || rep.Exchanges[3].Count != 1 || len(rep.Damages) > 0 {
		t.Fatalf("check: %+v, %v", rep, err)
	}
	if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
		t.Fatalf("changed:\n%s", diff)
	}
	fs := ReadOnly()
	f, err := fs.Open(filepath.Join(dir, lockName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, created := fs.Create(filepath.Join(dir, "new"), 1)
	_, wrote := f.WriteAt([]byte("x"), 0)
	for i, err := range []error{
		created, wrote, fs.Reuse(dir, dir), fs.Remove(filepath.Join(dir, lockName)), fs.SyncDir(dir),
		f.Datasync(), f.Truncate(0), f.PunchHole(0, 1),
	} {
		if err == nil {
			t.Errorf("change %d was allowed", i)
		}
	}
}

// snapshot returns the content of all files of a directory.
func snapshot(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if files[n.Name()], err = os.ReadFile(filepath.Join(dir, n.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}
