package definitions

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/policy"
)

// What the broker calls the parts of a document, and back.

func (p *Policy) policy() *policy.Policy {
	return &policy.Policy{Name: p.Name, Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority,
		Definition: p.Definition}
}

func policyOf(vhost string, p *policy.Policy) Policy {
	return Policy{VHost: vhost, Name: p.Name, Pattern: p.Pattern, ApplyTo: p.ApplyTo,
		Definition: p.Definition, Priority: p.Priority}
}

func (x *Exchange) spec() broker.ExchangeSpec {
	return broker.ExchangeSpec{Name: x.Name, Type: x.Type, Durable: x.Durable, AutoDelete: x.AutoDelete,
		Internal: x.Internal, Args: amqp.Table(x.Arguments)}
}

func exchangeOf(vhost string, x *broker.ExchangeSpec) Exchange {
	return Exchange{Name: x.Name, VHost: vhost, Type: x.Type, Durable: x.Durable, AutoDelete: x.AutoDelete,
		Internal: x.Internal, Arguments: Arguments(x.Args)}
}

func (q *Queue) spec() broker.QueueSpec {
	return broker.QueueSpec{Name: q.Name, Durable: q.Durable, AutoDelete: q.AutoDelete,
		Args: amqp.Table(q.Arguments)}
}

func queueOf(vhost string, q *broker.QueueSpec) Queue {
	return Queue{Name: q.Name, VHost: vhost, Durable: q.Durable, AutoDelete: q.AutoDelete,
		Arguments: Arguments(q.Args)}
}

func (b *Binding) spec() *broker.BindingSpec {
	return &broker.BindingSpec{ToExchange: b.DestinationType == toExchange, Binding: broker.Binding{
		Source: b.Source, Destination: b.Destination, RoutingKey: b.RoutingKey, Args: amqp.Table(b.Arguments)}}
}

func bindingOf(vhost string, b *broker.BindingSpec) Binding {
	kind := toQueue
	if b.ToExchange {
		kind = toExchange
	}
	return Binding{Source: b.Source, VHost: vhost, Destination: b.Destination, DestinationType: kind,
		RoutingKey: b.RoutingKey, Arguments: Arguments(b.Args)}
}
