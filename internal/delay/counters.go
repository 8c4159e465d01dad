package delay

import (
	"sync/atomic"
	"time"

	"github.com/duepost/duepost/internal/store"
)

// counters are what the engine has done since it was made. Each is written once per batch,
// or once per call, and may be read at any time.
type counters struct {
	added, cancelled                   atomic.Uint64
	batches                            atomic.Uint64
	released, parked, retried, dropped atomic.Uint64
	held                               atomic.Bool
	lateness                           latenessCounters
}

// Stats are the counters of an Engine.
type Stats struct {
	Pending store.Pending // what waits now
	NextDue int64         // when the earliest of it is due, unix milliseconds; 0 if nothing waits

	Added     uint64 // entries accepted
	Cancelled uint64 // entries taken out before they were due
	Released  uint64 // entries moved or copied to at least one queue
	Parked    uint64 // entries that nobody took
	Retried   uint64 // attempts that ended in a later attempt
	Dropped   uint64 // entries that nobody wanted any more
	Batches   uint64 // atomic groups of releases

	// Lateness is hand-over time minus due instant, of released and parked entries. That
	// of a retried entry counts from its last attempt.
	Lateness Lateness

	Held   bool // the disk is full; release goes on by itself when there is room
	Failed bool // the engine has stopped for good; Err says why
}

// Stats returns the counters. They are read one by one, so under load they need not add up.
func (e *Engine) Stats() Stats {
	next, _ := e.store.NextDue()
	c := &e.counters
	return Stats{
		Pending:   e.store.PendingTotal(),
		NextDue:   next,
		Added:     c.added.Load(),
		Cancelled: c.cancelled.Load(),
		Released:  c.released.Load(),
		Parked:    c.parked.Load(),
		Retried:   c.retried.Load(),
		Dropped:   c.dropped.Load(),
		Batches:   c.batches.Load(),
		Lateness:  c.lateness.load(),
		Held:      c.held.Load(),
		Failed:    e.Err() != nil,
	}
}

// count adds one batch, handed over at the given time.
func (c *counters) count(batch []store.Due, out []Outcome, at time.Time) {
	var n [Dropped + 1]uint64
	var late Lateness
	micros := at.UnixMicro()
	for i := range out {
		n[out[i].Verdict]++
		if v := out[i].Verdict; v == Moved || v == Copied || v == Parked {
			late.observe(micros - batch[i].Key.Due*1000)
		}
	}
	c.batches.Add(1)
	addTo(&c.released, n[Moved]+n[Copied])
	addTo(&c.parked, n[Parked])
	addTo(&c.retried, n[Retry])
	addTo(&c.dropped, n[Dropped])
	c.lateness.add(&late)
}

func addTo(counter *atomic.Uint64, n uint64) {
	if n != 0 {
		counter.Add(n)
	}
}
