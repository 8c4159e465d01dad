package store

import "testing"

// TestRunsDoNotAllocatePerMessage: what comes out of runs costs no allocation per
// message, only now and then one per block. It is not parallel: it counts what the
// process allocates.
func TestRunsDoNotAllocatePerMessage(t *testing.T) {
	const batch, rounds = 64, 100
	s, err := Open(OS(), t.TempDir(), Options{
		SegmentBytes: 256 << 10, FreshBytes: 256 << 10, RunBytes: 1 << 20, RunBlockBytes: 16 << 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m := message256()
	var last LSN
	for i := range 4 * batch * rounds {
		if _, last, err = s.AppendDelayed(m, int64(i*7919%100_000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Wait(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Flushed == 0 {
		t.Fatalf("the test does not test runs: %+v", st)
	}
	var due []Due
	var group Batch
	targets := []Target{{Queue: 1}}
	release := func() {
		due = s.PopDue(maxDue, batch, due[:0])
		group.Reset()
		for i := range due {
			targets[0].Pos++
			group.Move(&Move{Key: due[i].Key, Ref: due[i].Ref, TTL: -1, Persistent: true, Targets: targets, Holds: 1})
		}
		if _, err := s.Commit(&group); err != nil {
			t.Fatal(err)
		}
		for i := range group.Refs {
			s.Drop(group.Refs[i])
		}
	}
	release() // what is kept for reuse is made once
	if n := testing.AllocsPerRun(rounds, release); n > batch/4 {
		t.Errorf("releasing %d messages allocates %.0f times", batch, n)
	}
}
