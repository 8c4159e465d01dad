// Package gateway is a port in front of RabbitMQ for clients that declare exchanges of type
// x-delayed-message: a pipe with a few rewritten methods.
//
// It knows frames, and of the methods only those that name a delayed exchange. It does not know
// queues, messages or credentials, never answers in the broker's place, and leaves the making of
// delayed exchanges to a [Topology].
//
// A [Gateway] accepts clients and makes a link for each: two sockets and two pumps, one for each
// direction, each with one goroutine that owns everything of it. A pump passes octets on as they
// came, finds the frames in them by their heads, and shows a few to its sieve, which may replace
// them: upward for what the client says, downward for what the broker says. What another goroutine
// wants said on a socket goes into the pump's mailbox and is said between two frames.
//
// A method that needs work on the topology becomes an errand: its channel is held, which means that
// what the client says on it is kept (up to a limit, then nothing more is read), until the broker
// and the topology have answered. Other channels go on.
//
// Where the gateway must refuse, it has the broker refuse: it sends a passive declaration of an
// exchange that does not exist and puts its own reason into the channel.close that comes back. So
// the broker's idea of a channel is always the client's.
//
// Invariants: a frame that is not rewritten passes octet for octet, and costs no allocation; memory
// is bounded whatever a frame claims to hold; who does not read is not read from; an octet stream
// that is not AMQP 0-9-1 passes untouched.
package gateway
