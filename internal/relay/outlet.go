package relay

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// outcome is what became of a publish.
type outcome int

const (
	taken    outcome = iota // by a queue at least, durably
	refused                 // by a queue: full, or without a leader
	unrouted                // nobody was there to take it
)

// result is the answer to a publish.
type result struct {
	item    *item
	outcome outcome
}

// outlet publishes messages and tells what became of each, as RabbitMQ answers: a queue that does not
// answer holds up nobody else. Its send is for one goroutine.
type outlet struct {
	ch       *amqp.Channel
	answered chan sending
	returns  chan amqp.Return
	results  chan result
	ended    chan struct{} // closed when run has ended
}

type sending struct {
	item    *item
	confirm *amqp.DeferredConfirmation
}

// newOutlet opens a channel for publishing. Returns must have room for all that are on their way, so that
// the client library never waits for their reader.
func newOutlet(conn *amqp.Connection, window int) (*outlet, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	if err := ch.Confirm(false); err != nil {
		return nil, fmt.Errorf("select confirms: %w", err)
	}
	return &outlet{
		ch: ch, answered: make(chan sending, window), results: make(chan result, window),
		returns: ch.NotifyReturn(make(chan amqp.Return, window)), ended: make(chan struct{}),
	}, nil
}

// send publishes a message; the answer comes as a result.
func (o *outlet) send(it *item, exchange, key string, p amqp.Publishing) error {
	confirm, err := o.ch.PublishWithDeferredConfirm(exchange, key, true, false, p)
	if err != nil {
		return fmt.Errorf("publish to exchange %q: %w", exchange, err)
	}
	go func() {
		<-confirm.Done() // also when the channel ends
		select {
		case o.answered <- sending{it, confirm}:
		case <-o.ended:
		}
	}()
	return nil
}

// run passes answers on until ctx ends. A channel that ends leaves what is on its way unanswered:
// the client library says then that it was refused, which is not known, so run looks first.
func (o *outlet) run(ctx context.Context) error {
	defer close(o.ended)
	returned := map[string]bool{} // ids, of messages that are not answered yet
	closed := o.ch.NotifyClose(make(chan *amqp.Error, 1))
	for {
		select {
		case <-ctx.Done():
			return nil
		case r, ok := <-o.returns:
			if !ok {
				return endOf("publishing", <-closed)
			}
			note(returned, r)
		case s := <-o.answered:
			if !s.confirm.Acked() && o.ch.IsClosed() {
				return endOf("publishing", <-closed)
			}
			if err := o.pass(ctx, s, returned, closed); err != nil {
				return err
			}
		case err := <-closed:
			return endOf("publishing", err)
		}
	}
}

// pass passes one answer on. RabbitMQ returns a message before it confirms it, and the client library
// passes both on in their order. [rmq confirms]
func (o *outlet) pass(ctx context.Context, s sending, returned map[string]bool, closed <-chan *amqp.Error) error {
	for more := true; more; {
		select {
		case r, ok := <-o.returns:
			if !ok {
				return endOf("publishing", <-closed)
			}
			note(returned, r)
		default:
			more = false
		}
	}
	answer := result{s.item, taken}
	switch {
	case !s.confirm.Acked():
		answer.outcome = refused
	case returned[s.item.id]:
		answer.outcome = unrouted
	}
	delete(returned, s.item.id)
	select {
	case o.results <- answer:
	case <-ctx.Done():
	}
	return nil
}

func note(returned map[string]bool, r amqp.Return) {
	if id, ok := r.Headers[headerID].(string); ok {
		returned[id] = true
	}
}

// endOf says why a channel ended.
func endOf(of string, err *amqp.Error) error {
	if err == nil {
		return fmt.Errorf("%s ended: the channel was closed", of)
	}
	return fmt.Errorf("%s ended: %w", of, err)
}
