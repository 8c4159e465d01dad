// Package store keeps everything durable in one directory: ready messages of
// durable queues, delayed messages, acknowledgements, moves from delayed to
// ready, and definitions. It is one write-ahead log with group commit; the
// buffer of a log segment is the byte image of its file, so a message is
// encoded once. Messages that need not survive live beside it in memory
// segments, spilled to scratch files beyond a budget.
//
// It knows records, frames, segments, fsync, recovery and cleaning. It does
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
//   - A delayed entry waits in memory and in the log or, if it is due long after
//     the last PopDue, in a run: a sorted, immutable file. Which entries are in
//     runs, and which of them ended, is said by records of the log.
//
// Locks, outermost first: delayed index, log. Neither is held during I/O or
// while a callback runs. Before both comes the lock of those who read runs. See
// the comments at the fields.
package store
