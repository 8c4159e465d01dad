package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	amqp "github.com/rabbitmq/amqp091-go"
)

// defaultURL is where serve listens unless told otherwise.
const defaultURL = "amqp://guest:guest@127.0.0.1:5672/"

// brokerURL is the flag that every client verb has.
type brokerURL struct {
	URL string `name:"url" default:"amqp://guest:guest@127.0.0.1:5672/" help:"The broker, any that speaks AMQP 0-9-1."`
}

// dial connects and turns the usual faults into errors with a hint.
func (b brokerURL) dial(verb string) (*amqp.Connection, error) {
	uri, err := amqp.ParseURI(b.URL)
	if err != nil {
		return nil, &usageError{fmt.Errorf("--url: %w", err),
			"the form is amqp://USER:PASSWORD@HOST:PORT/VHOST"}
	}
	props := amqp.NewConnectionProperties()
	props.SetClientConnectionName("duepost " + verb)
	conn, err := amqp.DialConfig(b.URL, amqp.Config{Properties: props})
	if err == nil {
		return conn, nil
	}
	err = fmt.Errorf("connect to %s:%d: %w", uri.Host, uri.Port, err)
	return nil, &hintedError{err: err, hint: dialHint(err), code: exitFailed}
}

func dialHint(err error) string {
	var netErr net.Error
	var said *amqp.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there; `duepost serve` starts a broker, --url names another one"
	case errors.As(err, &said) && said.Code == amqp.AccessRefused:
		return "user or password is not right; a user named guest is let in from loopback only"
	case errors.As(err, &said) && said.Code == amqp.NotAllowed:
		return "the last part of --url is the vhost; / alone stands for the default one"
	case errors.As(err, &netErr) && netErr.Timeout():
		return "the host does not answer; is the address right, and a firewall between?"
	}
	return ""
}

// isPlugin tells RabbitMQ, whose delayed exchange is a plugin with limits of its own.
func isPlugin(conn *amqp.Connection) bool {
	return conn.Properties["product"] == "RabbitMQ"
}

// declareQueue declares a durable queue, or leaves one of that name as it is, whatever its
// arguments. The refusal of another kind (406) closes the channel, hence one of its own.
func declareQueue(conn *amqp.Connection, queue string) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	_, err = ch.QueueDeclare(queue, true, false, false, false, nil)
	var said *amqp.Error
	if errors.As(err, &said) && said.Code == amqp.PreconditionFailed {
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
	var said *amqp.Error
	if errors.As(err, &said) && said.Code == amqp.NotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up queue %q: %w", queue, err)
	}
	return true, ch.Close()
}

// declareDelayed declares a durable delayed exchange of the given inner type.
func declareDelayed(ch *amqp.Channel, exchange, inner string) error {
	err := ch.ExchangeDeclare(exchange, "x-delayed-message", true, false, false, false,
		amqp.Table{"x-delayed-type": inner})
	if err == nil {
		return nil
	}
	hint := fmt.Sprintf("an exchange %q of another kind may exist already", exchange)
	var said *amqp.Error
	if errors.As(err, &said) && said.Code == amqp.CommandInvalid {
		hint = "this broker has no delayed exchange; `duepost serve` has one built in"
	}
	return &hintedError{fmt.Errorf("declare delayed exchange %q: %w", exchange, err), hint, exitFailed}
}
