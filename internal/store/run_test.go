package store

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSpans compares the set with a map.
func TestSpans(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(testSeed(t), 0))
	var s spans
	const n = 300
	in := make([]bool, n)
	for range 20_000 {
		p := span{from: uint32(rnd.IntN(n - 5))}
		p.to = p.from + 1 + uint32(rnd.IntN(4))
		all, any := true, false
		for i := p.from; i < p.to; i++ {
			all, any = all && in[i], any || in[i]
		}
		if got := s.overlaps(p); got != any {
			t.Fatalf("%v overlaps %v: %v", s, p, got)
		}
		if !any {
			s = s.add(p)
		} else {
			var ok bool
			if s, ok = s.remove(p); ok != all {
				t.Fatalf("%v remove %v: %v, want %v", s, p, ok, all)
			}
		}
		for i := p.from; i < p.to && (all || !any); i++ {
			in[i] = !any
		}
		var want spans
		for i := uint32(0); i < n; i++ {
			if !in[i] {
				continue
			}
			if k := len(want); k > 0 && want[k-1].to == i {
				want[k-1].to++
			} else {
				want = append(want, span{i, i + 1})
			}
		}
		if !slices.Equal(s, want) {
			t.Fatalf("after %v: %v, want %v", p, s, want)
		}
		r := reader{b: appendSpans(nil, s)}
		if got := r.spans(); r.bad || !slices.Equal(got, want) {
			t.Fatalf("decoded %v, want %v", got, want)
		}
	}
}

// runRig is a store with many delayed entries of two exchanges in runs.
func runRig(t testing.TB, n int) *rig {
	o := tiny()
	o.RunBytes, o.SegmentBytes = 4000, 4096
	r := newRig(t, 1, o)
	if !r.open() {
		t.Fatal("power gone")
	}
	r.s.PopDue(0, 1, nil) // what takePending did was at the end of time
	for i := range n {
		body := fmt.Appendf(nil, "%d:%s", i, strings.Repeat("x", 60))
		ex := uint32(1 + i%2)
		k, lsn, err := r.s.AppendDelayed(&Message{Exchange: []byte("ex"), Props: []byte("props"), Body: body, ExchangeID: ex, TTL: -1}, 1000+int64(i*7919%500))
		if err != nil {
			t.Fatal(err)
		}
		r.add(k, ex, body)
		r.ok(lsn, nil)
		if i%20 == 0 {
			r.wait(lsn)
			synctest.Wait()
		}
	}
	r.stepWait()
	synctest.Wait()
	if st := r.s.Stats(); st.Runs < 1 || (n > 200 && (st.Runs < 2 || st.Indexed > n/2)) {
		t.Fatalf("%d runs, %d of %d in memory", st.Runs, st.Indexed, n)
	}
	return r
}

// TestRunsCancel: what is in a run only can be cancelled, once, and stays so.
func TestRunsCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := runRig(t, 400)
		var lsn LSN
		for i, seq := range slices.Sorted(maps.Keys(r.model.pending)) {
			e := r.model.pending[seq]
			if i%3 > 0 {
				continue
			}
			for _, want := range []Outcome{Cancelled, NotFound} {
				out, l, err := r.s.Cancel(Key{e.due, seq})
				if out != want || err != nil {
					t.Fatalf("cancel %d: %v, %v, want %v", seq, out, err, want)
				}
				lsn = max(lsn, l)
			}
			delete(r.model.pending, seq)
			if out, _, err := r.s.Cancel(Key{e.due + 1, seq}); out != NotFound || err != nil {
				t.Fatalf("cancel of another key: %v, %v", out, err)
			}
		}
		r.note(lsn)
		r.wait(lsn)
		r.check()
		r.s.Abandon()
		r.survive()
	})
}

// TestRunsDrop: a dropped exchange is subtracted at once, never popped, and its
// runs go, also after a restart.
func TestRunsDrop(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := runRig(t, 400)
			b := &Batch{}
			b.DropExchange(1)
			lsn, err := r.s.Commit(b)
			r.ok(lsn, err)
			r.wait(lsn)
			if p := r.s.PendingTotal(); p.Count != 200 || r.s.Pending(1).Count != 0 {
				t.Fatalf("pending %+v", p)
			}
			if restart {
				r.s.Abandon()
				r.disk = r.disk.kill(1)
				if r.s, err = Open(r.disk, "d", r.o); err != nil {
					t.Fatal(err)
				}
				r.s.SetOwner(r)
			}
			defer func() { r.s.Abandon() }()
			due := r.s.PopDue(5000, 1000, nil)
			b.Reset()
			for _, d := range due {
				if d.ExchangeID != 2 {
					t.Fatalf("popped %+v", d)
				}
				b.Discard(d.Key, d.Ref)
			}
			if len(due) != 200 || !slices.IsSortedFunc(due, func(a, b Due) int { return boolCmp(a.Key.Less(b.Key), b.Key.Less(a.Key)) }) {
				t.Fatalf("popped %d", len(due))
			}
			if lsn, err = r.s.Commit(b); err != nil {
				t.Fatal(err)
			}
			r.s.Wait(t.Context(), lsn)
			wake(r.s.cleaner.kick)
			time.Sleep(time.Second)
			if st := r.s.Stats(); st.Runs != 0 || st.Pending.Count != 0 {
				t.Fatalf("left: %+v", st)
			}
		})
	}
}

