// Package load is about loading an AMQP 0-9-1 broker and measuring what comes of it. It works
// against any broker, so that two brokers can be compared by one tool in one run, and it knows a
// broker only from outside: its URL and, for CPU and memory, its process id.
//
// Five scenarios (Scenarios lists them):
//
//	publish   publishers only; what was accepted is drained afterwards and counted
//	consume   a filled queue is emptied
//	plain     publishers and consumers at once
//	delayed   delays spread evenly over a range, consumed when due
//	burst     everything due at one instant
//
// What makes a figure honest: rates come from the steady part of a run (after a warm-up, or from
// the tenth to the ninetieth percent of a fixed number of messages); every message carries its
// publisher, its number, its time and its delay in the body, so that lost, duplicate and early
// ones are counted, not assumed; lateness is measured from the publisher's clock, so it includes
// the way into the broker; the broker's CPU time is read from the kernel at both ends of the
// measured part.
package load
