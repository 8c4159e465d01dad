package relay

import (
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Headers of a message on the wheel and among the parked, besides those that the gateway writes
// too. What publishers send under these names is taken away.
const (
	ownPrefix    = "x-duepost-"
	headerDue    = ownPrefix + "due"      // milliseconds since 1970
	headerSlot   = ownPrefix + "slot"     // slot.number
	headerSource = ownPrefix + "exchange" // the delayed exchange
	headerKey    = ownPrefix + "key"      // the routing key
	headerCC     = ownPrefix + "cc"       // CC, which would route on the wheel too
	headerUserID = ownPrefix + "user-id"  // the property, which RabbitMQ checks at each publish
	headerReason = ownPrefix + "reason"   // why it is parked

	// headerID is the same in every copy of a message that a fault has made. Consumers see it.
	headerID = ownPrefix + "id"
)

// Headers that RabbitMQ adds to what comes back to a queue.
const (
	headerDeliveryCount = "x-delivery-count"
	headerAcquiredCount = "x-acquired-count"
)

// item is a message that a worker has taken out of a queue and not yet acknowledged there.
type item struct {
	from   *source
	tag    uint64
	came   uint64 // counts what the worker got
	at     int64  // when it may go next, in milliseconds since 1970
	tries  int    // how often it did not go
	sentAt int64  // when it was sent last
	// urgent lets it go before those that may go, too, and are not.
	urgent bool

	// What it is, as consumers will see it, and where it goes.
	content  amqp.Publishing
	exchange string
	key      string
	due      int64 // milliseconds since 1970
	slot     int64 // slot.number in which it waited; 0 if it did not
	cut      bool  // it goes into a fine slot
	id       string

	expiration string // in milliseconds, from its arrival in a queue of a consumer
	cc, bcc    []any
	userID     string

	to     way    // where it was sent last
	reason string // why it must be parked; empty if it must not
}

// soon is how near the due instant of a message is that overtakes others on their way to the wheel.
const soon = 5 * time.Second

// hurry lets a message overtake others if it is due soon.
func (it *item) hurry(nowMillis int64) { it.urgent = it.due-nowMillis < soon.Milliseconds() }

// way is where a message is sent.
type way int

const (
	wheel   way = iota // into a slot
	release            // to its consumers
	parking            // to those that could not be delivered
)

// contentOf is what a delivery brought, without what only RabbitMQ and relays put into it.
func contentOf(d amqp.Delivery) amqp.Publishing {
	h := amqp.Table{}
	for name, v := range d.Headers {
		if name != headerDeliveryCount && name != headerAcquiredCount && !strings.HasPrefix(name, ownPrefix) {
			h[name] = v
		}
	}
	return amqp.Publishing{
		Headers: h, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding,
		DeliveryMode: d.DeliveryMode, Priority: d.Priority, CorrelationId: d.CorrelationId,
		ReplyTo: d.ReplyTo, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type,
		AppId: d.AppId, Body: d.Body,
	}
}

// with returns the headers of a message and some more.
func with(h amqp.Table, more amqp.Table) amqp.Table {
	all := make(amqp.Table, len(h)+len(more))
	for name, v := range h {
		all[name] = v
	}
	for name, v := range more {
		all[name] = v
	}
	return all
}
