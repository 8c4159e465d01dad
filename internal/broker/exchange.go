package broker

import (
	"sync/atomic"

	"github.com/duepost/duepost/internal/amqp"
)

// exchangeKind is how an exchange chooses among its bindings.
type exchangeKind uint8

const (
	unknownKind exchangeKind = iota
	direct
	fanout
	topic
	headersKind
)

// delayedType is the exchange type that holds messages back; its kind comes as an argument.
const delayedType = "x-delayed-message"

// Arguments of exchange.declare.
const (
	argAlternate   = "alternate-exchange"
	argDelayedType = "x-delayed-type"
)

func kindOf(typeName string) exchangeKind {
	switch typeName {
	case "direct":
		return direct
	case "fanout":
		return fanout
	case "topic":
		return topic
	case "headers":
		return headersKind
	}
	return unknownKind
}

// Exchange routes messages to queues and other exchanges by its bindings.
type Exchange struct {
	// id names this incarnation to the store, for delayed messages; it is even and not 0.
	// Those with a history of dead-lettering carry id|1; see historyBit. Only delayed
	// exchanges have one.
	id         uint32
	vhost      *VHost
	name       string
	typeName   string // as declared
	kind       exchangeKind
	delayed    bool
	durable    bool
	autoDelete bool
	internal   bool
	args       amqp.Table

	// settings are replaced by Exchange.apply.
	settings atomic.Pointer[exchangeSettings]

	// table is what routing reads. It is never changed: a new binding makes it nil, and
	// the next message builds it anew.
	table atomic.Pointer[routeTable]

	// heir is set in what remains of a deleted exchange: the name of the one that gets what
	// waits in it. See remains.
	heir *string

	policies policyPair // guarded by vhost.mu

	// bindings from here and to here; guarded by vhost.mu.
	outgoing map[bindingKey]*binding
	incoming map[bindingKey]*binding
}

// Name returns the exchange's name.
func (x *Exchange) Name() string { return x.name }

func (x *Exchange) String() string {
	return nameExchange(x.name, x.vhost.name)
}

// binding is a way from an exchange to a queue or to another exchange.
type binding struct {
	bindingKey
	source   *Exchange
	queue    *Queue    // one of these two is set
	exchange *Exchange //
	durable  bool      // both ends are
	args     amqp.Table
}

// bindingKey is what makes two bindings the same.
type bindingKey struct {
	source      string
	toExchange  bool
	destination string
	routingKey  string
	args        string // encoded, keys sorted
}

// routes returns the snapshot of the bindings.
func (x *Exchange) routes() *routeTable {
	if t := x.table.Load(); t != nil {
		return t
	}
	x.vhost.mu.RLock()
	defer x.vhost.mu.RUnlock()
	t := newRouteTable(x.kind, x.outgoing)
	x.table.Store(t)
	return t
}
