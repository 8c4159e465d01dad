package store

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
)

// lostAll returns the disk as it would be if the power went now and all that was
// not synced were lost. The lock is held.
func (d *fakeDisk) lostAll() *fakeDisk {
	n := newFakeDisk(1)
	for name, node := range d.durable {
		if !node.synced {
			n.dir[name] = &inode{dirty: map[int]bool{}, synced: true}
			continue
		}
		n.dir[name] = &inode{
			data: slices.Clone(node.stable), stable: slices.Clone(node.stable), dirty: map[int]bool{}, synced: true,
		}
	}
	n.durable = maps.Clone(n.dir)
	return n
}

// moment is a disk and what it must have.
type moment struct {
	call string
	disk *fakeDisk
	must []Key        // confirmed, and no end was asked for
	not  map[Key]bool // their end was confirmed
}

// TestPowerCutAroundRuns: at every call that changes the disk, while runs are
// written, named, merged, consumed, punched and removed, all that was confirmed is
// there even if everything that was not synced is lost, and nothing is damaged.
func TestPowerCutAroundRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := runOptions()
		o.SegmentBytes, o.FreshBytes, o.RunBytes, o.RunBlockBytes = 4096, 4096, 16<<10, 4096
		o.MaxRuns, o.SlackBytes = 2, 4096
		s, d := openFake(t, o)
		s.SetOwner(ownerOfNothing{})
		must, not := map[Key]bool{}, map[Key]bool{}
		calls := map[string]int{}
		var moments []moment
		d.mu.Lock()
		d.rule = func(call, name string, _ int) error {
			switch call {
			case "create", "write", "sync", "syncdir", "reuse", "remove", "punch", "truncate":
			default:
				return nil
			}
			if _, ok := parseRunName(filepath.Base(name)); ok {
				calls[call]++
			}
			moments = append(moments, moment{
				call: fmt.Sprint(len(moments), " ", call, " ", name), disk: d.lostAll(),
				must: slices.Collect(maps.Keys(must)), not: maps.Clone(not),
			})
			return nil
		}
		d.mu.Unlock()
		change := func(f func()) {
			d.mu.Lock()
			defer d.mu.Unlock()
			f()
		}
		wait := func(lsn LSN) {
			if err := s.Wait(t.Context(), lsn); err != nil {
				t.Fatal(err)
			}
		}
		for round := range int64(12) {
			var keys []Key
			var last LSN
			for i := range int64(20) {
				m := &Message{Body: make([]byte, 140), ExchangeID: 1, TTL: -1}
				k, lsn, err := s.AppendDelayed(m, round*10+i*7)
				if err != nil {
					t.Fatal(err)
				}
				keys, last = append(keys, k), lsn
			}
			wait(last)
			change(func() {
				for _, k := range keys {
					must[k] = true
				}
			})
			settled(t, s)
			k := keys[3]
			change(func() { delete(must, k) })
			if _, lsn, err := s.Cancel(k); err != nil {
				t.Fatal(err)
			} else {
				wait(lsn)
			}
			change(func() { not[k] = true })
		}
		if s.Stats().Runs == 0 || s.Stats().Merged == 0 {
			t.Fatalf("no run or no merge: %+v", s.Stats())
		}
		b := &Batch{}
		for now := int64(0); now < 300; now += 4 {
			due := s.PopDue(now, 100, nil)
			b.Reset()
			change(func() {
				for _, e := range due {
					b.Discard(e.Key, e.Ref)
					delete(must, e.Key)
				}
			})
			lsn, err := s.Commit(b)
			if err != nil {
				t.Fatal(err)
			}
			wait(lsn)
			change(func() {
				for _, e := range due {
					not[e.Key] = true
				}
			})
			s.cleaner.setOwner(ownerOfNothing{}) // wakes it
			settled(t, s)
		}
		if n := s.PendingTotal().Count; n != 0 {
			t.Fatalf("%d are left", n)
		}
		s.Abandon()
		for _, call := range []string{"create", "write", "sync", "punch", "remove"} {
			if calls[call] == 0 {
				t.Errorf("no %s of a run: %v", call, calls)
			}
		}
		for i := range moments {
			moments[i].check(t, o)
		}
	})
}

func (m *moment) check(t *testing.T, o Options) {
	t.Helper()
	s, err := Open(m.disk, "d", o)
	if err != nil {
		t.Fatalf("%s: %v", m.call, err)
	}
	defer s.Abandon()
	if rec := s.Recovered(); len(rec.Damages) > 0 {
		t.Fatalf("%s: damages %+v", m.call, rec.Damages)
	}
	got := map[Key]bool{}
	for _, e := range s.PopDue(maxDue, 1<<20, nil) {
		if got[e.Key] {
			t.Fatalf("%s: %v is there twice", m.call, e.Key)
		}
		got[e.Key] = true
		if m.not[e.Key] {
			t.Fatalf("%s: %v is back, its end was confirmed", m.call, e.Key)
		}
	}
	for _, k := range m.must {
		if !got[k] {
			t.Fatalf("%s: %v is lost", m.call, k)
		}
	}
	if n := s.Stats().Damages; n > 0 {
		t.Fatalf("%s: %d damages while popping", m.call, n)
	}
}
