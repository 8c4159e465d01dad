package duepost

import (
	"crypto/tls"
	"log/slog"
	"time"
)

// Options are the settings of a [Client]. The zero value connects to a broker on this machine.
type Options struct {
	// URL is where the broker is: amqp://user:password@host:port/vhost, or amqps for TLS.
	// Several, separated by commas, are tried in order, beginning with the one that was
	// connected last. Default amqp://guest:guest@localhost:5672/.
	URL string

	// Name is shown by the broker's tools for the connections of this client. Default: the
	// name of the program.
	Name string

	// TLS is for amqps addresses; nil takes the system's certificates.
	TLS *tls.Config

	// Mode says how messages are delayed. Default ModeAuto: what the broker can do best.
	Mode Mode

	// Wait describes the queues in which messages wait with ModeWaitQueues.
	Wait WaitQueues

	// Reconnect is the pause between two rounds over all addresses. It begins with First and
	// doubles up to Cap. Default 100 ms to 10 s.
	Reconnect Backoff

	// ConnectTimeout bounds Connect where its context has no deadline, and each single attempt.
	// Default 30 s.
	ConnectTimeout time.Duration

	// Heartbeat is how often a silent connection is tested; it is taken for dead after two
	// intervals. Default 10 s.
	Heartbeat time.Duration

	// MaxInFlight is how many publishes may wait for their confirm at once. Further ones wait
	// for a place. Default 1000.
	MaxInFlight int

	// DrainTimeout is how long Close waits for confirms and handlers. Default 30 s.
	DrainTimeout time.Duration

	// Logger gets a line for each connection lost and made, each retry and each parked
	// message. Nil discards.
	Logger *slog.Logger

	// Now is the clock for due instants and lateness. Default time.Now; tests that move a
	// broker's clock move this one with it.
	Now func() time.Time
}

// Backoff says how a pause grows from try to try.
type Backoff struct {
	// First is the first pause. 0 takes the default of the place where it is used.
	First time.Duration
	// Factor is what the pause grows by each time. Default 2; 1 keeps it as it is.
	Factor float64
	// Cap is the longest pause. 0 takes the default of the place where it is used.
	Cap time.Duration
	// Jitter is the share of a pause that chance takes off or adds, so that many who failed
	// together do not come back together. Default 0.2; negative for none.
	Jitter float64
}

// WaitQueues describes the queues in which delayed messages wait on a broker without delayed
// exchanges. They are declared when they are first needed, and all clients of a virtual host
// with the same settings share them.
//
// A delay that is one of Tiers waits in the queue of that tier: one hop. Any other is rounded up
// to whole multiples of the smallest tier and goes through queues whose waits are that tier
// times a power of two, the longest first, each at most once. A message is never early; it is
// late by the rounding and by a few milliseconds per hop.
type WaitQueues struct {
	// Tiers are the delays with a queue of their own, each at least 1 ms. Default 1 s, 10 s,
	// 1 min, 10 min, 30 min, 1 h and 24 h.
	Tiers []time.Duration

	// Type is the kind of the queues. Default Quorum: replicated, and a message leaves one
	// queue only after the next has it. Classic is for a RabbitMQ without quorum queues, and may
	// lose messages on the way when the broker fails.
	Type QueueType

	// Prefix begins the names of all queues and exchanges that the client makes for itself.
	// Default "duepost".
	Prefix string
}

// QueueType is where a broker keeps the messages of a queue.
type QueueType string

// The types of queues.
const (
	Quorum  QueueType = "quorum"
	Classic QueueType = "classic"
)
