package topology

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// DeclareShared makes the queues that all delayed exchanges share, the wheel excepted, whose queues
// are made when the first message waits in them.
func DeclareShared(conn *amqp.Connection) error {
	major, err := majorVersion(conn)
	if err != nil {
		return err
	}
	return onChannel(conn, func(ch *amqp.Channel) error {
		// Of an exchange's arguments RabbitMQ compares this one only. It is never used: the rescue is bound.
		version := amqp.Table{argAlternate: fmt.Sprint(Prefix, "version.", Version)}
		if err := ch.ExchangeDeclare(Rescue, amqp.ExchangeFanout, true, false, false, false, version); err != nil {
			var said *amqp.Error
			if errors.As(err, &said) && said.Code == amqp.PreconditionFailed {
				return fmt.Errorf("declare exchange %q: relays of another version work here, this one is of layout %d: %w",
					Rescue, Version, err)
			}
			return fmt.Errorf("declare exchange %q: %w", Rescue, err)
		}
		for _, q := range []struct {
			name string
			args amqp.Table
		}{{Rescue, nil}, {Parked, nil}, {Intake, intakeArguments()}} {
			if err := declareQueue(ch, q.name, major, q.args); err != nil {
				return err
			}
		}
		if err := ch.QueueBind(Rescue, "", Rescue, false, nil); err != nil {
			return fmt.Errorf("bind queue %q: %w", Rescue, err)
		}
		return nil
	})
}

// intakeArguments send what expires before a relay has it to the rescue, at least once: for that
// RabbitMQ wants reject-publish. [rmq quorum-queues]
func intakeArguments() amqp.Table {
	return amqp.Table{
		"x-dead-letter-exchange": Rescue,
		"x-dead-letter-strategy": "at-least-once",
		"x-overflow":             "reject-publish",
	}
}

// DeclareWheelQueue makes a queue of the wheel. One relay at a time has it; the others wait.
func DeclareWheelQueue(conn *amqp.Connection, name string) error {
	major, err := majorVersion(conn)
	if err != nil {
		return err
	}
	return onChannel(conn, func(ch *amqp.Channel) error {
		return declareQueue(ch, name, major, amqp.Table{
			"x-single-active-consumer": true, "x-overflow": "reject-publish"})
	})
}

// Count looks for a queue and at how many messages are ready in it.
func Count(conn *amqp.Connection, name string) (ready int, found bool, err error) {
	q, found, err := inspect(conn, name)
	return q.Messages, found, err
}

// inspect looks for a queue.
func inspect(conn *amqp.Connection, name string) (q amqp.Queue, found bool, err error) {
	err = onChannel(conn, func(ch *amqp.Channel) (err error) {
		q, err = ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	})
	if isNotFound(err) {
		return q, false, nil
	}
	if err != nil {
		return q, false, fmt.Errorf("look for queue %q: %w", name, err)
	}
	return q, true, nil
}

// unlimitedSince is the first major version in which -1 means no delivery limit. Before it a queue
// without the argument has none, and -1 is a limit that the first return exceeds: the message is
// lost. From it on a queue without the argument has a limit of 20.
const unlimitedSince = 4

// lostAfter is how long, in milliseconds, a consumer on a node that is cut off from that of the queue
// keeps what it has, and the place of the active one. RabbitMQ 4.3 lets it do so for a minute without
// this, those before not at all. [rmq quorum-queues]
const lostAfter = 5000

// declareQueue makes a quorum queue without a delivery limit.
func declareQueue(ch *amqp.Channel, name string, major int, args amqp.Table) error {
	all := amqp.Table{"x-queue-type": "quorum"}
	for key, v := range args {
		all[key] = v
	}
	if major >= unlimitedSince {
		all["x-delivery-limit"] = int32(-1)
		all["x-consumer-disconnected-timeout"] = int32(lostAfter)
	}
	if _, err := ch.QueueDeclare(name, true, false, false, false, all); err != nil {
		return fmt.Errorf("declare queue %q: %w", name, err)
	}
	return nil
}

// oldestMinor is of 3.x: the first with dead-lettering at least once.
const oldestMinor = 10

// majorVersion is that of the broker, and refuses one that is too old or no RabbitMQ.
func majorVersion(conn *amqp.Connection) (int, error) {
	product, _ := conn.Properties["product"].(string)
	version, _ := conn.Properties["version"].(string)
	return parseVersion(product, version)
}

func parseVersion(product, version string) (major int, err error) {
	parts := strings.SplitN(version, ".", 3)
	if product != "RabbitMQ" || len(parts) < 2 {
		return 0, fmt.Errorf("check broker: it is %q %q, a relay needs RabbitMQ", product, version)
	}
	major, errMajor := strconv.Atoi(parts[0])
	minor, errMinor := strconv.Atoi(parts[1])
	if errMajor != nil || errMinor != nil {
		return 0, fmt.Errorf("check broker: version %q is not understood", version)
	}
	if major < 3 || (major == 3 && minor < oldestMinor) {
		return 0, fmt.Errorf("check broker: RabbitMQ is %s, a relay needs 3.%d or later", version, oldestMinor)
	}
	return major, nil
}
