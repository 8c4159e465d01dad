package server

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/wire"
)

// handleQueueDeclare makes a queue or checks that it is there.
func (ch *channel) handleQueueDeclare(m *wire.QueueDeclare) error {
	args, err := m.Arguments.Decode()
	if err != nil {
		return err
	}
	info, err := ch.c.session.QueueDeclare(broker.QueueSpec{
		Name:       m.Queue,
		Durable:    m.Durable,
		Exclusive:  m.Exclusive,
		AutoDelete: m.AutoDelete,
		Passive:    m.Passive,
		Args:       args,
	})
	if err != nil {
		return passively(m.Passive, err)
	}
	ch.lastQueue = info.Name
	return ch.replyUnless(m.NoWait, &wire.QueueDeclareOk{
		Queue:         info.Name,
		MessageCount:  uint32(info.Messages),
		ConsumerCount: uint32(info.Consumers),
	})
}

// handleQueueBind binds a queue to an exchange.
func (ch *channel) handleQueueBind(m *wire.QueueBind) error {
	b, err := ch.binding(m.Queue, m.Exchange, m.RoutingKey, m.Arguments)
	if err != nil {
		return err
	}
	if err := ch.c.session.QueueBind(b); err != nil {
		return err
	}
	return ch.replyUnless(m.NoWait, &wire.QueueBindOk{})
}

// handleQueueUnbind undoes handleQueueBind.
func (ch *channel) handleQueueUnbind(m *wire.QueueUnbind) error {
	b, err := ch.binding(m.Queue, m.Exchange, m.RoutingKey, m.Arguments)
	if err != nil {
		return err
	}
	if err := ch.c.session.QueueUnbind(b); err != nil {
		return err
	}
	return ch.reply(&wire.QueueUnbindOk{})
}

// handleQueuePurge drops the ready messages of a queue.
func (ch *channel) handleQueuePurge(m *wire.QueuePurge) error {
	name, err := ch.queueName(m.Queue)
	if err != nil {
		return err
	}
	n, err := ch.c.session.QueuePurge(name)
	if err != nil {
		return err
	}
	return ch.replyUnless(m.NoWait, &wire.QueuePurgeOk{MessageCount: uint32(n)})
}

// handleQueueDelete deletes a queue; one that is not there is deleted already.
// [rmq queue.delete]
func (ch *channel) handleQueueDelete(m *wire.QueueDelete) error {
	name, err := ch.queueName(m.Queue)
	if err != nil {
		return err
	}
	n, err := ch.c.session.QueueDelete(name, m.IfUnused, m.IfEmpty)
	if err != nil {
		return err
	}
	return ch.replyUnless(m.NoWait, &wire.QueueDeleteOk{MessageCount: uint32(n)})
}

// binding fills in what a client may leave out: an empty queue name is the queue
// declared last, an empty key with it is that queue's name. [amqp queue.bind]
func (ch *channel) binding(queue, exchange, key string, raw amqp.RawTable) (broker.Binding, error) {
	args, err := raw.Decode()
	if err != nil {
		return broker.Binding{}, err
	}
	name, err := ch.queueName(queue)
	if err != nil {
		return broker.Binding{}, err
	}
	if queue == "" && key == "" {
		key = name
	}
	return broker.Binding{
		Destination: name,
		Source:      exchange,
		RoutingKey:  key,
		Args:        args,
	}, nil
}

// queueName returns the name a client means: an empty one is the queue declared
// last on the channel. [amqp queue.name]
func (ch *channel) queueName(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	if ch.lastQueue == "" {
		return "", amqp.Errorf(amqp.NotFound, "no previously declared queue")
	}
	return ch.lastQueue, nil
}
