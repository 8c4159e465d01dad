package broker

import (
	"cmp"
	"maps"
	"slices"

	"github.com/duepost/duepost/internal/amqp"
)

// QueueState is what a queue is and holds, for operators.
type QueueState struct {
	QueueSpec
	Ready, Unacknowledged, Consumers int
	ReadyBytes                       int64
	Policies                         AppliedPolicies
	ExclusiveTag                     string // of the consumer that wants to be the only one
	ActiveTag                        string // of the one that gets messages, if only one does
}

// Type returns the queue type by its name.
func (s *QueueState) Type() string {
	if name, ok := s.Args[argQueueType].(string); ok {
		return name
	}
	return "classic"
}

// QueueStates returns all queues, exclusive ones too, in the order of names.
func (v *VHost) QueueStates() []QueueState {
	v.mu.RLock()
	defer v.mu.RUnlock()
	states := make([]QueueState, 0, len(v.queues))
	for _, name := range slices.Sorted(maps.Keys(v.queues)) {
		states = append(states, v.queues[name].stateLocked())
	}
	return states
}

// QueueState returns one queue, if there is one of that name.
func (v *VHost) QueueState(name string) (QueueState, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	q := v.queues[name]
	if q == nil {
		return QueueState{}, false
	}
	return q.stateLocked(), true
}

// stateLocked is called under vhost.mu.
func (q *Queue) stateLocked() QueueState {
	s := QueueState{QueueSpec: q.spec(), Policies: q.policies.applied()}
	q.mu.Lock()
	defer q.mu.Unlock()
	s.Ready, s.Unacknowledged, s.ReadyBytes = q.index.ready, q.index.held, q.index.readyBytes
	s.Consumers = len(q.consumers)
	if s.Consumers == 1 && q.consumers[0].Exclusive() {
		s.ExclusiveTag = q.consumers[0].Tag()
	}
	if q.sole != nil {
		s.ActiveTag = q.sole.Tag()
	}
	return s
}

// ExchangeState is what an exchange is and holds, for operators.
type ExchangeState struct {
	ExchangeSpec
	Delayed  bool   // of type x-delayed-message
	Pending  uint64 // messages that wait in it
	Policies AppliedPolicies
}

// ExchangeStates returns all exchanges in the order of names.
func (v *VHost) ExchangeStates() []ExchangeState {
	v.mu.RLock()
	defer v.mu.RUnlock()
	states := make([]ExchangeState, 0, len(v.exchanges))
	for _, name := range slices.Sorted(maps.Keys(v.exchanges)) {
		states = append(states, v.exchanges[name].stateLocked())
	}
	return states
}

// ExchangeState returns one exchange, if there is one of that name.
func (v *VHost) ExchangeState(name string) (ExchangeState, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	x := v.exchanges[name]
	if x == nil {
		return ExchangeState{}, false
	}
	return x.stateLocked(), true
}

// stateLocked is called under vhost.mu.
func (x *Exchange) stateLocked() ExchangeState {
	s := ExchangeState{ExchangeSpec: x.spec(), Delayed: x.delayed, Policies: x.policies.applied()}
	if x.delayed {
		s.Pending = x.pending().Count + x.vhost.pendingInRemainsLocked(x.name).Count
	}
	return s
}

// Bindings returns all bindings, those of the default exchange and of exclusive queues too, in the
// order of source, destination and key.
func (v *VHost) Bindings() []BindingSpec {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var specs []BindingSpec
	for name := range v.queues { // which is what the default exchange does
		specs = append(specs, BindingSpec{Binding: Binding{Destination: name, RoutingKey: name}})
	}
	for _, x := range v.exchanges {
		for key, b := range x.outgoing {
			specs = append(specs, BindingSpec{ToExchange: key.toExchange, Binding: Binding{
				Source: key.source, Destination: key.destination, RoutingKey: key.routingKey, Args: b.args}})
		}
	}
	slices.SortFunc(specs, func(a, b BindingSpec) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Destination, b.Destination),
			cmp.Compare(a.RoutingKey, b.RoutingKey))
	})
	return specs
}

// Active reports whether the consumer gets messages, and whether it is the only one that does: of a
// queue with a single active one the others wait. [rmq single active consumer]
func (c *Consumer) Active() (active, only bool) {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	only = c.queue.singleActive && c.queue.sole == c
	return only || !c.queue.singleActive, only
}

// Exclusive reports whether the consumer wants to be the only one of its queue.
func (c *Consumer) Exclusive() bool { return c.spec.Exclusive }

// Arguments returns what the client gave, not to be changed.
func (c *Consumer) Arguments() amqp.Table { return c.spec.Args }
