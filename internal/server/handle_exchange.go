package server

import (
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/wire"
)

// handleExchangeDeclare makes an exchange or checks that it is there.
func (ch *channel) handleExchangeDeclare(m *wire.ExchangeDeclare) error {
	args, err := m.Arguments.Decode()
	if err != nil {
		return err
	}
	err = ch.c.session.ExchangeDeclare(broker.ExchangeSpec{
		Name:       m.Exchange,
		Type:       m.Type,
		Durable:    m.Durable,
		AutoDelete: m.AutoDelete,
		Internal:   m.Internal,
		Passive:    m.Passive,
		Args:       args,
	})
	if err != nil {
		return passively(m.Passive, err)
	}
	return ch.replyUnless(m.NoWait, &wire.ExchangeDeclareOk{})
}

// handleExchangeDelete deletes an exchange; one that is not there is deleted
// already. [rmq exchange.delete]
func (ch *channel) handleExchangeDelete(m *wire.ExchangeDelete) error {
	if err := ch.c.session.ExchangeDelete(m.Exchange, m.IfUnused); err != nil {
		return err
	}
	return ch.replyUnless(m.NoWait, &wire.ExchangeDeleteOk{})
}

// handleExchangeBind binds one exchange to another. [rmq e2e]
func (ch *channel) handleExchangeBind(m *wire.ExchangeBind) error {
	args, err := m.Arguments.Decode()
	if err != nil {
		return err
	}
	err = ch.c.session.ExchangeBind(broker.Binding{
		Destination: m.Destination,
		Source:      m.Source,
		RoutingKey:  m.RoutingKey,
		Args:        args,
	})
	if err != nil {
		return err
	}
	return ch.replyUnless(m.NoWait, &wire.ExchangeBindOk{})
}

// handleExchangeUnbind undoes handleExchangeBind.
func (ch *channel) handleExchangeUnbind(m *wire.ExchangeUnbind) error {
	args, err := m.Arguments.Decode()
	if err != nil {
		return err
	}
	err = ch.c.session.ExchangeUnbind(broker.Binding{
		Destination: m.Destination,
		Source:      m.Source,
		RoutingKey:  m.RoutingKey,
		Args:        args,
	})
	if err != nil {
		return err
	}
	return ch.replyUnless(m.NoWait, &wire.ExchangeUnbindOk{})
}