// TestRunsDamage: a flipped bit in a run costs the record it is in, or nothing if
// it is in the index, and is reported.
func TestRunsDamage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := runRig(t, 400)
		r.s.Abandon()
		var name string
		for n := range r.disk.dir {
			if _, ok := parseRunName(filepath.Base(n)); ok && (name == "" || n < name) {
				name = n
			}
		}
		size := int64(len(r.disk.dir[name].data))
		for off := int64(3); off < size; off += 101 {
			d := r.disk.kill(1)
			d.dir = maps.Clone(d.dir)
			node := *d.dir[name]
			node.data, node.stable = bytes.Clone(node.data), bytes.Clone(node.stable)
			d.dir[name] = &node
			d.flip(filepath.Base(name), off)
			d.locked = false
			s, err := Open(d, "d", r.o)
			if err != nil {
				t.Fatal(err)
			}
			rec := s.Recovered()
			due := s.PopDue(5000, 1000, nil)
			lost := 400 - len(due)
			reported := len(rec.Damages) + int(s.runs.damages.Load())
			if lost > 1 || reported > 1 || (lost == 1 && reported != 1) {
				t.Fatalf("byte %d of %d: %d lost, %d damages, %+v", off, size, lost, reported, rec.Damages)
			}
			for _, p := range due {
				if _, err := s.Read(p.Ref, nil); err != nil {
					t.Fatalf("byte %d: read %+v: %v", off, p, err)
				}
			}
			s.Abandon()
		}
	})
}

// FuzzRun opens runs that were tampered with, with and without checksums that
// fit: no panic, and what is popped can be read.
func FuzzRun(f *testing.F) {
	f.Add(uint16(10), []byte{1, 2, 3}, false)
	f.Add(uint16(4000), []byte{0xFF, 0xFF, 0xFF, 0xFF}, true)
	f.Add(uint16(65000), []byte{9}, true)
	f.Fuzz(func(t *testing.T, at uint16, patch []byte, sum bool) {
		synctest.Test(t, func(t *testing.T) {
			r := runRig(t, 120)
			r.s.Abandon()
			d := r.disk.kill(1)
			for name, node := range d.dir {
				_, ok := parseRunName(filepath.Base(name))
				if !ok {
					continue
				}
				b := node.data
				copy(b[int(at)%len(b):], patch)
				if sum && len(b) > runFooterBytes {
					repairRun(b)
				}
			}
			s, err := Open(d, "d", r.o)
			if err != nil {
				return
			}
			defer s.Abandon()
			s.SetOwner(ownerOfNothing{})
			for _, p := range s.PopDue(maxDue, 1000, nil) {
				if _, err := s.Read(p.Ref, nil); err != nil && !IsCorruption(err) && err != ErrMoved {
					t.Fatalf("read %+v: %v", p, err)
				}
			}
			s.Cancel(Key{1100, 7})
		})
	})
}

func repairRun(b []byte) {
	l := &log{table: crcTable()}
	p := b[len(b)-runFooterBytes:]
	end, n := int(le.Uint32(p[16:]))*8, int(le.Uint32(p[20:]))
	if end >= 0 && n >= 0 && end+n*blockItemBytes == len(b)-runFooterBytes {
		le.PutUint32(p[24:], checksum(b[end:end+n*blockItemBytes], l))
		for o := 0; o < end; {
			rec, ok := recordAt(b[o:end])
			if !ok {
				break
			}
			sealRecord(rec, le.Uint32(rec[8:]), l.table)
			o += int(align(int64(len(rec))))
		}
	}
	le.PutUint32(p[76:], checksum(p[:76], l))
}

// TestRunsGiveBack: one message in a hundred that went from runs into a queue is
// never settled; the space of the others comes back, and nothing of it is lost.
func TestRunsGiveBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := runRig(t, 400)
		defer func() { r.s.Abandon() }()
		before := r.s.Stats()
		b := &Batch{}
		r.queues, r.nextQ = []uint32{1}, 2
		var all []Target
		for due := r.s.PopDue(5000, 50, nil); len(due) > 0; due = r.s.PopDue(5000, 50, nil) {
			b.Reset()
			for _, d := range due {
				ts := r.place()
				all = append(all, ts...)
				b.Move(&Move{Key: d.Key, Ref: d.Ref, TTL: -1, Persistent: true, Targets: ts, Holds: 1})
			}
			lsn, err := r.s.Commit(b)
			r.ok(lsn, err)
			for i, d := range due {
				r.pushed(b.moves[i].Targets, b.Refs[i], r.model.pending[d.Key.Seq].body)
				delete(r.model.pending, d.Key.Seq)
			}
			r.note(lsn)
			r.stepWait()
		}
		for _, p := range all {
			if p.Pos%100 == 0 {
				continue
			}
			r.mu.Lock()
			ref := r.refs[p]
			r.mu.Unlock()
			r.s.Settle(p.Queue, []uint64{p.Pos}, []Ref{ref})
			r.ended(p.Queue, []uint64{p.Pos})
			delete(r.model.queues, p)
		}
		r.note(0)
		time.Sleep(time.Second)
		synctest.Wait()
		if st := r.s.Stats(); st.RunBytes > before.RunBytes/4 {
			t.Fatalf("runs have %d bytes, before %d", st.RunBytes, before.RunBytes)
		}
		r.check()
		r.s.Abandon()
		r.disk = r.disk.reboot(3)
		r.survive()
	})
}
