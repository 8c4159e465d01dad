package delay

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// latenessBuckets are enough for 2^43 microseconds, 101 days; later still counts in the last.
const latenessBuckets = 44

// Lateness is a histogram with buckets that double: Buckets[0] counts what was less than
// 1 µs late, Buckets[i] what was from 2^(i-1) µs to less than 2^i µs late.
type Lateness struct {
	Buckets   [latenessBuckets]uint64
	SumMicros uint64 // of all that was counted
}

// Upper returns the bound below which everything in bucket i and before it lies.
func (Lateness) Upper(i int) time.Duration { return time.Microsecond << i }

// Count returns how many were counted.
func (l *Lateness) Count() uint64 {
	var n uint64
	for _, b := range l.Buckets {
		n += b
	}
	return n
}

// Quantile returns a bound that the share q (0 to 1) of all that was counted does not exceed:
// the upper end of its bucket, so at most twice the truth. 0 if nothing was counted.
func (l *Lateness) Quantile(q float64) time.Duration {
	total := l.Count()
	if total == 0 {
		return 0
	}
	var n uint64
	for i, b := range l.Buckets {
		n += b
		if b != 0 && float64(n) >= q*float64(total) {
			return l.Upper(i)
		}
	}
	return l.Upper(latenessBuckets - 1)
}

// observe counts one. Negative values, which only a clock set back during the hand-over can
// make, count as 0.
func (l *Lateness) observe(micros int64) {
	late := uint64(max(micros, 0))
	l.Buckets[min(bits.Len64(late), latenessBuckets-1)]++
	l.SumMicros += late
}

// latenessCounters is a Lateness that is written by one goroutine and read by any.
type latenessCounters struct {
	buckets   [latenessBuckets]atomic.Uint64
	sumMicros atomic.Uint64
}

func (c *latenessCounters) add(l *Lateness) {
	for i, n := range l.Buckets {
		addTo(&c.buckets[i], n)
	}
	addTo(&c.sumMicros, l.SumMicros)
}

func (c *latenessCounters) load() Lateness {
	var l Lateness
	for i := range c.buckets {
		l.Buckets[i] = c.buckets[i].Load()
	}
	l.SumMicros = c.sumMicros.Load()
	return l
}
