package gateway

import (
	"context"
	"strings"

	"github.com/duepost/duepost/internal/amqp"
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
	dueSuffix = ".duepost"
)

// Exchange is a delayed exchange as a client declares it.
type Exchange struct {
	Name string
	// Type is the type by which bindings are read: direct, topic, fanout or headers.
	Type       string
	Durable    bool
	AutoDelete bool
	Internal   bool
	// Alternate is the alternate exchange for what nobody takes when it is due; empty for none.
	Alternate string
}

// Topology makes and knows delayed exchanges on RabbitMQ: the relay. Its methods may be called
// concurrently, and wait for the broker until the context ends.
type Topology interface {
	// Declare makes what belongs to a delayed exchange besides the exchange itself, which the
	// client has just declared with credentials of its own. Doing it again changes nothing. An
	// *amqp.Error with the scope of a channel goes to the client as it is.
	Declare(ctx context.Context, vhost string, x Exchange) error
	// IsDelayed reports whether there is a delayed exchange of that name.
	IsDelayed(ctx context.Context, vhost, exchange string) (bool, error)
}

// readExchange returns the delayed exchange that x and its arguments ask for; the error is an
// *amqp.Error for the client.
func readExchange(x Exchange, args amqp.RawTable) (Exchange, error) {
	inner, _ := args.Lookup(argDelayedType)
	text, ok := inner.Str()
	x.Type = string(text)
	switch {
	case !ok:
		return x, amqp.Errorf(amqp.PreconditionFailed,
			"Invalid argument, '%s' must be an existing exchange type", argDelayedType)
	case !isBindingType(x.Type):
		return x, amqp.Errorf(amqp.PreconditionFailed,
			"Invalid argument, '%s' is '%.40s', allowed are direct, topic, fanout and headers",
			argDelayedType, x.Type)
	case strings.HasSuffix(x.Name, dueSuffix):
		return x, amqp.Errorf(amqp.AccessRefused,
			"exchange name '%.100s' ends with the reserved '%s'", x.Name, dueSuffix)
	case len(x.Name) > amqp.MaxShortStr-len(dueSuffix):
		return x, amqp.Errorf(amqp.PreconditionFailed,
			"name of a delayed exchange has %d octets, allowed are at most %d",
			len(x.Name), amqp.MaxShortStr-len(dueSuffix))
	}
	if alternate, found := args.Lookup(argAlternate); found {
		name, ok := alternate.Str()
		if !ok {
			return x, amqp.Errorf(amqp.PreconditionFailed, "invalid type '%s' for arg '%s'",
				amqp.TypeName(alternate.Type), argAlternate)
		}
		x.Alternate = string(name)
	}
	return x, nil
}

func isBindingType(name string) bool {
	switch name {
	case "direct", "topic", "fanout", "headers":
		return true
	}
	return false
}

// outerArguments are those of the exchange that publishers see. What carries no delay leaves it
// by the alternate exchange. The type is there for people to read: RabbitMQ ignores it.
func outerArguments(x Exchange) (amqp.RawTable, error) {
	table, err := amqp.AppendTable(nil, amqp.Table{
		argAlternate: x.Name + dueSuffix, argDelayedType: x.Type,
	})
	if err != nil {
		return nil, err
	}
	return table[4:], nil
}
