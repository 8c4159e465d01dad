package duepost

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Delivery is a message that came from a queue, as a handler sees it. A handler must not change
// what it refers to: a retry carries it.
type Delivery struct {
	// Message is the message as it was published: exchange, routing key and headers are those
	// of the publisher, whatever way it took and however often it was retried. Delay and At
	// are zero. Published again it is the same message, with the same MessageID.
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

	deaths   []any // x-death without the queues in which delayed messages wait
	isParked bool
	parked   Parked
}

// Lateness is how long after Due the message came; 0 if it was not delayed, and if the clocks of
// publisher and consumer differ by more than it was late.
func (d *Delivery) Lateness() time.Duration {
	if d.Due.IsZero() || d.Received.Before(d.Due) {
		return 0
	}
	return d.Received.Sub(d.Due)
}

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

// delivery is what a handler sees of a message.
func (c *Client) delivery(a *amqp.Delivery, queue string) *Delivery {
	d := &Delivery{
		Message: Message{
			Exchange: a.Exchange, RoutingKey: a.RoutingKey, Body: a.Body, MessageID: a.MessageId,
			CorrelationID: a.CorrelationId, ReplyTo: a.ReplyTo, ContentType: a.ContentType,
			ContentEncoding: a.ContentEncoding, Type: a.Type, AppID: a.AppId, Timestamp: a.Timestamp,
			Priority: a.Priority, Expiration: expirationOf(a.Expiration), Transient: a.DeliveryMode != amqp.Persistent,
		},
		Queue: queue, Attempt: 1, Redelivered: a.Redelivered, Received: c.now(),
	}
	if len(a.Headers) > 0 {
		d.readHeaders(a.Headers, c.plan)
	}
	return d
}

// again is the message to be published once more, with headers that say where it comes from. To
// where it goes is for the caller to set.
func (d *Delivery) again() (Message, amqp.Table) {
	m := d.Message
	own := amqp.Table{headerExchange: m.Exchange, headerRouting: m.RoutingKey}
	if m.Key != "" {
		own[headerKey] = m.Key
	}
	if len(d.deaths) > 0 {
		own[headerDeath] = d.deaths
	}
	// It has waited for a consumer in time, and its key was for its first waiting.
	m.Exchange, m.Expiration, m.Key = "", 0, ""
	return m, own
}
