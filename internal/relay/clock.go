package relay

import (
	"fmt"
	"time"
)

// mostJump is by how much the clock may be set without notice. What is left of the order of a ring
// is longer.
const mostJump = 2 * time.Second

// clockWatch finds out whether the clock was set, which the time that has passed tells.
type clockWatch struct {
	clock   func() time.Time
	shown   int64     // by the clock at the last look, in milliseconds since 1970
	instant time.Time // of the last look, as the machine counts
}

func newClockWatch(clock func() time.Time) *clockWatch {
	return &clockWatch{clock, clock().UnixMilli(), time.Now()}
}

// look returns an error if the clock was set since the last look: the session begins anew then, and
// looks at every slot as if it had been away.
func (c *clockWatch) look() error {
	shown, instant := c.clock().UnixMilli(), time.Now()
	jump := time.Duration(shown-c.shown)*time.Millisecond - instant.Sub(c.instant)
	c.shown, c.instant = shown, instant
	if jump.Abs() > mostJump {
		return fmt.Errorf("look at the clock: it was set by %v", jump.Round(time.Millisecond))
	}
	return nil
}
