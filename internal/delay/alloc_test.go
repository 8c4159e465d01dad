package delay

import (
	"math/rand/v2"
	"testing"

	"github.com/duepost/duepost/internal/store"
)

// engineOn returns an engine on a new store that is released by hand.
func engineOn(tb testing.TB) (*Engine, *store.Store) {
	tb.Helper()
	s, err := store.Open(store.OS(), tb.TempDir(), store.Options{})
	if err != nil {
		tb.Fatalf("open store: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close store: %v", err)
		}
	})
	clock := SystemClock{}
	e := New(Config{Store: s, Clock: clock, Alarms: NewAlarms(clock, nil)})
	e.release.sink = &countingSink{}
	return e, s
}

// message is of the size that all our figures are about.
func message() *store.Message {
	return &store.Message{
		Exchange: []byte("orders"), RoutingKey: []byte("order.close"), Props: make([]byte, 40),
		Body: make([]byte, 256), ExchangeID: 2, TTL: -1, Persistent: true,
	}
}

// TestEngineAddAndReleaseAllocateNothing is not parallel: it counts what the process allocates.
func TestEngineAddAndReleaseAllocateNothing(t *testing.T) {
	e, _ := engineOn(t)
	m := message()
	add := func() {
		if _, _, err := e.Add(m, 1); err != nil {
			t.Fatal(err)
		}
	}
	release := func() {
		if n, err := e.releaseDue(2); n == 0 || err != nil {
			t.Fatalf("release: got %d, %v", n, err)
		}
	}
	for range 4 * DefaultMaxBatch { // makes the working space as large as it will be
		add()
	}
	for range 4 {
		release()
	}
	// The store takes a new segment now and then; per message that is nothing.
	if n := testing.AllocsPerRun(20*DefaultMaxBatch, add); n != 0 {
		t.Errorf("allocations per add: got %v, want 0", n)
	}
	if n := testing.AllocsPerRun(15, release) / DefaultMaxBatch; n > 0.05 {
		t.Errorf("allocations per entry released: got %v, want 0", n)
	}
}

func BenchmarkEngineAdd(b *testing.B) {
	e, _ := engineOn(b)
	m := message()
	b.SetBytes(int64(len(m.Body)))
	b.ReportAllocs()
	rng := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		if _, _, err := e.Add(m, 1<<40+rng.Int64N(3_600_000)); err != nil { // within an hour
			b.Fatal(err)
		}
	}
}

// BenchmarkEngineRelease measures one entry, in batches as they are in life.
func BenchmarkEngineRelease(b *testing.B) {
	e, _ := engineOn(b)
	m := message()
	for range b.N {
		if _, _, err := e.Add(m, 1); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for released := 0; released < b.N; {
		n, err := e.releaseDue(2)
		if err != nil {
			b.Fatal(err)
		}
		released += n
	}
}
