package delay

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBackOffDoublesUpToItsMaximum(t *testing.T) {
	t.Parallel()
	b := newBackOff(100*time.Millisecond, time.Second)
	b.jitter = func(int64) int64 { return 0 }
	waits := func(seq uint64, n int) (got []int64) {
		for range n {
			got = append(got, b.next(seq, 5000)-5000)
		}
		return got
	}
	want := []int64{100, 200, 400, 800, 1000, 1000}
	if diff := cmp.Diff(want, waits(1, 6)); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:2], waits(2, 2)); diff != "" {
		t.Errorf("waits of another entry (-want +got):\n%s", diff)
	}
	b.end(1)
	if diff := cmp.Diff(want[:1], waits(1, 1)); diff != "" {
		t.Errorf("waits after the end (-want +got):\n%s", diff)
	}
}

func TestBackOffJitter(t *testing.T) {
	t.Parallel()
	seen := map[int64]bool{}
	for seq := range uint64(1000) {
		b := newBackOff(100*time.Millisecond, time.Second)
		at := b.next(seq, 0)
		if at < 100 || at > 125 {
			t.Fatalf("first wait: got %d ms, want 100 to 125", at)
		}
		seen[at] = true
	}
	if len(seen) < 10 {
		t.Errorf("got %d different waits of 1000, want them spread", len(seen))
	}
}

func TestBackOffRemembersSoManyAndNoMore(t *testing.T) {
	t.Parallel()
	b := newBackOff(100*time.Millisecond, time.Second)
	for seq := range uint64(maxAttempts + 10) {
		b.next(seq, 0)
	}
	if got := len(b.attempts); got > maxAttempts {
		t.Errorf("remembered: got %d, want at most %d", got, maxAttempts)
	}
}
