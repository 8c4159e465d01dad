package server

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// handleChannelClose ends the channel as the client asked. The number is free
// before close-ok is sent, since the client may open it again at once.
func (ch *channel) handleChannelClose() error {
	ch.release()
	ch.c.removeChannel(ch)
	return ch.reply(&wire.ChannelCloseOk{})
}

// handleChannelFlow answers a client that wants deliveries to pause. As in
// RabbitMQ only going on is possible; prefetch is the way to pause.
// [amqp channel.flow]
func (ch *channel) handleChannelFlow(m *wire.ChannelFlow) error {
	if !m.Active {
		return amqp.Errorf(amqp.NotImplemented, "active=false")
	}
	return ch.reply(&wire.ChannelFlowOk{Active: true})
}
