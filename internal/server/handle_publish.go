package server

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/wire"
)

// handleBasicPublish begins a publish: its header and body follow.
func (ch *channel) handleBasicPublish(args []byte) error {
	ch.passAll()
	if err := ch.content.begin(args); err != nil {
		return err
	}
	if ch.content.method.Immediate {
		return inMethod(amqp.Errorf(amqp.NotImplemented, "immediate=true"), wire.BasicPublishID)
	}
	if ch.c.server.isBlocked.Load() || !ch.c.hasPublished {
		ch.c.awaitUnblocked()
	}
	return nil
}

// contentHeader takes the header of a publish.
func (ch *channel) contentHeader(payload []byte) error {
	complete, err := ch.content.header(payload, ch.c.server.cfg.MaxMessageSize)
	if err != nil {
		return err
	}
	if complete {
		return ch.publish(nil)
	}
	return nil
}

// contentBody takes a body frame of a publish.
func (ch *channel) contentBody(payload []byte) error {
	body, complete, err := ch.content.part(payload)
	if err != nil {
		return err
	}
	if complete {
		return ch.publish(body)
	}
	return nil
}

// publish hands a complete message to the broker and notes what the client is to
// be told about it.
func (ch *channel) publish(body []byte) error {
	p := &ch.content
	defer p.reset()
	if err := p.properties.Decode(p.props); err != nil {
		return inMethod(err, wire.BasicPublishID)
	}
	p.message = broker.Message{
		Exchange:   p.method.Exchange,
		RoutingKey: p.method.RoutingKey,
		Props:      p.props,
		Properties: &p.properties,
		Body:       body,
		Mandatory:  p.method.Mandatory,
	}
	ch.c.tally.published.Add(1)
	if ch.tx != nil {
		return inMethod(ch.tx.publish(&p.message), wire.BasicPublishID)
	}
	res, err := ch.publisher.Publish(&p.message)
	if err != nil {
		return inMethod(err, wire.BasicPublishID)
	}
	if p.method.Mandatory && (!res.Routed || res.NotPending) {
		ch.returnMessage(returnText(res.NotPending), p.method.ExchangeAndKey, p.props, body)
	}
	if ch.isConfirming.Load() {
		ch.confirms.record(res.LSN, res.Rejected)
		ch.list()
	}
	return nil
}

// returnText says why a message comes back, with reply code 312: nobody took it, or
// it was to take out what waits and there was nothing.
func returnText(notPending bool) string {
	if notPending {
		return "NOT_PENDING"
	}
	return amqp.CodeName(amqp.NoRoute)
}

// returnMessage gives a message back. It is sent before the confirm. [rmq confirms]
func (ch *channel) returnMessage(text string, exchangeAndKey, props, body []byte) {
	b := ch.c.out.begin()
	ch.c.out.end(wire.AppendReturn(b, ch.number, amqp.NoRoute, text, exchangeAndKey, props, body,
		ch.c.peer.frameMax))
	ch.c.tally.returned.Add(1)
}

// handleConfirmSelect makes the broker confirm what is published on the channel.
// [rmq confirms]
func (ch *channel) handleConfirmSelect(m *wire.ConfirmSelect) error {
	if ch.tx != nil {
		return amqp.Errorf(amqp.PreconditionFailed, "cannot switch from tx to confirm mode")
	}
	ch.isConfirming.Store(true)
	return ch.replyUnless(m.NoWait, &wire.ConfirmSelectOk{})
}
