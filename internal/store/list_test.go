package store

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestListWhileEntriesMove: from the log into runs, from runs into others, while
// some come and go: what waits all the time is listed once, and counted.
func TestListWhileEntriesMove(t *testing.T) {
	t.Parallel()
	o := tiny()
	o.FreshBytes, o.MaxRuns = 2<<10, 2
	s, _ := openFake(t, o)
	add := func(due int64) Key {
		k, _, err := s.AppendDelayed(&Message{ExchangeID: 2, TTL: -1}, due)
		if err != nil {
			t.Error(err)
		}
		return k
	}
	var stay []Key
	for i := range int64(300) {
		stay = append(stay, add(1000+i*7919%5000))
	}
	slices.SortFunc(stay, Key.compare)
	var roles sync.WaitGroup
	var stop atomic.Bool
	roles.Go(func() {
		for i := int64(0); !stop.Load(); i++ {
			k := add(1000 + i*104729%5000)
			if i%2 == 0 {
				if _, _, err := s.Cancel(k); err != nil {
					t.Error(err)
				}
			}
		}
	})
	defer roles.Wait()
	defer stop.Store(true)
	known := map[Key]bool{}
	for _, k := range stay {
		known[k] = true
	}
	merged := s.Stats().Merged
	for round := 0; round < 40 || s.Stats().Merged == merged; round++ {
		var got []Key
		o := ListOptions{Limit: 37}
		for {
			page, err := s.List(o, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range page {
				if !o.After.Less(l.Key) {
					t.Fatalf("%v listed after %v", l.Key, o.After)
				}
				o.After = l.Key
				if known[l.Key] {
					got = append(got, l.Key)
				}
			}
			if len(page) < o.Limit {
				break
			}
		}
		if !slices.Equal(got, stay) {
			t.Fatalf("listed %d of %d that stay", len(got), len(stay))
		}
		if n, _, err := s.Count(0, 0, 2); err != nil || n < uint64(len(stay)) {
			t.Fatalf("counted %d, %v; %d stay", n, err, len(stay))
		}
	}
}

// TestHistogramEstimates: with more blocks across its numbers than it may read a
// histogram says that it is not exact, and is nearly right; a count stays exact.
func TestHistogramEstimates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 20_000
		s, _, _ := keyed(t, n, Options{})
		counts, exact, err := s.Histogram(1, n+1, 10)
		if err != nil || exact {
			t.Fatalf("exact: %v, %v", exact, err)
		}
		sum := uint64(0)
		for i, c := range counts {
			if sum += c; c < 5 || c > 15 {
				t.Fatalf("number %d is %d, want about 10", i, c)
			}
		}
		if sum != n {
			t.Fatalf("the sum is %d, want %d", sum, n)
		}
		if got, exact, err := s.Count(2, n); got != n-2 || !exact || err != nil {
			t.Fatalf("count %d, exact: %v, %v", got, exact, err)
		}
		if _, _, err := s.Histogram(0, 1<<60, 1); err == nil {
			t.Fatal("any number of numbers is allowed")
		}
	})
}
