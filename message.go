package duepost

import "time"

// Message is what is published. Only what is set has an effect; the zero value of every field is
// a good default.
type Message struct {
	// Exchange is where the message goes; empty is the default exchange, which hands it to the
	// queue named by RoutingKey.
	Exchange string
	// RoutingKey is what bindings are compared with, at most 255 bytes.
	RoutingKey string

	// Body is not copied and must not change before Publish has returned.
	Body []byte
	// Headers may hold what AMQP tables can: booleans, numbers, strings, byte slices, times, nil,
	// and lists and maps of these. The client adds headers that begin with x-duepost- and hides
	// them from handlers; headers of that form that a caller sets are refused.
	Headers map[string]any

	// Delay is how long the message waits, counted from Publish. 0 does not wait; a negative
	// one is an error.
	Delay time.Duration
	// At is the instant when the message is due, instead of Delay. One in the past goes at once,
	// and [Receipt.Overdue] says so. Both At and Delay are an error.
	At time.Time
	// Key names the message while it waits, at most 255 bytes with the name of the exchange. A
	// message with the same Key on the same Exchange takes its place, and Cancel takes it out.
	// [ErrNotSupported] where [Broker.Keys] is false.
	Key string

	// MessageID names the message for its consumers and stays the same when it is retried.
	// Default: a random one, which [Receipt.MessageID] tells.
	MessageID string
	// CorrelationID, ReplyTo, ContentType, ContentEncoding, Type and AppID mean what the
	// application wants them to.
	CorrelationID, ReplyTo, ContentType, ContentEncoding, Type, AppID string
	// Timestamp is when the message was made, in whole seconds. Default now.
	Timestamp time.Time
	// Priority counts in queues with priorities.
	Priority uint8
	// Expiration is how long the message may wait in its queue for a consumer, counted from when it is due;
	// not with a delay in ModeWaitQueues, where it would end the waiting. 0 is for ever.
	Expiration time.Duration

	// Transient lets the broker forget the message when it restarts, which is faster.
	Transient bool
	// DropUnroutable makes it no error when no queue takes the message.
	DropUnroutable bool
}

// Receipt is what a confirmed publish tells.
type Receipt struct {
	// MessageID is the message's name, also if the caller gave none.
	MessageID string
	// Due is when the message will be handed over; zero if it did not wait.
	Due time.Time
	// Overdue says that At was in the past, so that the message went at once.
	Overdue bool
}
