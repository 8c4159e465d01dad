package gateway

import (
	"context"
	"strings"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/relay/topology"
)

const (
	// delayedType is the exchange type that clients declare.
	delayedType = "x-delayed-message"
	// argDelayedType is its argument: the type by which bindings are read.
	argDelayedType = "x-delayed-type"
	// argAlternate is the argument for what nobody takes.
	argAlternate = "alternate-exchange"
	// outerType is what a delayed exchange is to RabbitMQ.
	outerType = "headers"
	// dueSuffix makes of a delayed exchange's name that of the exchange that holds its bindings.
	dueSuffix = topology.DueSuffix
)

// Topology makes and knows delayed exchanges on RabbitMQ: the relay. Its methods may be called
// concurrently, and wait for the broker until the context ends.
type Topology interface {
	// Attach leads what asks for a delay on an exchange, which the client has just declared with
	// credentials of its own, to the relay. Doing it again changes nothing. An *amqp.Error with
	// the scope of a channel goes to the client as it is.
	Attach(ctx context.Context, vhost, exchange string) error
	// Discard takes that exchange away if there is none with its bindings.
	Discard(ctx context.Context, vhost, exchange string) error
	// IsDelayed reports whether there is a delayed exchange of that name.
	IsDelayed(ctx context.Context, vhost, exchange string) (bool, error)
}

// readExchange returns the delayed exchange that x and its arguments ask for; the error is an
// *amqp.Error for the client.
func readExchange(x topology.Exchange, args amqp.RawTable) (topology.Exchange, error) {
	inner, _ := args.Lookup(argDelayedType)
	text, ok := inner.Str()
	if !ok {
		return x, amqp.Errorf(amqp.PreconditionFailed,
			"Invalid argument, '%s' must be an existing exchange type", argDelayedType)
	}
	x.Type = string(text)
	if alternate, found := args.Lookup(argAlternate); found {
		name, ok := alternate.Str()
		if !ok {
			return x, amqp.Errorf(amqp.PreconditionFailed, "invalid type '%s' for arg '%s'",
				amqp.TypeName(alternate.Type), argAlternate)
		}
		x.Alternate = string(name)
	}
	if strings.HasPrefix(x.Name, "amq.") || x.Name == "" {
		return x, nil // RabbitMQ has words of its own for these
	}
	if err := x.Check(); err != nil {
		return x, amqp.Errorf(amqp.PreconditionFailed, "%v", err)
	}
	return x, nil
}

// outerArguments are those of the exchange that publishers see.
func outerArguments(x topology.Exchange) (amqp.RawTable, error) {
	return encode(amqp.Table(topology.OuterArguments(x)))
}

// dueArguments are those of the exchange that holds the bindings.
func dueArguments(x topology.Exchange) (amqp.RawTable, error) {
	if x.Alternate == "" {
		return nil, nil
	}
	return encode(amqp.Table{argAlternate: x.Alternate})
}

func encode(table amqp.Table) (amqp.RawTable, error) {
	b, err := amqp.AppendTable(nil, table)
	if err != nil {
		return nil, err
	}
	return b[4:], nil // without the length
}
