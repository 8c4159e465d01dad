package delay

import (
	"math"
	"testing"
	"time"
)

func TestLatenessQuantiles(t *testing.T) {
	t.Parallel()
	var l Lateness
	if got := l.Quantile(0.99); got != 0 {
		t.Errorf("of nothing: got %v, want 0", got)
	}
	for range 990 {
		l.observe(700) // less than 1.024 ms
	}
	for range 9 {
		l.observe(5_000) // less than 8.192 ms
	}
	l.observe(math.MaxInt64)
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{
		{0, 1024 * time.Microsecond},
		{0.5, 1024 * time.Microsecond},
		{0.99, 1024 * time.Microsecond},
		{0.991, 8192 * time.Microsecond},
		{0.999, 8192 * time.Microsecond},
		{1, l.Upper(latenessBuckets - 1)},
	} {
		if got := l.Quantile(c.q); got != c.want {
			t.Errorf("quantile %v: got %v, want %v", c.q, got, c.want)
		}
	}
}

func TestLatenessBuckets(t *testing.T) {
	t.Parallel()
	for micros, want := range map[int64]int{-5: 0, 0: 0, 1: 1, 2: 2, 3: 2, 4: 3, 1023: 10, 1024: 11} {
		var l Lateness
		l.observe(micros)
		if l.Buckets[want] != 1 {
			t.Errorf("%d µs: got %v, want it in bucket %d", micros, l.Buckets, want)
		}
		if upper := l.Upper(want); time.Duration(max(micros, 0))*time.Microsecond >= upper {
			t.Errorf("%d µs: upper end of its bucket is %v", micros, upper)
		}
	}
}

func TestLatenessCountersAddUp(t *testing.T) {
	t.Parallel()
	var c latenessCounters
	for _, micros := range []int64{1, 10, 100} {
		var l Lateness
		l.observe(micros)
		l.observe(micros)
		c.add(&l)
	}
	got := c.load()
	if got.Count() != 6 || got.SumMicros != 222 {
		t.Errorf("got %d counted, sum %d, want 6 and 222", got.Count(), got.SumMicros)
	}
}
