package delay

import "github.com/duepost/duepost/internal/store"

// Sink is where released messages go: the broker. The engine calls Route and then Push for
// one batch after the other, always from its own goroutine and without locks. Slices are the
// engine's and valid during the call only.
type Sink interface {
	// Route decides what becomes of each entry of the batch, which is in (due, accepted)
	// order, and writes it to the Outcome of the same index. Every Outcome comes in as its
	// zero value save that Targets may have capacity to append to. Route reserves the places
	// it names in Targets; nothing may be delivered from them before Push. If the commit
	// between the two fails Push is not called, and the places stay reserved for ever.
	// It must not block on a client.
	Route(batch []store.Due, out []Outcome)

	// Push tells that the outcomes were written to the log: Moved and Parked entries may now
	// be delivered from their places. It gets the same slices as Route did, with RetryAt
	// filled in. It must not block on a client.
	Push(batch []store.Due, out []Outcome)
}

// Verdict is what becomes of a due entry.
type Verdict uint8

// The zero Verdict is Retry, so that an entry which a Sink overlooks is not lost.
const (
	Retry  Verdict = iota // a target rejects it now: try again later
	Moved                 // it goes to Targets
	Parked                // nobody takes it: it goes to Targets, a parking queue, with its Reason
	Dropped               // nobody wants it any more, e.g. its exchange was deleted
)

// Outcome is a Sink's answer for one entry.
type Outcome struct {
	Verdict Verdict

	// Targets are the places in durable queues that the entry moves to.
	Targets []store.Target

	// Holds is how many queue entries refer to the message, in durable queues or not. The
	// engine takes len(Targets) if that is more. Moved with no holds at all is Dropped.
	Holds int

	// RetryAt is when to try again, in unix milliseconds; 0 leaves it to the engine, which
	// waits longer each time.
	RetryAt int64

	// Reason says why the entry was parked. The engine passes it on to Push.
	Reason string
}
