package store

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// oneQueue is the owner of queue 1.
type oneQueue struct {
	store *Store
	mu    sync.Mutex
	refs  map[uint64]Ref // by position
	// meanwhile, if set, is called when a copy was made, before it is taken note of.
	meanwhile func(pos uint64, from Ref)
}

func (q *oneQueue) Holds(queue uint32, pos uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.refs[pos]
	return queue == 1 && ok
}

// Relocate drops the old hold, too: who settles takes the position out first.
func (q *oneQueue) Relocate(_ uint32, pos uint64, from, to Ref) bool {
	if q.meanwhile != nil {
		q.meanwhile(pos, from)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	ref, ok := q.refs[pos]
	if ok && ref == from {
		q.refs[pos] = to
		q.store.Drop(from)
	}
	return ok
}

func (q *oneQueue) ref(pos uint64) Ref {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refs[pos]
}

// settle acknowledges a position whose record the queue believes at ref.
func (q *oneQueue) settle(s *Store, pos uint64, ref Ref) {
	q.mu.Lock()
	delete(q.refs, pos)
	q.mu.Unlock()
	s.Settle(1, []uint64{pos}, []Ref{ref})
}

// release puts the first entry that is due into the queue, at the position that is
// its due.
func (q *oneQueue) release(t *testing.T, s *Store, now int64) {
	t.Helper()
	due := s.PopDue(now, 1, nil)
	if len(due) != 1 || due[0].Key.Due != now {
		t.Fatalf("popped %+v, want the one due at %d", due, now)
	}
	b := &Batch{}
	b.Move(&Move{Key: due[0].Key, Ref: due[0].Ref, TTL: -1, Persistent: true, Targets: []Target{{1, uint64(now)}}, Holds: 1})
	if _, err := s.Commit(b); err != nil {
		t.Fatal(err)
	}
	q.mu.Lock()
	q.refs[uint64(now)] = b.Refs[0]
	q.mu.Unlock()
	settled(t, s)
}

// recover takes over what the store recovered, as a broker does.
func (q *oneQueue) recover(t *testing.T, s *Store) {
	t.Helper()
	q.store, q.refs = s, map[uint64]Ref{}
	rec := s.Recovered()
	if len(rec.Damages) > 0 {
		t.Fatalf("damages %+v", rec.Damages)
	}
	entries, err := leftIn(rec, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		q.refs[e.Pos] = e.Ref
	}
	s.SetOwner(q)
	synctest.Wait()
}

// wants checks that a message is in the queue and can be read.
func (q *oneQueue) wants(t *testing.T, s *Store, pos uint64) {
	t.Helper()
	rec, err := s.Read(q.ref(pos), nil)
	if want := fmt.Sprintf("due %150d", pos); err != nil || string(rec.Body) != want {
		t.Fatalf("message %d at %+v: %q, %v", pos, q.ref(pos), rec.Body, err)
	}
}

func hasRun(s *Store, id uint32) bool {
	return slices.ContainsFunc(runsOf(s), func(r *run) bool { return r.id == id })
}

// tidy has the cleaner look at everything.
func tidy(s *Store) {
	wake(s.cleaner.kick)
	synctest.Wait()
}

// nextSegment appends what nobody needs until another segment of the log is active.
func nextSegment(t *testing.T, s *Store) {
	t.Helper()
	for from := activeSegment(s); activeSegment(s) == from; {
		if _, _, err := s.Append(&Message{Body: make([]byte, 500), TTL: -1}, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, s)
}

func activeSegment(s *Store) uint32 {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.active().id
}

// cleanPast has the oldest segments cleaned, one after the other, up to one and no
// further.
func cleanPast(t *testing.T, s *Store, id uint32) {
	t.Helper()
	for l := s.log; l.segment(id) != nil; {
		l.mu.Lock()
		size, live := l.neededLocked()
		l.o.SlackBytes = size - 2*live - 1
		before := l.stats.Cleaned
		l.mu.Unlock()
		tidy(s)
		l.mu.Lock()
		after := l.stats.Cleaned
		l.o.SlackBytes = 1 << 30
		l.mu.Unlock()
		if after != before+1 {
			t.Fatalf("%d segments were cleaned, want one", after-before)
		}
	}
}

// TestHeldRunStays: a run of which nothing waits stays whole as long as one message
// from it is in a queue, also after a restart, and goes when that ends.
func TestHeldRunStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := runOptions()
		s, d, _ := withRun(t, o)
		r := runsOf(s)[0]
		q := &oneQueue{store: s, refs: map[uint64]Ref{}}
		s.SetOwner(q)
		q.release(t, s, 0)
		discardDue(t, s, int64(r.count)-10, 50)
		tidy(s)
		if r.endedBlocks() < o.RunBytes/4 {
			t.Fatal("there is no front that is worth to be given back")
		}
		if n := runsOf(s)[0].punched; n > 0 {
			t.Fatalf("the front was given back up to %d", n)
		}
		q.wants(t, s, 0)
		discardDue(t, s, int64(r.count), 50)
		for restart := range 3 {
			tidy(s)
			if !hasRun(s, r.id) {
				t.Fatalf("after %d restarts the run is gone", restart)
			}
			q.wants(t, s, 0)
			s, d = again(t, s, d, o)
			q.recover(t, s)
		}
		q.settle(s, 0, q.ref(0))
		settled(t, s)
		tidy(s)
		if hasRun(s, r.id) {
			t.Fatal("nothing of the run is needed, but it is there")
		}
	})
}

