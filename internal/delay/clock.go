package delay

import "time"

// Clock is the wall clock: what the people of this machine take for the time of day.
// It may jump in both directions. Now may be called from any goroutine and must not block.
type Clock interface {
	Now() time.Time
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now returns the machine's time.
func (SystemClock) Now() time.Time { return time.Now() }

// CeilMillis returns t in unix milliseconds, rounded up. It is the instant from which a
// relative delay is counted: rounding up is what keeps a release from being early by the
// fraction of a millisecond.
func CeilMillis(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return ms
}
