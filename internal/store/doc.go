// Package store keeps everything durable in one directory: ready messages of
// durable queues, delayed messages, acknowledgements, moves from delayed to
// ready, and definitions. It is one write-ahead log with group commit, and sorted
// runs, into which delayed messages go that wait for long (flush.go, merge.go); the
// buffer of a log segment is the byte image of its file, so a message is
// encoded once. Messages that need not survive live beside it in memory
// segments, spilled to scratch files beyond a budget.
//
// It knows records, frames, segments, runs, fsync, recovery and cleaning. It does
// not know AMQP, routing, or the time of day: it has no clock, and "now" comes
// in as an argument. The byte format is described in docs/FORMATS.md.
//
// The main types are [Store], [Batch] (an atomic group), [Ref] (where a record
// is), [Key] (a delayed entry) and [FS] (the disk, so that every fault can be
// produced).
//
// Invariants:
//
//   - A waiter is told "durable" only after a successful fdatasync of every
//     byte up to its LSN. After one failed write or fdatasync nothing is ever
//     confirmed again (fail-stop).
//   - All records of one [Batch] lie in one frame; recovery applies all of
//     them or none.
//   - A position of a queue and the sequence number of a delayed entry are
//     never used twice; once settled, moved or cancelled durably they stay so,
//     in whatever order recovery meets the records.
//   - Segments are emptied strictly oldest first, so an acknowledgement never
//     goes before the message it is about.
//   - Segment ids grow and every frame and record carries a salt made of the
//     id, so what an earlier use left in a recycled file never validates.
//   - A run is durable before the log tells of it, and never changed. What of it
//     waits is in the log, which says so again before it forgets. It goes when the
//     log durably says that it is not needed.
//   - An entry waits in one place: in the segment that has its record, or in a run.
//     It changes that place at one instant, under the index lock, with the record
//     that says so.
//
// docs/FORMATS.md lists them all, with the line that keeps each and the test that
// fails without it.
//
// Locks, outermost first: popping, ending, delayed index, log. The last two are not
// held during I/O, and none while a callback runs. See the comments at the fields.
package store
