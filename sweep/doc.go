// Package sweep is about the safety net below delayed messages: it finds rows whose deadline has
// passed and whose message never did its work, and gives them to the same idempotent handler.
//
//	s, err := sweep.New(db, dialect.Postgres, sweep.Options{
//		Name:  "close-unpaid",
//		Table: "orders", ID: "id", Due: "expires_at", Where: "status = 'unpaid'",
//		Handle: orders.CloseIfUnpaid, // what the message's handler calls, too
//	})
//	...
//	err = s.Run(ctx)
//
// # What it promises
//
//   - A row that is due for longer than [Options.Grace] and matches Where is given to Handle
//     until it does not match any more.
//   - It reads pages of an index, each from where the last one ended, and holds no
//     transaction meanwhile. [Sweep.Check] asks the database how it would read them, and Run
//     logs it if that is not by an index over Due.
//   - Of all processes with the same Name one sweeps at a time, by a lease in the table duepost_sweep.
//     If it dies another follows when the lease has lapsed. One that hangs may meet its
//     successor, so Handle must be idempotent, as it must be for messages.
//   - No more than [Options.Rate] rows a second are given to Handle. One that fails is logged,
//     holds up nobody, and comes again with the next round.
//
// A sweep that finds rows is a sign: messages were lost, or are later than Grace. Watch the
// [Round] that it reports.
//
// Deadlines are compared with the clock of the database unless [Options.Now] gives another: a
// process whose clock is ahead closes nothing early.
//
// It does not know messages, and no driver. It is not a scheduler: what should happen at the
// deadline is for a delayed message, which comes in milliseconds and costs no scan.
package sweep
