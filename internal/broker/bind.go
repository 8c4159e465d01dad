package broker

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// QueueBind binds a queue to an exchange; a second time does nothing. [amqp queue.bind]
func (s *Session) QueueBind(b Binding) error { return s.bind(&b, false) }

// QueueUnbind takes a binding away; one that is not there is away. [amqp queue.unbind]
func (s *Session) QueueUnbind(b Binding) error { return s.unbind(&b, false) }

// ExchangeBind binds an exchange to another. [rmq exchange.bind]
func (s *Session) ExchangeBind(b Binding) error { return s.bind(&b, true) }

// ExchangeUnbind takes a binding between exchanges away. [rmq exchange.unbind]
func (s *Session) ExchangeUnbind(b Binding) error { return s.unbind(&b, true) }

func (s *Session) bind(spec *Binding, toExchange bool) error {
	if err := s.checkBinding(spec, toExchange); err != nil {
		return err
	}
	key, err := spec.key(toExchange)
	if err != nil {
		return err
	}
	lsn, err := s.vhost.bind(s, key, spec.Args)
	if err != nil {
		return err
	}
	return s.broker.wait(lsn)
}

func (s *Session) unbind(spec *Binding, toExchange bool) error {
	if err := s.checkBinding(spec, toExchange); err != nil {
		return err
	}
	key, err := spec.key(toExchange)
	if err != nil {
		return err
	}
	lsn, err := s.vhost.unbind(s, key)
	if err != nil {
		return err
	}
	return s.broker.wait(lsn)
}

// key checks what can be checked without looking and returns what identifies the binding.
func (b *Binding) key(toExchange bool) (bindingKey, error) {
	k := bindingKey{
		source:      cleanName(b.Source),
		toExchange:  toExchange,
		destination: cleanName(b.Destination),
		routingKey:  b.RoutingKey,
	}
	if k.source == "" || toExchange && k.destination == "" {
		return k, defaultExchangeRefused()
	}
	var err error
	k.args, err = encodeArguments(b.Args)
	return k, err
}

func (v *VHost) bind(s *Session, key bindingKey, args amqp.Table) (store.LSN, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	b, err := v.newBindingLocked(s, key, args)
	if err != nil {
		return 0, err
	}
	if _, ok := b.source.outgoing[key]; ok {
		return 0, nil
	}
	var batch store.Batch
	b.define(&batch)
	lsn, err := v.broker.store.Commit(&batch)
	if err != nil {
		return 0, v.broker.waited(err)
	}
	b.link()
	v.changedLocked()
	return lsn, nil
}

// newBindingLocked finds both ends. s may be nil: then nobody's exclusive queue is refused.
func (v *VHost) newBindingLocked(s *Session, key bindingKey, args amqp.Table) (*binding, error) {
	b := &binding{bindingKey: key, args: args, source: v.exchanges[key.source]}
	if b.source == nil {
		return nil, exchangeNotFound(key.source, v.name)
	}
	if key.toExchange {
		b.exchange = v.exchanges[key.destination]
		if b.exchange == nil {
			return nil, exchangeNotFound(key.destination, v.name)
		}
	} else {
		b.queue = v.queues[key.destination]
		if b.queue == nil {
			return nil, queueNotFound(key.destination, v.name)
		}
		if err := b.queue.checkAccess(s); err != nil {
			return nil, err
		}
	}
	b.durable = b.source.durable &&
		(key.toExchange && b.exchange.durable || !key.toExchange && b.queue.logged)
	if b.source.kind == headersKind {
		return b, checkMatchArgument(args)
	}
	return b, nil
}

// define puts the definition of a durable binding into a batch.
func (b *binding) define(batch *store.Batch) {
	if b.durable {
		batch.Put(bindingDefinition(b.source.vhost.name, &b.bindingKey), encodeBinding(&b.bindingKey))
	}
}

func (v *VHost) unbind(s *Session, key bindingKey) (store.LSN, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if q := v.queues[key.destination]; q != nil && !key.toExchange {
		if err := q.checkAccess(s); err != nil {
			return 0, err
		}
	}
	x := v.exchanges[key.source]
	if x == nil {
		return 0, nil
	}
	b := x.outgoing[key]
	if b == nil {
		return 0, nil
	}
	var c change
	c.removeBinding(b)
	return v.applyLocked(&c)
}
