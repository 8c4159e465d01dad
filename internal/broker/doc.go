// Package broker is what AMQP means: virtual hosts, exchanges, bindings, queues, consumers,
// time to live, dead-lettering and delayed exchanges.
//
// It knows the rules and nothing of frames or sockets: a connection is a [Session], a channel's
// publishing side a [Publisher], a consumer a [Receiver]. It keeps no message bodies (the store
// does) and does not wait for instants (the delay package does).
//
// The way of a message. [Publisher.Publish] finds the exchange and the queues it leads to (the
// publisher remembers its last route for as long as the virtual host's topology is unchanged),
// reserves a position in each queue, hands the message to the store once, puts a 24-byte entry
// into the index of each queue and, on the same goroutine, gives it to a consumer with credit
// if there is one. A message for a delayed exchange goes to the delay engine instead, which
// gives it back through [Broker.Route] and [Broker.Push] when it is due.
//
// Invariants:
//
//   - A message reaches a queue at most once, however many ways lead there.
//   - A message is in exactly one state in a queue: ready, held (claimed or unacknowledged)
//     or gone. Only a ready one is delivered; one that goes back from held to ready keeps its
//     place and is marked redelivered.
//   - What leaves a durable queue for another durable place (dead-lettering, tx) leaves and
//     arrives in one atomic group of the store.
//   - A record in the log is referred to only by durable queues, with a target of their own;
//     what a queue that is not durable needs is a copy in the store's transient memory.
//   - No I/O, no callback and no waiting under a queue's lock, except [Receiver.Reserve].
//
// Lock order: virtual host, queue, then what Reserve locks. Queues are never locked two at a
// time.
package broker
