package topology

import (
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/headers"
)

// Arguments of exchanges.
const (
	argAlternate   = "alternate-exchange"
	argDelayedType = "x-delayed-type"
)

// outerType is what a delayed exchange is to RabbitMQ.
const outerType = amqp.ExchangeHeaders

// DeclareExchange makes the delayed exchange x, with the queues behind it.
func DeclareExchange(conn *amqp.Connection, x Exchange) error {
	if err := x.Check(); err != nil {
		return err
	}
	if err := DeclareShared(conn); err != nil {
		return err
	}
	return onChannel(conn, func(ch *amqp.Channel) error {
		return declareExchange(ch, x)
	})
}

// declareExchange goes from the inside out: what publishers see comes last, so that nothing is
// accepted before there is a way for it.
func declareExchange(ch *amqp.Channel, x Exchange) error {
	var due amqp.Table
	if x.Alternate != "" {
		due = amqp.Table{argAlternate: x.Alternate}
	}
	// Not auto-deleted: it may lose its last binding and get another before a message is due.
	if err := ch.ExchangeDeclare(DueExchange(x.Name), x.Type, x.Durable, false, false, false, due); err != nil {
		return fmt.Errorf("declare exchange %q: %w", DueExchange(x.Name), err)
	}
	err := ch.ExchangeDeclare(x.Name, outerType, x.Durable, x.AutoDelete, x.Internal, false, OuterArguments(x))
	if err != nil {
		return fmt.Errorf("declare exchange %q: %w", x.Name, err)
	}
	if err := ch.QueueBind(Intake, "", x.Name, false, intakeBinding()); err != nil {
		return fmt.Errorf("bind queue %q to exchange %q: %w", Intake, x.Name, err)
	}
	return nil
}

// OuterArguments are those of the exchange that publishers see. What carries no delay leaves it by
// the alternate exchange. The type is there for people to read: RabbitMQ ignores it.
func OuterArguments(x Exchange) amqp.Table {
	return amqp.Table{argAlternate: DueExchange(x.Name), argDelayedType: x.Type}
}

// intakeBinding takes every message with a delay header, whatever its value: void matches presence.
func intakeBinding() amqp.Table {
	return amqp.Table{
		"x-match":             "any-with-x",
		headers.XDelay:        nil,
		headers.DeliveryDelay: nil,
		headers.DeliveryTime:  nil,
	}
}

// DeleteExchange takes away the delayed exchange name with its bindings; what waits for it is
// parked when it is due. Deleting what is not there changes nothing.
func DeleteExchange(conn *amqp.Connection, name string) error {
	return onChannel(conn, func(ch *amqp.Channel) error {
		// From the outside in, so that nothing is accepted that has no way any more.
		for _, one := range []string{name, DueExchange(name)} {
			if err := ch.ExchangeDelete(one, false, false); err != nil {
				return fmt.Errorf("delete exchange %q: %w", one, err)
			}
		}
		return nil
	})
}

// IsDelayed reports whether there is a delayed exchange of that name.
func IsDelayed(conn *amqp.Connection, name string) (bool, error) {
	return HasExchange(conn, DueExchange(name))
}

// HasExchange reports whether there is an exchange of that name.
func HasExchange(conn *amqp.Connection, name string) (bool, error) {
	err := onChannel(conn, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(name, amqp.ExchangeDirect, true, false, false, false, nil)
	})
	if isNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for exchange %q: %w", name, err)
	}
	return true, nil
}

func isNotFound(err error) bool {
	var said *amqp.Error
	return errors.As(err, &said) && said.Code == amqp.NotFound
}

// onChannel runs f on a channel of its own, for the broker closes the channel on an error.
func onChannel(conn *amqp.Connection, f func(*amqp.Channel) error) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	defer ch.Close() // it is closed already after an error, and then there is nothing to say
	return f(ch)
}
