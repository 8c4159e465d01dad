package duepost

import (
	"math"
	"math/rand/v2"
	"time"
)

// withDefaults fills in what is not set.
func (b Backoff) withDefaults(first, longest time.Duration) Backoff {
	if b.First <= 0 {
		b.First = first
	}
	if b.Cap <= 0 {
		b.Cap = max(longest, b.First)
	}
	if b.Factor == 0 {
		b.Factor = 2
	}
	if b.Jitter == 0 {
		b.Jitter = 0.2
	}
	return b
}

// pause is the pause after the given number of tries, 1 for the first. chance is from 0 to 1.
func (b Backoff) pause(tries int, chance float64) time.Duration {
	d := float64(b.First) * math.Pow(b.Factor, float64(tries-1))
	d = min(d, float64(b.Cap))
	if b.Jitter > 0 {
		d *= 1 + b.Jitter*(2*chance-1)
	}
	return time.Duration(d)
}

// next is pause with a chance of its own.
func (b Backoff) next(tries int) time.Duration { return b.pause(tries, rand.Float64()) }
