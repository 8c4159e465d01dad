// Package shop is about orders that must be paid in time: placing one holds stock, paying one sells
// it, and an order that nobody pays is closed at its deadline, which gives the stock back.
//
//	s, err := shop.New(ctx, shop.Config{DB: db, Dialect: dialect.SQLite, Client: client})
//	go s.Run(ctx) // in every process
//	order, err := s.Place(ctx, "mug", 2)
//	err = s.Pay(ctx, order.ID)
//
// Who closes an order is one conditional update, in [Shop.close]; everything else only sees to it
// that somebody tries at the right time:
//
//   - The order, the stock that it holds and the first message of its ladder are committed
//     together (package outbox): there is no order without a message, and no message without an order.
//   - The ladder (package ladder) looks at the order with growing pauses, and closes it at the
//     deadline. Most orders are paid soon, and then nothing of them waits for the rest of the time.
//   - The sweep (package sweep) finds orders whose message was lost.
//   - Closing writes a letter to the customer, by a message in the same transaction. That
//     message may come twice; the letter is written once (package once).
//
// Deadlines are compared with the clock of the database, so that a process whose clock is ahead
// closes nothing early.
//
// It does not know HTTP, nor which broker and database it has.
package shop