// TestSettleDuringCopy: a message that came out of a run is copied when the segment
// goes that has its move, and settled at that moment. That ends what this message
// holds of the run and nothing else: the run stays for another one, until the log
// has no move out of it.
func TestSettleDuringCopy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := runOptions()
		s, d, _ := withRun(t, o)
		r := runsOf(s)[0]
		q := &oneQueue{store: s, refs: map[uint64]Ref{}}
		s.SetOwner(q)
		nextSegment(t, s)
		first := activeSegment(s)
		q.release(t, s, 0)
		nextSegment(t, s)
		second := activeSegment(s)
		q.release(t, s, 1)
		discardDue(t, s, int64(r.count), 50)
		nextSegment(t, s)

		copied := false
		q.meanwhile = func(pos uint64, from Ref) {
			if pos == 0 {
				copied = true
				q.settle(s, pos, from)
			}
		}
		cleanPast(t, s, first)
		if !copied || s.log.segment(second) == nil {
			t.Fatal("the test does not test what it should")
		}
		tidy(s)
		for range 2 {
			if !hasRun(s, r.id) {
				t.Fatal("the run is gone")
			}
			q.wants(t, s, 1)
			s, d = again(t, s, d, o)
			q.recover(t, s)
			if q.Holds(1, 0) {
				t.Fatal("what was settled is back")
			}
		}
		cleanPast(t, s, second)
		tidy(s)
		if hasRun(s, r.id) {
			t.Fatal("the log has no move out of the run, but it is there")
		}
		q.wants(t, s, 1)
		s, _ = again(t, s, d, o)
		q.recover(t, s)
		q.wants(t, s, 1)
	})
}

// TestSettledCopyFreesItsRun: when a message that came out of a run was copied, and
// the copy is settled, nothing keeps the run any more, although the log has moves out
// of it that are not old.
func TestSettledCopyFreesItsRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := withRun(t, runOptions())
		r := runsOf(s)[0]
		q := &oneQueue{store: s, refs: map[uint64]Ref{}}
		s.SetOwner(q)
		nextSegment(t, s)
		first := activeSegment(s)
		q.release(t, s, 0)
		nextSegment(t, s)
		q.release(t, s, 1)
		discardDue(t, s, int64(r.count), 50)
		before := q.ref(0)
		cleanPast(t, s, first)
		if q.ref(0) == before {
			t.Fatal("the first was not copied")
		}
		q.settle(s, 0, q.ref(0))
		tidy(s)
		if !hasRun(s, r.id) {
			t.Fatal("the run is gone, the second message needs it")
		}
		q.wants(t, s, 1)
		q.settle(s, 1, q.ref(1))
		settled(t, s)
		tidy(s)
		if hasRun(s, r.id) {
			t.Fatal("nothing of the run is needed, but it is there")
		}
	})
}
