package topology

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/management"
)

// InUseError says why what a relay has made is not taken away.
type InUseError struct{ Reason string }

// Error is the reason.
func (e *InUseError) Error() string { return "remove topology: " + e.Reason }

// Remove takes away everything that relays have made in a virtual host, if there is nothing in it and
// nobody uses it. The error is an *InUseError if it is in use.
func Remove(ctx context.Context, conn *amqp.Connection, api *management.Client, vhost string) error {
	delayed, err := Delayed(ctx, api, vhost)
	if err != nil {
		return err
	}
	if len(delayed) > 0 {
		return &InUseError{fmt.Sprintf("delayed exchange %q is there, and %d others", delayed[0].Name, len(delayed)-1)}
	}
	var there []string
	for _, name := range Queues() {
		q, found, err := inspect(conn, name)
		switch {
		case err != nil:
			return err
		case !found:
			continue
		case q.Messages > 0:
			return &InUseError{fmt.Sprintf("queue %q has %d messages", name, q.Messages)}
		case q.Consumers > 0:
			return &InUseError{fmt.Sprintf("a relay consumes queue %q", name)}
		}
		there = append(there, name)
	}
	for _, name := range there {
		// Quorum queues do not know if-empty and if-unused.
		if err := onChannel(conn, func(ch *amqp.Channel) error {
			_, err := ch.QueueDelete(name, false, false, false)
			return err
		}); err != nil {
			return fmt.Errorf("delete queue %q: %w", name, err)
		}
	}
	if err := onChannel(conn, func(ch *amqp.Channel) error { return ch.ExchangeDelete(Rescue, false, false) }); err != nil {
		return fmt.Errorf("delete exchange %q: %w", Rescue, err)
	}
	return removePolicy(ctx, api, vhost)
}

// removePolicy takes the relay's policy away, if it is there.
func removePolicy(ctx context.Context, api *management.Client, vhost string) error {
	_, err := api.Do(ctx, management.Request{Method: http.MethodDelete, Path: management.Path("policies", vhost, PolicyName)})
	var refused *management.Refusal
	if err == nil || errors.As(err, &refused) && refused.Code == http.StatusNotFound {
		return nil
	}
	return fmt.Errorf("delete policy %q: %w", PolicyName, needsPolicymaker(api, err))
}
