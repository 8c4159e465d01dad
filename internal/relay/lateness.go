package relay

import (
	"sync/atomic"
	"time"
)

// Lateness is a histogram of how long after it was due the release of each message was confirmed.
type Lateness struct {
	buckets [nBounds + 1]atomic.Uint64 // the last is of what is beyond all bounds
	sum     atomic.Uint64              // in milliseconds
}

const nBounds = 14

// bounds are the upper ends of the buckets, in milliseconds, each of them included.
func bounds() [nBounds]int64 {
	return [...]int64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 60_000}
}

// observe notes a message. What was confirmed in the millisecond in which it was due is not late.
func (l *Lateness) observe(millis int64) {
	millis = max(millis, 0)
	i, ends := 0, bounds()
	for i < nBounds && millis > ends[i] {
		i++
	}
	l.buckets[i].Add(1)
	l.sum.Add(uint64(millis))
}

// Bucket is how many messages were late by at most Most.
type Bucket struct {
	Most     time.Duration
	Messages uint64
}

// Snapshot returns the buckets, each with those before it, how many messages there were in all, and how
// late all together.
func (l *Lateness) Snapshot() (buckets []Bucket, messages uint64, sum time.Duration) {
	for i, bound := range bounds() {
		messages += l.buckets[i].Load()
		buckets = append(buckets, Bucket{time.Duration(bound) * time.Millisecond, messages})
	}
	messages += l.buckets[nBounds].Load()
	return buckets, messages, time.Duration(l.sum.Load()) * time.Millisecond
}
