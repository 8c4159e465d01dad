package delay

import (
	"math/rand/v2"
	"time"
)

// maxAttempts bounds how many entries a backOff remembers, about 20 MB. At the bound it
// forgets all of them, and their next wait is a first one again; so do entries that went away
// while they waited, of which nobody tells it.
const maxAttempts = 1 << 20

// backOff spaces the attempts to release an entry that its targets reject: the wait doubles
// with each, from first up to max. It belongs to the engine's goroutine.
type backOff struct {
	first, max time.Duration
	jitter     func(n int64) int64 // 0 <= jitter(n) < n
	attempts   map[uint64]uint8    // by the entry's sequence number, which a retry keeps
}

func newBackOff(first, max time.Duration) backOff {
	return backOff{first: first, max: max, jitter: rand.Int64N, attempts: map[uint64]uint8{}}
}

// next returns the instant of the next attempt for an entry that is rejected at now. A random
// part of up to a quarter keeps entries that were rejected together from coming back together.
func (b *backOff) next(seq uint64, now int64) int64 {
	if len(b.attempts) >= maxAttempts {
		clear(b.attempts)
	}
	n := b.attempts[seq]
	wait := b.max
	if shifted := b.first << n; shifted < b.max && shifted > 0 {
		wait = shifted
		b.attempts[seq] = n + 1 // goes on only until max is reached, so it cannot overflow
	}
	millis := max(wait.Milliseconds(), 1)
	return now + millis + b.jitter(millis/4+1)
}

// end forgets an entry that is waited for no longer.
func (b *backOff) end(seq uint64) {
	if len(b.attempts) > 0 { // as good as always it is empty
		delete(b.attempts, seq)
	}
}
