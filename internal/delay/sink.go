package delay

import "github.com/duepost/duepost/internal/store"

// Sink is where released messages go: the broker. The engine calls Route and then Push for
// one batch after the other, always from its own goroutine and without locks. Slices are the
// engine's and valid during the call only.
type Sink interface {
	// Route decides what becomes of each entry of the batch, which is in (due, accepted)
	// order, and fills in the Outcome of the same index. It reserves the places it names in
	// Targets; nothing may be delivered from them before Push. It must not block on a client.
	Route(batch []store.Due, out []Outcome)

	// Push tells that outcomes were written to the log: Moved and Parked entries may now be
	// delivered from their places. The Ref in the batch is the one to use from now on. It
	// gets what Route got, in the same order, but possibly in several calls. An entry may
	// come back as Dropped though Route said Retry, because its record is damaged and cannot
	// be written again. If the store fails Push is not called at all.
	// It must not block on a client.
	Push(batch []store.Due, out []Outcome)
}

// Verdict is what becomes of a due entry.
type Verdict uint8

// The zero Verdict is Retry, so that an entry which a Sink overlooks is not lost.
const (
	Retry   Verdict = iota // a target rejects it now: try again later
	Moved                  // it goes to Targets
	Parked                 // nobody takes it: it goes to Targets, a parking queue, with its Reason
	Copied                 // it goes on as a copy that the Sink made, so its waiting ends here
	Dropped                // nobody wants it any more, e.g. its exchange was deleted
)

// Outcome is a Sink's answer for one entry. Route finds it zero save for Arrived, TTL and
// the capacity of Targets.
type Outcome struct {
	Verdict Verdict

	// Targets are the places in durable queues that the entry moves to.
	Targets []store.Target

	// Holds is how many queue entries refer to the message, in durable queues or not. The
	// engine takes len(Targets) if that is more. Moved with no holds at all is Dropped.
	Holds int

	// Arrived is when the message enters its queues, in unix milliseconds: now.
	Arrived int64

	// TTL is how long it may stay there in milliseconds, counted from Arrived; -1, which is
	// how Route finds it, is for ever.
	TTL int64

	// Persistent says that the message survives a restart in its queues.
	Persistent bool

	// RetryAt is when to try again, in unix milliseconds; 0 leaves it to the engine, which
	// waits longer each time. Push finds the instant chosen.
	RetryAt int64

	// Reason says why the entry was parked. The engine only passes it on to Push.
	Reason string
}
