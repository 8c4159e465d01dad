package server

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// handle does what one frame asks for. The channel it returns is the one that an
// error closes, if the error closes a channel.
func (c *conn) handle(f wire.Frame) (*channel, error) {
	if f.Channel == 0 {
		return nil, c.handleZero(f)
	}
	ch := c.last
	if ch == nil || ch.number != f.Channel {
		if ch = c.channels[f.Channel]; ch == nil {
			return nil, c.openChannel(f)
		}
		c.last = ch
	}
	return ch, ch.handle(f)
}

// handleZero handles frames of the connection itself. [amqp 4.2.3]
func (c *conn) handleZero(f wire.Frame) error {
	if f.Type == wire.FrameHeartbeat {
		return nil // that something was read is all there is to know
	}
	if f.Type != wire.FrameMethod {
		return unexpectedFrame(f)
	}
	id, args, err := wire.CutMethodID(f.Payload)
	if err != nil {
		return err
	}
	c.flush()
	return c.handleConnection(id, args)
}

// handle does what a frame on an open channel asks for.
func (ch *channel) handle(f wire.Frame) error {
	if ch.closing {
		return ch.handleClosing(f)
	}
	switch f.Type {
	case wire.FrameMethod:
		return ch.handleMethod(f.Payload)
	case wire.FrameHeader:
		return ch.contentHeader(f.Payload)
	case wire.FrameBody:
		return ch.contentBody(f.Payload)
	}
	return unexpectedFrame(f)
}

// handleMethod dispatches by method. The three that come once per message are
// decoded in place; before any other, what they left for later is done, so that
// it sees their effect.
func (ch *channel) handleMethod(payload []byte) error {
	if ch.content.stage != contentNone {
		return ch.content.unexpected()
	}
	id, args, err := wire.CutMethodID(payload)
	if err != nil {
		return err
	}
	switch id {
	case wire.BasicPublishID:
		return ch.handleBasicPublish(args)
	case wire.BasicAckID:
		return ch.handleBasicAck(args)
	}
	ch.c.flush()
	m, err := wire.New(id)
	if err != nil {
		return err
	}
	if err := m.Decode(args); err != nil {
		return err
	}
	return inMethod(ch.handleRare(m), id)
}

// handleRare handles the methods that are not on a message's way. What it does
// not know are methods of the server and those of the connection. [amqp 1.2]
func (ch *channel) handleRare(m wire.Method) error {
	switch m := m.(type) {
	case *wire.ChannelOpen:
		return amqp.Errorf(amqp.ChannelError, "second 'channel.open' seen")
	case *wire.ChannelClose:
		return ch.handleChannelClose()
	case *wire.ChannelCloseOk:
		return nil
	case *wire.ChannelFlow:
		return ch.handleChannelFlow(m)
	case *wire.AccessRequest:
		return ch.reply(&wire.AccessRequestOk{Ticket: 1})
	case *wire.ExchangeDeclare:
		return ch.handleExchangeDeclare(m)
	case *wire.ExchangeDelete:
		return ch.handleExchangeDelete(m)
	case *wire.ExchangeBind:
		return ch.handleExchangeBind(m)
	case *wire.ExchangeUnbind:
		return ch.handleExchangeUnbind(m)
	case *wire.QueueDeclare:
		return ch.handleQueueDeclare(m)
	case *wire.QueueBind:
		return ch.handleQueueBind(m)
	case *wire.QueueUnbind:
		return ch.handleQueueUnbind(m)
	case *wire.QueuePurge:
		return ch.handleQueuePurge(m)
	case *wire.QueueDelete:
		return ch.handleQueueDelete(m)
	case *wire.BasicQos:
		return ch.handleBasicQos(m)
	case *wire.BasicConsume:
		return ch.handleBasicConsume(m)
	case *wire.BasicCancel:
		return ch.handleBasicCancel(m)
	case *wire.BasicGet:
		return ch.handleBasicGet(m)
	case *wire.BasicReject:
		return ch.settle(m.DeliveryTag, false, refusal(m.Requeue))
	case *wire.BasicNack:
		return ch.settle(m.DeliveryTag, m.Multiple, refusal(m.Requeue))
	case *wire.BasicRecover:
		return ch.handleBasicRecover(m.Requeue, true)
	case *wire.BasicRecoverAsync:
		return ch.handleBasicRecover(m.Requeue, false)
	case *wire.ConfirmSelect:
		return ch.handleConfirmSelect(m)
	case *wire.TxSelect:
		return ch.handleTxSelect()
	case *wire.TxCommit:
		return ch.handleTxCommit()
	case *wire.TxRollback:
		return ch.handleTxRollback()
	}
	return amqp.Errorf(amqp.CommandInvalid, "unimplemented method")
}

// handleClosing throws away what a client sent before it learned that its
// channel was closed, until it says that it knows. [amqp channel.close]
func (ch *channel) handleClosing(f wire.Frame) error {
	if f.Type != wire.FrameMethod {
		return nil
	}
	id, _, err := wire.CutMethodID(f.Payload)
	switch {
	case err != nil:
		return err
	case id == wire.ChannelCloseOkID:
		ch.c.removeChannel(ch)
	case id == wire.ChannelCloseID:
		return ch.reply(&wire.ChannelCloseOk{})
	case id == wire.ChannelOpenID:
		return inMethod(amqp.Errorf(amqp.ChannelError, "second 'channel.open' seen"), id)
	}
	return nil
}

// unexpectedFrame is the error for a frame that has no place where it came.
func unexpectedFrame(f wire.Frame) error {
	const most = 16
	how, b := "all", f.Payload
	if len(b) > most {
		how, b = "first 16", b[:most]
	}
	return amqp.Errorf(amqp.UnexpectedFrame, "type %d, %s octets = %v", f.Type, how, b)
}
