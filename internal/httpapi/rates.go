package httpapi

import (
	"sync"
	"time"
)

// How far apart two readings of the counters are from which a rate is told.
const (
	shortestRate = 5 * time.Second
	longestRate  = 5 * time.Minute
)

// rates tells how fast counters grow, from what they were when somebody asked before: nothing is
// measured while nobody asks, and the first answer has no rates.
type rates struct {
	mu   sync.Mutex
	past []reading // guarded by mu; oldest first, at least shortestRate apart
}

// reading is what counters were at an instant.
type reading struct {
	at       time.Time
	counters map[string]uint64
}

// objectOf has the counters by name and, where it can be told, how much they grow in a second.
func (r *rates) objectOf(now time.Time, counters map[string]uint64) object {
	o := object{}
	before, ok := r.before(reading{now, counters})
	for name, n := range counters {
		o[name] = n
		if ok {
			grown := float64(n-before.counters[name]) / now.Sub(before.at).Seconds()
			o[name+"_details"] = object{"rate": grown}
		}
	}
	return o
}

// before returns the last reading that is old enough to compare this one with, and keeps this one.
func (r *rates) before(this reading) (found reading, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.past) > 0 && this.at.Sub(r.past[0].at) > longestRate {
		r.past = r.past[1:]
	}
	for _, p := range r.past {
		if this.at.Sub(p.at) >= shortestRate {
			found, ok = p, true
		}
	}
	if n := len(r.past); n == 0 || this.at.Sub(r.past[n-1].at) >= shortestRate {
		r.past = append(r.past, this)
	}
	return found, ok
}

// messageStats are of all connections since the start.
func (c *call) messageStats(now time.Time) object {
	t := c.Server.Stats().Traffic
	return c.messageRates.objectOf(now, map[string]uint64{
		"publish": t.Published, "confirm": t.Confirmed, "return_unroutable": t.Returned,
		"deliver_get": t.Delivered + t.Got, "ack": t.Acked,
	})
}

// churnRates are of all connections since the start.
func (c *call) churnRates(now time.Time) object {
	s := c.Server.Stats()
	return c.churn.objectOf(now, map[string]uint64{
		"connection_created": s.ConnectionsOpened, "connection_closed": s.ConnectionsClosed,
		"channel_created": s.Channels,
	})
}
