package store

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// TestFresh compares the entries of a segment with a map, with dense, missing and
// older sequence numbers.
func TestFresh(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(testSeed(t), 0))
	f := &fresh{seg: &segment{id: 1}}
	want := map[uint64]int64{}
	flying := map[uint64]bool{}
	next := uint64(1000)
	for range 30_000 {
		switch rnd.IntN(6) {
		case 0, 1, 2:
			seq := next
			switch rnd.IntN(20) {
			case 0:
				next += uint64(rnd.IntN(2 * maxGap))
			case 1:
				seq = uint64(1 + rnd.IntN(999)) // retried or copied
			default:
				next++
			}
			if _, taken := want[seq]; taken || flying[seq] || seq > next {
				continue
			}
			want[seq] = rnd.Int64N(50)
			f.add(Key{want[seq], seq}, entry{length: 10, exchange: uint32(seq % 3)})
		case 3:
			for seq, due := range want {
				f.cancel(Key{due, seq}, f.get(seq))
				delete(want, seq)
				break
			}
		case 4:
			if len(want) == 0 {
				continue
			}
			k, e := f.pop()
			if want[k.Seq] != k.Due || e.due != k.Due {
				t.Fatalf("popped %v, %+v, want due %d", k, e, want[k.Seq])
			}
			for seq, due := range want {
				if (node{due, seq}).less(node{k.Due, k.Seq}) {
					t.Fatalf("popped %v before %d, %d", k, due, seq)
				}
			}
			delete(want, k.Seq)
			flying[k.Seq] = true
		default:
			for seq := range flying {
				f.land(seq)
				delete(flying, seq)
				break
			}
		}
		if f.waiting != len(want) || f.flying != len(flying) || f.bytes != int64(10*len(want)) {
			t.Fatalf("%d wait, %d fly, %d bytes; want %d, %d", f.waiting, f.flying, f.bytes, len(want), len(flying))
		}
	}
	n := 0
	f.each(func(seq uint64, e entry) {
		if n++; e.state == entryWaits && want[seq] != e.due || e.state == entryFlies && !flying[seq] {
			t.Fatalf("each: %d is %+v", seq, e)
		}
	})
	if n != len(want)+len(flying) {
		t.Fatalf("each visits %d, want %d", n, len(want)+len(flying))
	}
}

// TestPopOrder: ascending (due, seq) over all segments, whatever was cancelled
// and dropped in between.
func TestPopOrder(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(testSeed(t), 0))
	x := newIndex()
	segs := []*segment{{id: 1}, {id: 2}, {id: 3}}
	for seq := uint64(1); seq <= 20_000; seq++ {
		g := segs[seq/7000]
		x.addLocked(g, Key{rnd.Int64N(500), seq}, uint32(seq%4), Ref{g.id, 1, 10})
	}
	for seq := uint64(1); seq <= 20_000; seq += 3 {
		f, e := x.findFresh(seq)
		if e.exchange != 2 {
			f.cancel(Key{e.due, seq}, e)
			x.fixLocked(&f.source)
			x.countLocked(e.exchange, -1, e.length)
		}
	}
	dropped, gone := x.pending[2].Count, 0
	x.dropLocked(2, func(Ref) { gone++ })
	if x.pending[2] != nil || x.total.Bytes != x.total.Count*10 || uint64(gone) != dropped {
		t.Fatalf("after drop: %+v, %d of %d", x.total, gone, dropped)
	}
	left := x.total.Count
	var last Key
	for n := uint64(0); ; n++ {
		due, ok := x.nextDueLocked()
		d, popped, _ := x.popLocked(1000)
		if ok != popped {
			t.Fatalf("next due %v, popped %v", ok, popped)
		}
		if !ok {
			if n != left {
				t.Fatalf("popped %d, want %d", n, left)
			}
			break
		}
		if !last.Less(d.Key) || d.Key.Due != due || d.ExchangeID == 2 {
			t.Fatalf("popped %+v after %+v, next due %d", d, last, due)
		}
		last = d.Key
	}
}

// TestCancelAgainstPop: exactly one of the two gets each entry.
func TestCancelAgainstPop(t *testing.T) {
	t.Parallel()
	s, err := Open(newFakeDisk(1), "d", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	var keys []Key
	for i := range int64(5000) {
		k, _, err := s.AppendDelayed(&Message{TTL: -1}, i%7)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	var roles sync.WaitGroup
	cancelled := map[Key]bool{}
	var popped []Due
	roles.Go(func() {
		for i := range keys[:len(keys)-1] {
			k := keys[len(keys)-1-i]
			switch out, _, err := s.Cancel(k); {
			case err != nil:
				t.Error(err)
			case out == Cancelled:
				cancelled[k] = true
			case out != AlreadyDue:
				t.Errorf("cancel %v: %v", k, out)
			}
		}
	})
	roles.Go(func() {
		for range 2000 {
			popped = s.PopDue(10, 2, popped)
			runtime.Gosched()
		}
	})
	roles.Wait()
	popped = s.PopDue(10, 1<<20, popped)
	for _, d := range popped {
		if cancelled[d.Key] {
			t.Fatalf("%v was cancelled and popped", d.Key)
		}
	}
	if len(popped)+len(cancelled) != len(keys) {
		t.Fatalf("%d popped and %d cancelled of %d", len(popped), len(cancelled), len(keys))
	}
	if out, _, _ := s.Cancel(popped[0].Key); out != AlreadyDue {
		t.Fatalf("cancel in flight: %v", out)
	}
	b := &Batch{}
	b.Move(&Move{Key: Key{1, 1 << 40}})
	if _, err := s.Commit(b); err != ErrUnknownKey {
		t.Fatalf("move of nothing: %v", err)
	}
}

// TestRetryKeepsSeq: a retried entry has a new key, and the old one is unknown.
func TestRetryKeepsSeq(t *testing.T) {
	t.Parallel()
	s, err := Open(newFakeDisk(1), "d", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	old, _, err := s.AppendDelayed(&Message{TTL: -1}, 5)
	if err != nil {
		t.Fatal(err)
	}
	due := s.PopDue(5, 1, nil)
	b := &Batch{}
	b.Retry(old, due[0].Ref, 50)
	if _, err := s.Commit(b); err != nil {
		t.Fatal(err)
	}
	if want := (Key{50, old.Seq}); b.Keys[0] != want {
		t.Fatalf("new key %v, want %v", b.Keys[0], want)
	}
	if at, ok := s.NextDue(); !ok || at != 50 {
		t.Fatalf("next due %d, %v", at, ok)
	}
	if out, _, _ := s.Cancel(old); out != NotFound {
		t.Fatalf("cancel by the old key: %v", out)
	}
	if out, _, _ := s.Cancel(b.Keys[0]); out != Cancelled {
		t.Fatalf("cancel by the new key: %v", out)
	}
	if s.PendingTotal() != (Pending{}) {
		t.Fatalf("pending %+v", s.PendingTotal())
	}
}
