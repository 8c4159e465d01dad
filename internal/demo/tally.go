package demo

import (
	"math"
	"sync"
	"time"
)

// Limit is how late a hand-over may be. It is generous because the demo shares the machine with
// whatever else runs there; the table shows the true figures.
const Limit = 500 * time.Millisecond

// Row is one line of the final table.
type Row struct {
	Placed    int           // messages the broker confirmed
	Received  int           // different ones handed over
	Repeated  int           // handed over again, as may happen around a crash
	Earliest  time.Duration // least and most hand-over minus due; 0 if none was received
	Latest    time.Duration
	lateLimit time.Duration
}

// Lost is how many confirmed messages never came.
func (r Row) Lost() int { return r.Placed - r.Received }

// OnTime is true when nothing was lost, early or late.
func (r Row) OnTime() bool {
	return r.Lost() == 0 && r.Earliest >= 0 && r.Latest <= r.lateLimit
}

// Report is what the demo showed.
type Report struct {
	// Up is the messages due while the broker ran, Down those due while it was killed or not
	// yet back with its clients; the latter cannot come before it is.
	Up, Down Row
	// Downtime is from the kill until clients were served again.
	Downtime time.Duration
}

// OnTime is true when all was.
func (r Report) OnTime() bool { return r.Up.OnTime() && r.Down.OnTime() }

// tally notes what was placed and what came.
type tally struct {
	mu sync.Mutex // guards the rest
	// due is when each confirmed message is due at the earliest, by order.
	due map[int]time.Time
	// late has the lateness of each order's first hand-over.
	late          map[int]time.Duration
	repeated      map[int]int
	killed, alive time.Time
	arrived       chan struct{} // holds a signal after each arrival
}

func newTally() *tally {
	return &tally{
		due: map[int]time.Time{}, late: map[int]time.Duration{}, repeated: map[int]int{},
		arrived: make(chan struct{}, 1),
	}
}

func (t *tally) placed(id int, due time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due[id] = due
}

// received notes a hand-over and reports whether it is the first of its order. Lateness is from
// the due instant that the message itself carries: after an unclear publish there may be two.
func (t *tally) received(id int, late time.Duration) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, again := t.late[id]; again {
		t.repeated[id]++
		return false
	}
	t.late[id] = late
	select {
	case t.arrived <- struct{}{}:
	default:
	}
	return true
}

// wasDown notes when the broker was killed and when clients were served again.
func (t *tally) wasDown(killed, alive time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.killed, t.alive = killed, alive
}

// missing is how many placed messages have not come, and when the last of them is due.
func (t *tally) missing() (n int, last time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, due := range t.due {
		if _, ok := t.late[id]; ok {
			continue
		}
		n++
		if due.After(last) {
			last = due
		}
	}
	return n, last
}

// waiting is how many are placed and not due yet.
func (t *tally) waiting(now time.Time) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, due := range t.due {
		if due.After(now) {
			n++
		}
	}
	return n
}

// report adds up.
func (t *tally) report() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := Report{Downtime: t.alive.Sub(t.killed)}
	r.Up = Row{Earliest: math.MaxInt64, Latest: math.MinInt64, lateLimit: Limit}
	r.Down = Row{Earliest: math.MaxInt64, Latest: math.MinInt64, lateLimit: Limit + r.Downtime}
	for id, due := range t.due {
		row := &r.Up
		if !due.Before(t.killed) && !due.After(t.alive) {
			row = &r.Down
		}
		row.Placed++
		row.Repeated += t.repeated[id]
		if late, ok := t.late[id]; ok {
			row.Received++
			row.Earliest, row.Latest = min(row.Earliest, late), max(row.Latest, late)
		}
	}
	for _, row := range []*Row{&r.Up, &r.Down} {
		if row.Received == 0 {
			row.Earliest, row.Latest = 0, 0
		}
	}
	return r
}
