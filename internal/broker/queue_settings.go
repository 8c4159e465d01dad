package broker

// overflow says what a full queue does with one more message.
type overflow uint8

const (
	dropHead         overflow = iota // it takes it and lets go of its oldest
	rejectPublish                    // it refuses it
	rejectPublishDLX                 // it refuses it and dead-letters it
)

// queueSettings are what declare arguments (and policies) make of a queue: the values in force.
// They are never changed, only replaced as a whole.
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
