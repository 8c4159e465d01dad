package demo

import (
	"context"
	"sync/atomic"
	"time"
)

// What a stalled machine is granted. A hand-over passes a handful of goroutines, and each may
// have to wait for the processor as long as the stallMeter did at worst. The cap keeps a broker
// that is late by seconds from being excused.
const (
	stallEvery  = 5 * time.Millisecond
	stallFactor = 4
	maxStallFor = 2 * time.Second
)

// stallMeter measures how long this process was kept from running when it was ready to: the
// lateness of a ticker that has nothing to do with the broker.
type stallMeter struct {
	worst atomic.Int64 // nanoseconds
}

// run measures until ctx ends.
func (m *stallMeter) run(ctx context.Context) {
	began := time.Now()
	timer := time.NewTimer(stallEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		m.note(time.Since(began) - stallEvery)
		began = time.Now()
		timer.Reset(stallEvery)
	}
}

func (m *stallMeter) note(stall time.Duration) {
	m.worst.Store(max(m.worst.Load(), int64(stall)))
}

// allowance is what hand-overs may be late because of the machine.
func (m *stallMeter) allowance() time.Duration {
	return min(stallFactor*time.Duration(m.worst.Load()), maxStallFor)
}
