// Package relay is about delayed exchanges on RabbitMQ: messages wait in RabbitMQ's own quorum
// queues, and a relay only decides when they go on.
//
// A message with a delay arrives in the intake. It is moved to the wheel: a ring of queues for each
// level, whose slots are a second long on the finest and ever longer above. It waits in the coarsest
// slot that fits, is moved down as its time nears, and is held, unacknowledged, while it is in the
// finest. When it is due it is published where its bindings are. Each step is publish, confirm,
// acknowledge, in this order, so that whatever dies a message is in one queue or in two, never in
// none.
//
// A relay keeps no state. Several may run: RabbitMQ gives a queue of the wheel to one of them, and
// what it held to the next when it dies. After any fault a session begins anew, and looks first at
// everything whose time may have passed.
//
// It does not know the gateway, nor how the topology is laid out (package topology).
package relay
