// Package outbox is about messages that belong to a database transaction: sent if it commits,
// and only then.
//
//	box, err := outbox.New(db, dialect.Postgres, outbox.Options{})
//	...
//	tx, err := db.BeginTx(ctx, nil)
//	_, err = tx.ExecContext(ctx, "INSERT INTO orders ...")
//	_, err = box.Add(ctx, tx, duepost.Message{RoutingKey: "close-unpaid", Body: id, Delay: 30 * time.Minute})
//	err = tx.Commit()
//
//	// In one process or in many:
//	err = box.Relay(ctx, client)
//
// # What it promises
//
//   - Add writes a row in the caller's transaction. No commit, no message; a commit, and the
//     message is published, though the process dies right after it.
//   - Every message is published at least once: marked only after the broker's confirm. Published
//     twice it has the same MessageID, by which consumers can tell (package once).
//   - A Delay counts from Add, however late the relay is.
//   - Messages of the same Key on the same Exchange, and those of the same lane
//     ([Outbox.AddOrdered]), are published one after the other, in the order of Add in
//     transactions of which one began its Add after the other committed. All others go in any order.
//   - Relays share the work. One that dies lets go of what it held after [Options.Lease]; one that
//     hangs longer than that may publish what another has published already.
//   - A broker that is away holds up everything and costs nothing else. A message that is at fault
//     itself (no such exchange, no queue) is tried again with growing pauses and then parked with
//     its error, so that it holds up nobody: see [Outbox.Parked] and [Outbox.Retry]. Its lane goes on
//     without it.
//
// Times in the table are the database's, so the clocks of processes do not matter, save for Delay.
//
// It does not know what the messages mean, and no driver. On SQLite, which has one writer, a relay never
// holds that up while it publishes.
package outbox
