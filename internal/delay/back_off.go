package delay

import (
	"math/rand/v2"
	"time"
)

// backOff spaces the attempts to release an entry that its targets reject. It remembers
// nothing about entries: an entry waits about as long as it has already waited since it was
// first due, so the time between attempts doubles, from first up to max.
type backOff struct {
	first, max time.Duration
}

// next returns the instant of the next attempt of an entry that was first due at firstDue.
// A random part of up to a quarter keeps entries that were rejected together from coming
// back together. The result is later than now.
func (b backOff) next(firstDue, now int64) int64 {
	wait := max(b.first.Milliseconds(), 1)
	if waited := now - firstDue; waited > wait {
		wait = min(waited, b.max.Milliseconds())
	}
	return now + wait + rand.Int64N(wait/4+1)
}
