package duepost

import "time"

// Delivery is a message that came from a queue, as a handler sees it.
type Delivery struct {
	// Message is the message as it was published: exchange, routing key and headers are those
	// of the publisher, whatever way it took and however often it was retried. Delay and At are zero.
	// Published again it is the same message, with the same MessageID.
	Message

	// Queue is where it came from.
	Queue string
	// Attempt counts how often this message was given to a handler of this queue, 1 the first
	// time. It does not count what the broker gave again because a consumer went away.
	Attempt int
	// Redelivered says that the broker gave the message to somebody before, who went away.
	Redelivered bool
	// Due is when the message was to be handed over, by the clock of its publisher; zero if
	// it was not delayed or not by this client. A retry is due when its pause has ended.
	Due time.Time
	// Received is when it came here.
	Received time.Time

	death    Death
	died     bool
	parked   Parked
	isParked bool
}

// Lateness is how long after Due the message came; 0 if it was not delayed, and if the clocks of
// publisher and consumer differ by more than it was late.
func (d *Delivery) Lateness() time.Duration {
	if d.Due.IsZero() || d.Received.Before(d.Due) {
		return 0
	}
	return d.Received.Sub(d.Due)
}

// Death is why a message left a queue other than to a consumer.
type Death struct {
	// Reason is "expired", "rejected", "maxlen" or "delivery_limit".
	Reason string
	// Queue is what it left.
	Queue string
	// Count is how often it left that queue for that reason.
	Count int
	// Time is when it left for the first time, in whole seconds.
	Time time.Time
	// Exchange and RoutingKeys are how it had come into that queue.
	Exchange    string
	RoutingKeys []string
}

// Death tells how the message was dead-lettered last, and false if it was not. It tells a
// message whose time to live ended in a queue from one that was rejected. A delay is not a
// death: waiting with this client never counts, in no mode.
func (d *Delivery) Death() (Death, bool) { return d.death, d.died }

// Parked is what is noted on a message in a parking queue.
type Parked struct {
	// Reason is the text of the last error, cut at 1 KiB, or what [Park] was given.
	Reason string
	// Attempts is how often it was handled.
	Attempts int
	// Queue is the queue whose handler gave it up.
	Queue string
	// Time is when.
	Time time.Time
}

// Parked tells why a message that comes from a parking queue is there. Exchange and RoutingKey
// of the delivery are those with which the message was first published.
func (d *Delivery) Parked() (Parked, bool) { return d.parked, d.isParked }
