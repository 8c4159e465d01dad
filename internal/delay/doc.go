// Package delay hands messages over when they are due.
//
// It knows time and nothing of AMQP: a message comes with a due instant, waits in the
// store, and goes to a Sink at or after that instant, in the order (due, accepted).
//
//   - [Clock] is the wall clock. Due instants are wall-clock instants in unix milliseconds.
//   - [Alarms] is the one waiting loop: one goroutine and one timer, armed for the earliest
//     of all alarms. Everything that falls due in the broker (delayed messages, message and
//     queue TTL, retries) hangs on one of its alarms. Nothing here polls.
//   - [StepWatcher] tells Alarms at once when somebody sets the machine's clock.
//   - [Engine] releases delayed messages: pop what is due, ask the Sink where it goes,
//     commit that as one atomic group, let the Sink hand over.
//
// Invariants:
//
//   - Never early. Nothing is released before the wall clock reads its due instant; the
//     clock is rounded down to a millisecond, the due instant was rounded up.
//   - At least once. An entry leaves the store in the same atomic group that puts its
//     message into the target queues. A crash between may repeat, never lose.
//   - Fail-stop. When the store fails the engine stops releasing, says so in its log,
//     its counters and Err, and does not start again in this process.
//
// It does not know exchanges, bindings or queues (the Sink does), and it keeps no Go object
// per waiting message (the store does the keeping).
package delay
