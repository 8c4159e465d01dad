package topology

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Attach leads what asks for a delay on the exchange name to the intake. The exchange is there
// already, declared with [OuterArguments] by a client with rights of its own. Doing it again
// changes nothing.
func Attach(conn *amqp.Connection, name string) error {
	if err := DeclareShared(conn); err != nil {
		return err
	}
	return onChannel(conn, func(ch *amqp.Channel) error {
		if err := ch.QueueBind(Intake, "", name, false, intakeBinding()); err != nil {
			return fmt.Errorf("bind queue %q to exchange %q: %w", Intake, name, err)
		}
		return nil
	})
}

// Discard takes away an exchange that was declared with [OuterArguments], if the one with its
// bindings was not made: such an exchange is of no use to anybody.
func Discard(conn *amqp.Connection, name string) error {
	if whole, err := IsDelayed(conn, name); whole || err != nil {
		return err
	}
	return onChannel(conn, func(ch *amqp.Channel) error {
		if err := ch.ExchangeDelete(name, false, false); err != nil {
			return fmt.Errorf("delete exchange %q: %w", name, err)
		}
		return nil
	})
}
