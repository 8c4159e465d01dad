package broker

import (
	"iter"
	"strings"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
	"github.com/duepost/duepost/internal/store"
)

// ExchangeDeclare makes sure that there is such an exchange. [amqp exchange.declare]
func (s *Session) ExchangeDeclare(spec ExchangeSpec) error {
	spec.Name = cleanName(spec.Name)
	if spec.Name == "" {
		return defaultExchangeRefused()
	}
	if spec.Passive {
		if s.vhost.exchange(spec.Name) == nil {
			return exchangeNotFound(spec.Name, s.vhost.name)
		}
		return nil
	}
	kind, err := exchangeKindOf(&spec, s.vhost.name)
	if err != nil && !s.vhost.exchange(spec.Name).passesInnerType(&spec) {
		return err
	}
	if err := s.checkExchange(s.rights.MayConfigure, spec.Name); err != nil {
		return err
	}
	if s.vhost.exchange(spec.Name) == nil {
		if err := checkNewName("exchange", spec.Name); err != nil {
			return err
		}
		if err := s.checkOther(spec.Args, argAlternate, spec.Name, s.checkExchange); err != nil {
			return err
		}
	}
	lsn, err := s.vhost.declareExchange(&spec, kind)
	if err != nil {
		return err
	}
	return s.broker.wait(lsn)
}

// exchangeKindOf checks the type, of a delayed exchange also the inner one.
func exchangeKindOf(spec *ExchangeSpec, vhost string) (exchangeKind, error) {
	if spec.Type != delayedType {
		kind := kindOf(spec.Type)
		if kind == unknownKind {
			return 0, amqp.Errorf(amqp.PreconditionFailed, "unknown exchange type '%s'", spec.Type)
		}
		return kind, nil
	}
	inner, ok := spec.Args[argDelayedType].(string)
	if kind := kindOf(inner); ok && kind != unknownKind {
		return kind, nil
	}
	got := "none"
	if v, ok := spec.Args[argDelayedType]; ok {
		got = describeArgument(v, true)
	}
	return 0, amqp.Errorf(amqp.PreconditionFailed, "invalid arg '%s' for exchange '%s' in vhost "+
		"'%s': received %s, must be one of 'direct', 'fanout', 'topic', 'headers'",
		argDelayedType, spec.Name, vhost, got)
}

// declareExchange creates the exchange or compares it with the one that is there.
func (v *VHost) declareExchange(spec *ExchangeSpec, kind exchangeKind) (store.LSN, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x := v.exchanges[spec.Name]; x != nil {
		return 0, x.checkEquivalent(spec)
	}
	if err := v.checkAliveLocked(); err != nil {
		return 0, err
	}
	if err := spec.checkArguments(v.name); err != nil {
		return 0, err
	}
	x := newExchange(v, spec, kind)
	var b store.Batch
	if err := x.define(&b); err != nil {
		return 0, err
	}
	lsn, err := v.broker.store.Commit(&b)
	if err != nil {
		return 0, v.broker.waited(err)
	}
	v.addExchangeLocked(x)
	return lsn, nil
}

// Faults goes through what is wrong with the declaration of a new exchange, save its name: each
// error with the argument that it is about, or "" if it is about the type.
func (s *ExchangeSpec) Faults(vhost string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if _, err := exchangeKindOf(s, vhost); err != nil {
			about := ""
			if s.Type == delayedType {
				about = argDelayedType
			}
			if !yield(about, err) {
				return
			}
		}
		if err := s.checkArguments(vhost); err != nil {
			yield(argAlternate, err)
		}
	}
}

func (s *ExchangeSpec) checkArguments(vhost string) error {
	alternate, ok := s.Args[argAlternate]
	if _, isName := alternate.(string); ok && !isName {
		return amqp.Errorf(amqp.PreconditionFailed,
			"invalid type '%s' for arg '%s' in exchange '%s' in vhost '%s'",
			amqp.TypeNameOf(alternate), argAlternate, s.Name, vhost)
	}
	if s.Type == delayedType {
		for _, c := range delayedArguments() {
			v, ok := s.Args[c.name]
			if !ok {
				continue
			}
			if why := c.check(v, s.Args); why != "" {
				return amqp.Errorf(amqp.PreconditionFailed, "invalid arg '%s' for exchange '%s' in vhost '%s': %s",
					c.name, s.Name, vhost, why)
			}
		}
	}
	_, err := encodeArguments(s.Args)
	return err
}

