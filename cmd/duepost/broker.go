package main

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

const delayedType = "x-delayed-message"

// isPlugin tells RabbitMQ, whose delayed exchange is a plugin with limits of its own.
func isPlugin(conn *amqp.Connection) bool {
	return conn.Properties["product"] == "RabbitMQ"
}

// declareQueue declares a durable queue, or leaves one of that name as it is, whatever its
// arguments. It asks first, as the refusal of another kind (406) is logged by brokers; there may
// be one all the same, if somebody else was quicker. It closes the channel, hence one of its own.
func declareQueue(conn *amqp.Connection, queue string) error {
	if exists, err := queueExists(conn, queue); exists || err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	_, err = ch.QueueDeclare(queue, true, false, false, false, nil)
	if isCode(err, amqp.PreconditionFailed) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("declare queue %q: %w", queue, err)
	}
	return ch.Close()
}

// queueExists asks with a passive declare; its 404 closes the channel as well.
func queueExists(conn *amqp.Connection, queue string) (bool, error) {
	ch, err := conn.Channel()
	if err != nil {
		return false, fmt.Errorf("open channel: %w", err)
	}
	_, err = ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if isCode(err, amqp.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up queue %q: %w", queue, err)
	}
	return true, ch.Close()
}

// declareDelayed declares a durable delayed exchange of the given inner type.
func declareDelayed(ch *amqp.Channel, exchange, inner string) error {
	err := ch.ExchangeDeclare(exchange, delayedType, true, false, false, false,
		amqp.Table{"x-delayed-type": inner})
	if err == nil {
		return nil
	}
	hint := fmt.Sprintf("an exchange %q of another kind may exist already", exchange)
	if isUnknownType(err) {
		hint = noDelayedExchanges
	}
	return &hintedError{fmt.Errorf("declare delayed exchange %q: %w", exchange, err), hint, exitFailed}
}

const noDelayedExchanges = "this broker has no delayed exchange; `duepost serve` has one built in"

// answer is what could be found out.
type answer int

const (
	unknown answer = iota
	yes
	no
)

// delays finds out whether an exchange delays, without changing anything. A passive declare only
// says whether it is there. What its type is, a declare of the type in question tells: the broker
// compares it with what is there, the type first, and names what differs. An exchange deleted
// between the two would be made anew.
func delays(conn *amqp.Connection, exchange string) (answer, error) {
	ch, err := conn.Channel()
	if err != nil {
		return unknown, fmt.Errorf("open channel: %w", err)
	}
	defer ch.Close() // closed already where the broker refused
	// A passive declare ignores the type [amqp exchange.declare.passive].
	if err := ch.ExchangeDeclarePassive(exchange, delayedType, true, false, false, false, nil); err != nil {
		return unknown, fmt.Errorf("look up exchange %q: %w", exchange, err)
	}
	err = ch.ExchangeDeclare(exchange, delayedType, true, false, false, false,
		amqp.Table{"x-delayed-type": "direct"})
	var said *amqp.Error
	switch {
	case err == nil:
		return yes, nil
	case isUnknownType(err):
		return no, nil
	case isCode(err, amqp.AccessRefused):
		return unknown, nil // this user may publish, but not declare
	case errors.As(err, &said) && said.Code == amqp.PreconditionFailed && strings.Contains(said.Reason, "inequivalent arg 'type'"):
		return no, nil
	case isCode(err, amqp.PreconditionFailed):
		return yes, nil // what differs is something else
	}
	return unknown, fmt.Errorf("look up type of exchange %q: %w", exchange, err)
}

// isUnknownType tells the answer of a broker without delayed exchanges: 503 or 406 by its age.
func isUnknownType(err error) bool {
	var said *amqp.Error
	return errors.As(err, &said) && (said.Code == amqp.CommandInvalid ||
		said.Code == amqp.PreconditionFailed && strings.Contains(said.Reason, "unknown exchange type"))
}

func isCode(err error, code int) bool {
	var said *amqp.Error
	return errors.As(err, &said) && said.Code == code
}
