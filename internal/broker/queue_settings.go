package broker

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

// overflow says what a full queue does with one more message.
type overflow uint8

const (
	dropHead         overflow = iota // it takes it and lets go of its oldest
	rejectPublish                    // it refuses it
	rejectPublishDLX                 // it refuses it and dead-letters it
)

// queueSettings are the values in force for a queue: what its declare arguments and the policy that
// matches it make of it. They are never changed, only replaced as a whole; see Queue.apply.
type queueSettings struct {
	ttl       int64 // milliseconds a message may stay, -1 for ever
	expires   int64 // milliseconds the queue may be unused, -1 for ever
	maxLength int64 // most ready messages, -1 unlimited
	maxBytes  int64 // most bytes of ready bodies, -1 unlimited
	overflow  overflow

	hasDLX    bool
	dlx       string // exchange to dead-letter to
	hasDLXKey bool
	dlxKey    string // routing key instead of the message's own

	atLeastOnce     bool // a dead letter stays until its targets take it
	parksUnroutable bool // one that nobody is there to take is parked

	deliveryLimit   int64 // how often a message may come back, -1 for ever
	retry           retry // which of those wait first
	retryMin        int64 // milliseconds, times how often it came back
	retryMax        int64 // milliseconds at most, -1 unlimited
	consumerTimeout int64 // milliseconds a delivery may be unacknowledged, -1 as the server says
}

// newQueueSettings computes what is in force from arguments that were checked and from a policy's
// definition, which may be nil. Of two numbers the lower one holds; else the argument does.
// [rmq policies]
func newQueueSettings(args amqp.Table, d policy.Definition) *queueSettings {
	e := effective{args, d}
	s := &queueSettings{
		ttl:           min(e.least("message-ttl"), maxTTL), // a policy may have any
		expires:       min(e.least("expires"), maxTTL),
		maxLength:     e.least("max-length"),
		maxBytes:      e.least("max-length-bytes"),
		deliveryLimit: unset,

		consumerTimeout: e.least("consumer-timeout"),
	}
	if args[argQueueType] == "quorum" {
		s.readQuorum(e)
	}
	s.dlx, s.hasDLX = e.text("dead-letter-exchange")
	s.dlxKey, s.hasDLXKey = e.text("dead-letter-routing-key")
	strategy, _ := e.text("dead-letter-strategy")
	s.atLeastOnce = strategy == "at-least-once"
	unroutable, _ := e.text("dead-letter-unroutable")
	s.parksUnroutable = unroutable == "park"
	switch e.overflow() {
	case "reject-publish":
		s.overflow = rejectPublish
	case "reject-publish-dlx":
		s.overflow = rejectPublishDLX
	}
	return s
}

// readQuorum computes what means something to quorum queues only.
func (s *queueSettings) readQuorum(e effective) {
	s.deliveryLimit = defaultDeliveryLimit
	if e.has("delivery-limit") {
		s.deliveryLimit = e.least("delivery-limit") // -1 is a way to say unlimited
	}
	if s.deliveryLimit >= maxDeliveries {
		s.deliveryLimit = unset
	}
	mode, _ := e.text("delayed-retry-type")
	switch mode {
	case "all":
		s.retry = retryAll
	case "failed":
		s.retry = retryFailed
	case "returned":
		s.retry = retryReturned
	}
	s.retryMin, s.retryMax = max(e.least("delayed-retry-min"), 0), e.least("delayed-retry-max")
}

// refuses reports whether the queue refuses messages when it is full [rmq reject-publish].
func (s *queueSettings) refuses() bool {
	return s.overflow != dropHead && (s.maxLength >= 0 || s.maxBytes >= 0)
}

// isExceeded reports whether the queue has more than it may keep.
func (s *queueSettings) isExceeded(x *index) bool {
	return s.overflow == dropHead &&
		(s.maxLength >= 0 && int64(x.ready) > s.maxLength ||
			s.maxBytes >= 0 && x.readyBytes > s.maxBytes)
}
