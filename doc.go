// Package duepost publishes messages now that are handed over when they are due, and consumes
// them safely: over Duepost, RabbitMQ 3.10 to 4.3, and RabbitMQ with the delayed-message plugin.
//
//	client, err := duepost.Connect(ctx, duepost.Options{URL: "amqp://localhost"})
//	...
//	defer client.Close()
//
//	// Half an hour from now, whatever the broker:
//	_, err = client.Publish(ctx, duepost.Message{
//		RoutingKey: "close-unpaid", Body: order, Delay: 30 * time.Minute,
//	})
//
//	// Acknowledged after the handler returns nil; retried later, then parked, when it does not:
//	err = client.Consume(ctx, duepost.Consumer{Queue: "close-unpaid"},
//		func(ctx context.Context, d *duepost.Delivery) error {
//			return orders.CloseIfUnpaid(ctx, string(d.Body))
//		})
//
// # What it promises
//
// Publish returns nil when the broker has confirmed the message and found a queue or a place to
// wait for it; any other end is an error that tells whether the message was refused, surely not
// sent ([SafeToRetry]) or perhaps sent ([ErrUnconfirmed]). Nothing is handed over early. A
// message is acknowledged only after its handler returned nil or after its retry or its parked
// copy was confirmed, so it may come twice and is never lost: make handlers idempotent.
//
// # How it delays
//
// On connect the client finds out what the broker can do ([Client.Broker]). Duepost and the
// plugin have delayed exchanges and keep the message there ([ModeNative]). On a stock RabbitMQ it
// waits in queues with a time to live ([ModeWaitQueues], see [WaitQueues]). Publishers do not see
// the difference: any exchange can be the target of a delayed message, also the default one, and
// consumers get the routing key and the headers that the publisher gave.
//
// # What it does not
//
// It does not know the server's packages, keeps nothing on disk and decides nothing about
// databases: the packages once, ladder, outbox and sweep do.
package duepost
