package store

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// TestMergedRunAfterCrash: what was in flight when its run was merged waits in that
// run again after a crash, beside the new run that has all the rest. Look-ups for
// the rest find it there, and end.
func TestMergedRunAfterCrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := runOptions()
		s, d, keys := withRun(t, o)
		for len(runsOf(s)) < 4 {
			keys = append(keys, delayedAt(t, s, int64(len(keys))))
			settled(t, s)
		}
		s.Abandon()
		d = d.kill(1)
		o.MaxRuns = 1
		s, err := Open(d, "d", o)
		if err != nil {
			t.Fatal(err)
		}
		flying := s.PopDue(2, 10, nil) // in the first run
		s.SetOwner(ownerOfNothing{})
		wake(s.cleaner.kick)
		settled(t, s)
		if st := s.Stats(); st.Merged == 0 || len(flying) != 3 {
			t.Fatalf("%d in flight, %+v", len(flying), st)
		}
		s.Abandon()
		d = d.kill(2)
		o.MaxRuns = 100
		if s, err = Open(d, "d", o); err != nil {
			t.Fatal(err)
		}
		defer s.Abandon()
		listed, err := s.List(ListOptions{Limit: 1 << 20}, nil)
		n, exact, errCount := s.Count(0, 0)
		if len(listed) != len(keys) || n != uint64(len(keys)) || !exact || errors.Join(err, errCount) != nil {
			t.Fatalf("listed %d, counted %d, exact: %t, of %d; %v, %v", len(listed), n, exact, len(keys), err, errCount)
		}
		for i, k := range keys {
			found, err := s.FindKey(1, spread(uint64(k.Due)+1), func(*Record) bool { return true }, nil)
			if !slices.Equal(found, []Key{k}) || err != nil {
				t.Fatalf("find the key of %v: %v, %v", k, found, err)
			}
			if rec, err := s.Get(k); err != nil || rec.Key.Seq != k.Seq {
				t.Fatalf("get %d: %v, %v", i, rec.Key, err)
			}
			if out, _, err := s.Cancel(k); out != Cancelled || err != nil {
				t.Fatalf("cancel %d: %v, %v", i, out, err)
			}
			found, err = s.FindKey(1, spread(uint64(k.Due)+1), func(*Record) bool { return true }, nil)
			if len(found) > 0 || err != nil {
				t.Fatalf("find the key of %v, which is cancelled: %v, %v", k, found, err)
			}
		}
		if p := s.PendingTotal(); p != (Pending{}) || len(s.PopDue(maxDue, 1, nil)) > 0 {
			t.Fatalf("all is cancelled, and %+v are left", p)
		}
	})
}