// newExchange makes an exchange without bindings.
func newExchange(v *VHost, spec *ExchangeSpec, kind exchangeKind) *Exchange {
	x := &Exchange{
		vhost:      v,
		name:       spec.Name,
		typeName:   spec.Type,
		kind:       kind,
		delayed:    spec.Type == delayedType,
		durable:    spec.Durable,
		autoDelete: spec.AutoDelete,
		internal:   spec.Internal,
		args:       spec.Args,
		outgoing:   make(map[bindingKey]*binding),
		incoming:   make(map[bindingKey]*binding),
	}
	x.policies = v.matchLocked(x.name, policy.Exchange)
	x.settings.Store(newExchangeSettings(x.args, x.policies.definition(), &v.broker.compat))
	return x
}

// addExchangeLocked makes the exchange known.
func (v *VHost) addExchangeLocked(x *Exchange) {
	v.exchanges[x.name] = x
	if x.delayed {
		v.broker.addDelayed(x)
	}
	v.changedLocked()
}

// define gives a delayed exchange its id and puts the definition into a batch. That of one which is
// not durable only tells, after a restart, whose pending messages are to be dropped.
func (x *Exchange) define(b *store.Batch) error {
	if x.delayed {
		id, err := x.vhost.broker.ids.take()
		if err != nil {
			return x.vhost.broker.waited(err)
		}
		x.id = id
	}
	switch {
	case x.durable:
		value, err := encodeExchange(x)
		if err != nil {
			return err
		}
		b.Put(exchangeDefinition(x.vhost.name, x.name), value)
	case x.delayed:
		b.Put(orphanDefinition(x.id), nil)
	}
	return nil
}

// checkEquivalent compares a declaration with the exchange.
func (x *Exchange) checkEquivalent(spec *ExchangeSpec) error {
	d := difference{what: x.String()}
	d.field("type", spec.Type, x.typeName)
	d.flag("durable", spec.Durable, x.durable)
	d.flag("auto_delete", spec.AutoDelete, x.autoDelete)
	d.flag("internal", spec.Internal, x.internal)
	d.argument(argAlternate, spec.Args, x.args)
	if x.delayed {
		if !x.passesInnerType(spec) {
			d.argument(argDelayedType, spec.Args, x.args)
		}
		for _, c := range delayedArguments() {
			d.argument(c.name, spec.Args, x.args)
		}
	}
	return d.err
}

// ExchangeDelete deletes an exchange with its bindings and, if it is delayed, with what waits in
// it. One that does not exist is deleted already. [amqp exchange.delete]
func (s *Session) ExchangeDelete(name string, ifUnused bool) error {
	name = cleanName(name)
	if name == "" {
		return defaultExchangeRefused()
	}
	if strings.HasPrefix(name, "amq.") {
		return amqp.Errorf(amqp.AccessRefused, "deletion of system exchange '%s' in vhost '%s' "+
			"not allowed", name, s.vhost.name)
	}
	if err := s.checkExchange(s.rights.MayConfigure, name); err != nil {
		return err
	}
	lsn, err := s.vhost.deleteExchange(name, ifUnused)
	if err != nil {
		return err
	}
	return s.broker.wait(lsn)
}

func (v *VHost) deleteExchange(name string, ifUnused bool) (store.LSN, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x := v.exchanges[name]
	if x == nil {
		return 0, nil
	}
	if ifUnused && len(x.outgoing) > 0 {
		return 0, amqp.Errorf(amqp.PreconditionFailed, "%s in use", x)
	}
	var c change
	c.removeExchange(x)
	return v.applyLocked(&c)
}

func defaultExchangeRefused() error {
	return amqp.Errorf(amqp.AccessRefused, "operation not permitted on the default exchange")
}
