// Package once is about work that must be done once, though the message that asks for it comes
// twice.
//
//	store, err := once.NewSQL(db, dialect.Postgres, "close-unpaid", once.Options{})
//	...
//	err = once.Do(ctx, store, d.MessageID, func(ctx context.Context, tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "UPDATE orders SET ... WHERE id = $1", id)
//		return err
//	})
//
// Do returns nil when the work is done, now or before. An error of the work leaves no record, so
// that the next message may try again.
//
// # What each store promises
//
// [SQL] keeps its records in the application's own database, in the transaction in which the
// work is done: both are committed or neither. What the work does with the transaction it is
// given happens exactly once, whatever crashes when. A crash leaves nothing behind. What it does
// elsewhere (a mail, a call to a bank) happens at least once.
//
// Redis (package redisonce, a module of its own) and [NewMemory] keep records apart from the work. While
// the work is done a lease is held and renewed; a crash lets it lapse, and somebody else may
// try. So work is done at least once, and a second time only if a process died or lost its store in the moment
// between doing the work and recording it, or was held up for longer than its lease. [Lease.Fence] lets what is
// worked on refuse the one who was held up. Redis forgets what it had not written to disk or to a
// replica; memory forgets when the process ends and is for tests and for duplicates that come
// within one process.
//
// # What it does not
//
// It does not choose the key: take the message's id, or better what the work is about, say
// "order 17 paid". Records are kept for [Options.Keep]; what comes twice after that is done twice.
// It imports no driver.
package once
