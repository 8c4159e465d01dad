package broker

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/headers"
	"github.com/duepost/duepost/internal/store"
)

// Message is what a client publishes. All of it are views that are read during the call only.
type Message struct {
	Exchange   []byte
	RoutingKey []byte

	// Props are the encoded properties, flags first, as in a content header.
	Props []byte

	// Properties are Props decoded. The headers must have been validated, as
	// amqp.Properties.Decode does.
	Properties *amqp.Properties

	Body []byte

	// Mandatory says that the publisher wants to know when nobody takes the message.
	// Tx.Commit returns such messages; with Publish, Result.Routed tells in any case.
	Mandatory bool
}

// Result is what became of a message that was published without an error.
type Result struct {
	// Routed is whether a queue, a delayed exchange or a reply consumer took the message.
	// If not, a mandatory message is to be returned with 312 NO_ROUTE.
	Routed bool

	// NotPending is whether the message was to take out what waits under a key, and
	// there was nothing. If so a mandatory message is to be returned with 312 NOT_PENDING.
	NotPending bool

	// Rejected is whether a queue that is full refused the message [rmq reject-publish].
	// If so it is to be nacked on a channel in confirm mode.
	Rejected bool

	// LSN is what must be durable before the message may be confirmed; 0 means that there
	// is nothing to wait for.
	LSN store.LSN
}

// Returned is a message that goes back to its publisher: a copy, owned by whoever gets it.
type Returned struct {
	ExchangeAndKey []byte // two AMQP short strings
	Props          []byte
	Body           []byte
	NotPending     bool // returned as there was nothing to take out, else as nobody took it
}

// Delivery is a message on its way to a consumer.
type Delivery struct {
	Queue       *Queue // nil for a direct reply
	Pos         uint64 // names the message in the queue; for Ack, Requeue and Reject
	Redelivered bool
	Deliveries  int // how often it came back before
	Record      store.Record
}

// hideBCC takes the header that no consumer may see out of a message that is marked.
func hideBCC(m *store.Message) {
	if m.ExchangeID&^historyBit != bccBit {
		return
	}
	var p amqp.Properties
	if p.Decode(m.Props) != nil {
		return
	}
	p.SetHeaders(p.Headers.AppendWithout(nil, headers.BCC))
	m.Props = p.Append(nil)
}
