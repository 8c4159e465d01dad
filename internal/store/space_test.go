package store

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// spaceOptions are small enough for a test to fill many files.
func spaceOptions() Options {
	return Options{
		SegmentBytes: 32 << 10, FrameBytes: 4 << 10, SlackBytes: 1 << 20, ResidentSegments: 1,
		FreshBytes: 64 << 10, RunBytes: 64 << 10, RunBlockBytes: 4 << 10, MaxRuns: 1000,
	}
}

// pinned publishes n delayed messages, releases all, and settles all but those
// for which keep says so. It returns the bytes of those.
func pinned(t *testing.T, r *rig, n int, keep func(i int) bool) (kept int64) {
	t.Helper()
	r.queues, r.nextQ = []uint32{1}, 2
	for i := range n {
		m := &Message{Exchange: []byte("ex"), Props: []byte("props"), Body: fmt.Appendf(nil, "%d:%080d", i, i), ExchangeID: 1, TTL: -1, Persistent: true}
		if _, lsn, err := r.s.AppendDelayed(m, int64(i*7919%1000)); err != nil || i%500 == 0 && !r.wait(lsn) {
			t.Fatal(err)
		}
	}
	for i := 0; i < n; {
		due := r.s.PopDue(1000, 100, nil)
		b := &Batch{}
		for k, d := range due {
			b.Move(&Move{Key: d.Key, Ref: d.Ref, TTL: -1, Persistent: true, Targets: []Target{{1, uint64(i + k)}}, Holds: 1})
			r.reserve(Target{1, uint64(i + k)})
		}
		lsn, err := r.s.Commit(b)
		if err != nil {
			t.Fatal(err)
		}
		for k := range due {
			at := Target{1, uint64(i + k)}
			if r.pushed([]Target{at}, b.Refs[k], ""); keep(i + k) {
				kept += int64(b.Refs[k].Len)
				continue
			}
			r.s.Settle(1, []uint64{at.Pos}, []Ref{r.leave(at)})
			r.ended(1, []uint64{at.Pos})
		}
		if i += len(due); !r.wait(lsn) {
			t.Fatal("power gone")
		}
	}
	return kept
}

func (r *rig) reserve(t Target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refs[t] = Ref{}
}

// leave returns what a settle has to name.
func (r *rig) leave(t Target) Ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving[t] = true
	return r.refs[t]
}

// TestSpaceOfFewUnsettled: after a release of many messages a few that are not
// acknowledged keep no more of the disk than twice their bytes and the slack that
// the cleaner always leaves. The same goes for one message in a forgotten queue,
// and for one that is parked, which is a message in a queue.
func TestSpaceOfFewUnsettled(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]func(i int) bool{
		"one in 1000": func(i int) bool { return i%1000 == 500 },
		"only one":    func(i int) bool { return i == 4321 },
		"none":        func(int) bool { return false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := spaceOptions()
				r := newRig(t, 1, o)
				if !r.open() {
					t.Fatal("power gone")
				}
				defer func() { r.s.Abandon() }()
				const n = 20_000
				kept := pinned(t, r, n, keep)
				if st := r.s.Stats(); st.Flushed < n/2 {
					t.Fatalf("the test does not test runs: %+v", st)
				}
				synctest.Wait()
				wake(r.s.cleaner.kick)
				synctest.Wait()
				st := r.s.Stats()
				if used, most := st.LogBytes+st.RunBytes, 2*kept+o.SlackBytes+3*32<<10; used > most {
					t.Errorf("%d bytes used for %d that are needed, at most %d allowed: %+v", used, kept, most, st)
				}
				r.disk.mu.Lock()
				defer r.disk.mu.Unlock()
				if st.Runs > 0 && kept == 0 {
					t.Errorf("%d runs are left of which nothing is needed", st.Runs)
				}
			})
		})
	}
}

// TestSpaceOfCancelled: what is cancelled gives its space back although it would
// be due only in the far future.
func TestSpaceOfCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := spaceOptions()
		r := newRig(t, 1, o)
		if !r.open() {
			t.Fatal("power gone")
		}
		defer func() { r.s.Abandon() }()
		const n = 20_000
		var keys []Key
		for i := range n {
			m := &Message{Exchange: []byte("ex"), Props: []byte("props"), Body: fmt.Appendf(nil, "%d:%080d", i, i), ExchangeID: 1, TTL: -1}
			k, lsn, err := r.s.AppendDelayed(m, int64(1_000_000+i*7919%1000))
			if err != nil || i%500 == 0 && !r.wait(lsn) {
				t.Fatal(err)
			}
			keys = append(keys, k)
		}
		for i, k := range keys {
			if i%20 == 0 {
				continue // stays
			}
			out, lsn, err := r.s.Cancel(k)
			if out != Cancelled || err != nil {
				t.Fatalf("cancel %v: %v, %v", k, out, err)
			}
			if i%500 == 1 && !r.wait(lsn) {
				t.Fatal("power gone")
			}
		}
		synctest.Wait()
		wake(r.s.cleaner.kick)
		synctest.Wait()
		st := r.s.Stats()
		left := int64(st.Pending.Bytes)
		if used, most := st.LogBytes+st.RunBytes, 2*left+o.SlackBytes+o.RunBytes+o.FreshBytes; used > most || st.Pending.Count != n/20 {
			t.Errorf("%d bytes used for %d that wait, at most %d allowed: %+v", used, left, most, st)
		}
		if due := r.s.PopDue(maxDue, n, nil); len(due) != n/20 {
			t.Errorf("popped %d, want %d", len(due), n/20)
		}
	})
}
