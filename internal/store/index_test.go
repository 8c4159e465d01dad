package store

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// TestTable compares the table with a map, with dense and sparse numbers.
func TestTable(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(testSeed(t), 0))
	var x table
	want := map[uint64]int64{}
	var keys []uint64
	next := uint64(1)
	for range 50_000 {
		switch rnd.IntN(5) {
		case 0, 1, 2:
			if next += 1; rnd.IntN(20) == 0 {
				next += uint64(rnd.IntN(10_000))
			}
			x.put(entry{seq: next, due: int64(next) * 3})
			want[next] = int64(next) * 3
			keys = append(keys, next)
		default:
			if len(keys) > 0 {
				i := rnd.IntN(len(keys))
				x.remove(keys[i])
				delete(want, keys[i])
				keys = slices.Delete(keys, i, i+1)
			}
		}
	}
	n := 0
	x.each(func(e *entry) {
		n++
		if want[e.seq] != e.due {
			t.Fatalf("each: %d is %d", e.seq, e.due)
		}
	})
	if n != len(want) || x.count != n {
		t.Fatalf("%d entries, count %d, want %d", n, x.count, len(want))
	}
	for seq, due := range want {
		if e := x.get(seq); e == nil || e.due != due {
			t.Fatalf("get %d: %+v", seq, e)
		}
	}
	if x.get(0) != nil || x.get(1<<60) != nil {
		t.Fatal("found what is not there")
	}
	for seq := range want {
		x.remove(seq)
	}
	if x.count != 0 {
		t.Fatalf("count %d", x.count)
	}
}

// TestPopOrder: ascending (due, seq), whatever was cancelled, dropped and
// retried in between.
func TestPopOrder(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(testSeed(t), 0))
	gone := 0
	x := newIndex(nil, func(Ref) { gone++ })
	for seq := uint64(1); seq <= 20_000; seq++ {
		x.addLocked(Key{rnd.Int64N(500), seq}, uint32(seq%4), Ref{1, 1, 10})
	}
	for seq := uint64(1); seq <= 20_000; seq += 3 {
		if e := x.table.get(seq); e.exchange != 2 {
			x.removeLocked(*e)
		}
	}
	dropped := x.pending[2].Count
	x.dropLocked(2)
	if x.pending[2] != nil || x.total.Bytes != x.total.Count*10 {
		t.Fatalf("after drop: %+v", x.total)
	}
	x.sweepLocked()
	left := x.total.Count
	var last Key
	for n := uint64(0); ; n++ {
		due, ok := x.nextDueLocked()
		d, popped := x.popLocked(1000)
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
	if uint64(gone) != dropped {
		t.Fatalf("%d of %d dropped ones released", gone, dropped)
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
		for i := range keys {
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
