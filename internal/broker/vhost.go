package broker

import (
	"sync"
	"sync/atomic"
)

// VHost is a name space of exchanges and queues.
type VHost struct {
	broker *Broker
	name   string

	// version counts the changes of exchanges, queues and bindings. It is raised after a
	// change and before the lock is given up, so a route found under an unchanged version
	// holds. It starts at 1.
	version atomic.Uint64

	metadata atomic.Pointer[VHostMetadata]
	deleted  atomic.Bool // set under mu

	mu        sync.RWMutex // guards all below, and what its exchanges and queues name it for
	exchanges map[string]*Exchange
	queues    map[string]*Queue
	parked    map[string]*Queue // parking queues by reason
	remains   []*Exchange       // of deleted ones in which something waits

	policies         policyList
	operatorPolicies policyList
	limits           VHostLimits
	sessions         int // open ones
}

func newVHost(b *Broker, name string) *VHost {
	v := &VHost{
		broker:    b,
		name:      name,
		exchanges: make(map[string]*Exchange),
		queues:    make(map[string]*Queue),
		parked:    make(map[string]*Queue),

		policies:         policyList{prefix: policyPrefix},
		operatorPolicies: policyList{prefix: operatorPrefix},
	}
	v.version.Store(1)
	v.metadata.Store(new(VHostMetadata))
	return v
}

// Name returns the virtual host's name.
func (v *VHost) Name() string { return v.name }

// exchange returns the exchange of that name, or nil.
func (v *VHost) exchange(name string) *Exchange {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.exchanges[name]
}

// exchangeNamed is exchange without a string to be made.
func (v *VHost) exchangeNamed(name []byte) *Exchange {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.exchanges[string(name)]
}

// queue returns the queue of that name, or nil.
func (v *VHost) queue(name string) *Queue {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.queues[name]
}

// changedLocked says that routes found before may be wrong.
func (v *VHost) changedLocked() { v.version.Add(1) }

// addPredeclared adds the exchanges that every virtual host has.
func (v *VHost) addPredeclared() {
	for _, spec := range PredeclaredExchanges() {
		v.exchanges[spec.Name] = newExchange(v, &spec, kindOf(spec.Type))
	}
}

// PredeclaredExchanges returns the exchanges that every virtual host has. They are durable, which
// makes bindings to them durable, and not stored. [amqp 3.1.3.1]
func PredeclaredExchanges() []ExchangeSpec {
	return []ExchangeSpec{
		{Name: "", Type: "direct", Durable: true},
		{Name: "amq.direct", Type: "direct", Durable: true},
		{Name: "amq.fanout", Type: "fanout", Durable: true},
		{Name: "amq.topic", Type: "topic", Durable: true},
		{Name: "amq.headers", Type: "headers", Durable: true},
		{Name: "amq.match", Type: "headers", Durable: true},
		{Name: "amq.rabbitmq.trace", Type: "topic", Durable: true, Internal: true},
	}
}
