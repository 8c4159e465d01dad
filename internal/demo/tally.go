package demo

import (
	"math"
	"sync"
	"time"
)

// Limit is how late a hand-over may be on a machine that lets this process run. It is generous;
// the table shows the true figures.
const Limit = 500 * time.Millisecond

// Row is one line of the final table.
type Row struct {
	Placed   int           // messages the broker confirmed
	Received int           // different ones handed over
	Repeated int           // handed over again, as may happen around a crash
	Overdue  int           // handed over later than allowed
	Earliest time.Duration // least and most hand-over minus due; 0 if none was received
	Latest   time.Duration
}

// Lost is how many confirmed messages never came.
func (r Row) Lost() int { return r.Placed - r.Received }

// OnTime is true when nothing was lost, early or late.
func (r Row) OnTime() bool { return r.Lost() == 0 && r.Earliest >= 0 && r.Overdue == 0 }

// Report is what the demo showed.
type Report struct {
	// Up is the messages due while the broker ran, Down those that the outage held up: due
	// while it was killed or not yet back with its clients, or so shortly before that the kill
	// overtook the hand-over. The latter cannot come before it is back.
	Up, Down Row
	// Downtime is from the kill until clients were served again.
	Downtime time.Duration
	// Stall is how late hand-overs may be beyond Limit, because the machine kept this process
	// waiting.
	Stall time.Duration
}

// Allowed is how late a hand-over may be: after due, or after the broker is back.
func (r Report) Allowed() time.Duration { return Limit + r.Stall }

// OnTime is true when all was.
func (r Report) OnTime() bool { return r.Up.OnTime() && r.Down.OnTime() }

// handover is the first hand-over of an order's message. Due is what the message itself says:
// after an unclear publish there may be two messages.
type handover struct{ due, at time.Time }

// tally notes what was placed and what came.
type tally struct {
	mu sync.Mutex // guards the rest
	// due is when each confirmed message is due at the earliest, by order.
	due           map[int]time.Time
	first         map[int]handover
	repeated      map[int]int
	killed, alive time.Time
	arrived       chan struct{} // holds a signal after each arrival
}

func newTally() *tally {
	return &tally{
		due: map[int]time.Time{}, first: map[int]handover{}, repeated: map[int]int{},
		arrived: make(chan struct{}, 1),
	}
}

func (t *tally) placed(id int, due time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due[id] = due
}

// received notes a hand-over and reports whether it is the first of its order.
func (t *tally) received(id int, h handover) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, again := t.first[id]; again {
		t.repeated[id]++
		return false
	}
	t.first[id] = h
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
		if _, ok := t.first[id]; ok {
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

// report adds up; stall is what the machine excuses.
func (t *tally) report(stall time.Duration) Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := Report{Downtime: t.alive.Sub(t.killed), Stall: stall}
	r.Up = Row{Earliest: math.MaxInt64, Latest: math.MinInt64}
	r.Down = r.Up
	for id, due := range t.due {
		h, came := t.first[id]
		if came {
			due = h.due
		}
		row, since := &r.Up, due
		if t.heldUp(due, h.at, r.Allowed()) {
			row, since = &r.Down, t.alive
		}
		row.Placed++
		row.Repeated += t.repeated[id]
		if !came {
			continue
		}
		row.Received++
		late := h.at.Sub(due)
		row.Earliest, row.Latest = min(row.Earliest, late), max(row.Latest, late)
		if h.at.Sub(since) > r.Allowed() {
			row.Overdue++
		}
	}
	for _, row := range []*Row{&r.Up, &r.Down} {
		if row.Received == 0 {
			row.Earliest, row.Latest = 0, 0
		}
	}
	return r
}

// heldUp tells whether the outage is what a message had to wait for. One that could have come
// before the kill with the lateness that is allowed, and did not, is the outage's as well; one
// that was due longer before should have come.
func (t *tally) heldUp(due, at time.Time, allowed time.Duration) bool {
	if due.After(t.alive) || due.Before(t.killed.Add(-allowed)) {
		return false
	}
	return !due.Before(t.killed) || !at.Before(t.killed) || at.IsZero()
}
