// Package ladder is about looking at something again and again, with growing pauses, until it is
// done or its time is up: an order that should be paid within half an hour is looked at after 1, 3,
// 7 and 15 minutes, and closed after 30.
//
//	l, err := ladder.New(ctx, client, ladder.Options{
//		Steps:    ladder.Steps{First: time.Minute, Deadline: 30 * time.Minute},
//		Consumer: duepost.Consumer{Queue: "unpaid"},
//		Check:    orders.IsSettled,     // paid, or closed already
//		Expire:   orders.CloseIfUnpaid, // UPDATE ... WHERE status = 'unpaid'
//	})
//	...
//	err = l.Begin(ctx, "order 17")
//	...
//	err = l.Run(ctx) // in every process that should take part
//
// One message for each item waits in the broker, for the next step only. Most items are done soon,
// and then nothing of them is left: no message that waits for the rest of the half hour.
//
// # What it promises
//
//   - Check is never called after it has said done, but for messages that the broker hands over
//     twice.
//   - Expire is never called before the deadline, by the clock of the process that calls it, and
//     only right after Check has said that the item is not done.
//   - The last step is due at the deadline exactly. Steps that come late, and checks that take
//     long or fail, do not move it.
//   - A Check that fails before the deadline is tried again soon, and counts as not yet when the
//     next step comes first. At the deadline, where the answer counts, a Check or Expire that
//     fails is retried as [duepost.Consumer] says and then parked with its error. Parked
//     messages can be published again: they are what they were.
//   - A message may come twice. That is harmless where Expire changes only what is not done, and
//     Check says done once it has.
//   - All state is in the message. Who changes Steps changes them for items that begin
//     afterwards; those under way keep theirs.
//
// It knows the client of package duepost and keeps nothing in memory or in a database.
package ladder
