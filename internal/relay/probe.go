package relay

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/relay/topology"
)

// canImpersonate tries whether RabbitMQ takes a message with a user-id that is not that of the
// connection: the user needs the tag impersonator. Nobody gets the message. [rmq user-id]
func canImpersonate(conn *amqp.Connection, user string) (bool, error) {
	ch, err := conn.Channel()
	if err != nil {
		return false, fmt.Errorf("open channel: %w", err)
	}
	defer ch.Close() // RabbitMQ has closed it where the answer is no
	if err := ch.Confirm(false); err != nil {
		return false, fmt.Errorf("select confirms: %w", err)
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	confirm, err := ch.PublishWithDeferredConfirm("", topology.Prefix+"nobody", false, false,
		amqp.Publishing{UserId: user + "-probe"})
	if err != nil {
		return false, fmt.Errorf("probe user-id: %w", err)
	}
	select {
	case <-confirm.Done():
		if confirm.Acked() {
			return true, nil
		}
	case err := <-closed:
		if err != nil && err.Code == amqp.PreconditionFailed {
			return false, nil
		}
		return false, endOf("probe of user-id", err)
	}
	if err := <-closed; err != nil && err.Code != amqp.PreconditionFailed {
		return false, endOf("probe of user-id", err)
	}
	return false, nil
}

// isStamping tries whether RabbitMQ notes when it accepts a message: the interceptor for it is on. The
// message goes to a queue of this connection, and nobody else gets it. [rmq message-interceptors]
func isStamping(ctx context.Context, conn *amqp.Connection, name string) (bool, error) {
	ch, err := conn.Channel()
	if err != nil {
		return false, fmt.Errorf("open channel: %w", err)
	}
	defer ch.Close() // with which the queue is of no use any more
	queue := topology.Prefix + "probe." + name
	if _, err := ch.QueueDeclare(queue, false, true, true, false, nil); err != nil {
		return false, fmt.Errorf("declare queue %q: %w", queue, err)
	}
	deliveries, err := ch.ConsumeWithContext(ctx, queue, "", true, true, false, false, nil)
	if err != nil {
		return false, fmt.Errorf("consume queue %q: %w", queue, err)
	}
	if err := ch.PublishWithContext(ctx, "", queue, true, false, amqp.Publishing{}); err != nil {
		return false, fmt.Errorf("probe time stamp: %w", err)
	}
	select {
	case d, ok := <-deliveries:
		if !ok {
			return false, errors.New("probe time stamp: RabbitMQ ended it")
		}
		_, stamped := d.Headers[headerStamp].(int64)
		return stamped, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
