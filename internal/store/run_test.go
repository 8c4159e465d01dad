package store

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// runOptions make runs of 32 KiB with blocks of 16 KiB.
func runOptions() Options {
	return Options{SegmentBytes: 8 << 10, FrameBytes: 1024, FreshBytes: 16 << 10, RunBytes: 32 << 10,
		RunBlockBytes: 16 << 10, SlackBytes: 1 << 30}
}

// withRun opens a store and fills it until there is a run. Entry i is due at i.
func withRun(t *testing.T, o Options) (s *Store, d *fakeDisk, keys []Key) {
	t.Helper()
	s, d = openFake(t, o)
	s.SetOwner(ownerOfNothing{})
	for len(runsOf(s)) == 0 {
		for range 20 {
			keys = append(keys, delayedAt(t, s, int64(len(keys))))
		}
		settled(t, s)
	}
	return s, d, keys
}

func runsOf(s *Store) []*run {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return append([]*run(nil), s.log.files...)
}

// delayedAt appends a message with a key of its own, whose record has 214 bytes.
func delayedAt(t *testing.T, s *Store, due int64) Key {
	t.Helper()
	m := &Message{Exchange: []byte("ex"), Body: fmt.Appendf(nil, "due %150d", due), ExchangeID: 1, TTL: -1, KeyHash: spread(uint64(due) + 1)}
	k, _, err := s.AppendDelayed(m, due)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// settled waits until all is durable and no role has anything to do.
func settled(t *testing.T, s *Store) {
	t.Helper()
	b := &Batch{}
	b.Delete("nothing")
	lsn, err := s.Commit(b)
	if err == nil {
		err = s.Wait(t.Context(), lsn)
	}
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// discardDue ends what is due, n at once.
func discardDue(t *testing.T, s *Store, now int64, n int) (ended []Key) {
	t.Helper()
	b := &Batch{}
	for {
		due := s.PopDue(now, n, nil)
		if len(due) == 0 {
			settled(t, s)
			return ended
		}
		b.Reset()
		for _, d := range due {
			b.Discard(d.Key, d.Ref)
			ended = append(ended, d.Key)
		}
		if _, err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
		settled(t, s)
	}
}

// again opens the directory after the process died.
func again(t *testing.T, s *Store, d *fakeDisk, o Options) (*Store, *fakeDisk) {
	t.Helper()
	s.Abandon()
	d = d.kill(1)
	s, err := Open(d, "d", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Abandon)
	return s, d
}

// TestPunchedFront: the front of a run of which all has ended is given back, and
// that is no damage after a restart, wherever in a block the rest begins.
func TestPunchedFront(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := runOptions()
		s, d, _ := withRun(t, o)
		r := runsOf(s)[0]
		count := int64(r.count)
		punched := false
		for now := count / 2; now < count; now += 3 {
			discardDue(t, s, now, 50)
			s.cleaner.setOwner(ownerOfNothing{}) // wakes it
			synctest.Wait()
			if len(runsOf(s)) == 0 {
				t.Fatalf("the run is gone at %d of %d", now, count)
			}
			punched = punched || runsOf(s)[0].punched > 0
			s, d = again(t, s, d, o)
			if rec := s.Recovered(); len(rec.Damages) > 0 {
				t.Fatalf("damages %+v", rec.Damages)
			}
			s.SetOwner(ownerOfNothing{})
			due := s.PopDue(now+1, 1, nil)
			if len(due) != 1 || due[0].Key.Due != now+1 {
				t.Fatalf("popped %+v, want the one due at %d", due, now+1)
			}
			if n := s.Stats().Damages; n > 0 {
				t.Fatalf("%d damages after a start with a hole up to %d", n, runsOf(s)[0].punched)
			}
			s, d = again(t, s, d, o)
			s.SetOwner(ownerOfNothing{})
		}
		if !punched {
			t.Fatal("nothing was given back")
		}
		discardDue(t, s, count, 50)
		s.cleaner.setOwner(ownerOfNothing{})
		synctest.Wait()
		for _, f := range runsOf(s) {
			if f.name == r.name {
				t.Fatal("all has ended, but the run is still there")
			}
		}
	})
}
