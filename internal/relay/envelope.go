package relay

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/headers"
	"github.com/duepost/duepost/internal/relay/topology"
)

// wrapped is the message as it waits: what RabbitMQ would act upon is in headers of ours, so that
// it neither expires on the wheel nor goes anywhere else.
func (it *item) wrapped() amqp.Publishing {
	p := it.content
	p.Headers = with(p.Headers, amqp.Table{
		headerDue: it.due, headerSource: it.exchange, headerKey: it.key, headerID: it.id,
	})
	for name, text := range map[string]string{headers.HeldExpiration: it.expiration, headerUserID: it.userID} {
		if text != "" {
			p.Headers[name] = text
		}
	}
	for name, keys := range map[string][]any{headerCC: it.cc, headers.HeldBCC: it.bcc} {
		if keys != nil {
			p.Headers[name] = keys
		}
	}
	// Whatever it is after its release: while it waits it is as durable as the queue.
	return p
}

// waitsIn is the message as it waits in a slot.
func (it *item) waitsIn(s slot) amqp.Publishing {
	p := it.wrapped()
	p.Headers[headerSlot] = s.number
	return p
}

// parked is the message as it is parked.
func (it *item) parked() amqp.Publishing {
	p := it.wrapped()
	p.Headers[headerReason] = it.reason
	return p
}

// released is the message as its consumers see it.
func (it *item) released() amqp.Publishing {
	p := it.content
	p.Headers = with(p.Headers, amqp.Table{headerID: it.id})
	if it.cc != nil {
		p.Headers[headers.CC] = it.cc
	}
	if it.bcc != nil {
		p.Headers[headers.BCC] = it.bcc
	}
	p.Expiration, p.UserId = it.expiration, it.userID
	return p
}

// unwrap reads what came from the wheel. A message that no relay has written is one to be parked.
func unwrap(d amqp.Delivery) *item {
	it := &item{content: contentOf(d)}
	var due, hasSource, hasKey, hasID bool
	it.due, due = d.Headers[headerDue].(int64)
	it.exchange, hasSource = d.Headers[headerSource].(string)
	it.key, hasKey = d.Headers[headerKey].(string)
	it.id, hasID = d.Headers[headerID].(string)
	it.slot, _ = d.Headers[headerSlot].(int64)
	it.expiration, _ = d.Headers[headers.HeldExpiration].(string)
	it.userID, _ = d.Headers[headerUserID].(string)
	it.cc, _ = d.Headers[headerCC].([]any)
	it.bcc, _ = d.Headers[headers.HeldBCC].([]any)
	if !due || !hasSource || !hasKey || !hasID {
		it.reason = "it was in a queue of the wheel, and no relay had put it there"
	}
	return it
}

// faultOf returns why the message cannot be released by a user, empty for no reason. RabbitMQ would
// close the channel, and with it everything on its way. [rmq user-id]
func (it *item) faultOf(user string, impersonates bool) string {
	if it.userID != "" && it.userID != user && !impersonates {
		return fmt.Sprintf("user-id is %.40q and the relay's user %q lacks the tag impersonator", it.userID, user)
	}
	return ""
}

// dueExchange is where the message is published when it is due.
func (it *item) dueExchange() string { return topology.DueExchange(it.exchange) }
