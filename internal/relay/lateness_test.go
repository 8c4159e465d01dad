package relay

import (
	"testing"
	"time"
)

func TestLateness(t *testing.T) {
	t.Parallel()
	var l Lateness
	for _, millis := range []int64{-3, 0, 1, 2, 3, 60_000, 60_001, 1_000_000} {
		l.observe(millis)
	}
	buckets, n, sum := l.Snapshot()
	if n != 8 || sum != 1_120_007*time.Millisecond {
		t.Errorf("%d messages late by %v in all, want 8 by 1120.007s", n, sum)
	}
	for i, want := range map[int]uint64{0: 3, 1: 4, 2: 5, len(buckets) - 1: 6} {
		if got := buckets[i]; got.Messages != want {
			t.Errorf("%d are late by at most %v, want %d", got.Messages, got.Most, want)
		}
	}
}
