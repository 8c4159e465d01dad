package ladder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/duepost/duepost"
)

// Options are the settings of a [Ladder].
type Options struct {
	// Steps says when items that begin now are looked at.
	Steps Steps

	// Check says whether an item is done, so that nothing more is to happen to it. It should
	// also say so of an item that has expired.
	Check func(ctx context.Context, id string) (done bool, err error)

	// Expire ends an item whose deadline has come and that is not done. It must change nothing if
	// that is not so any more: between Check and Expire somebody may pay.
	Expire func(ctx context.Context, id string) error

	// Consumer says how messages are handled. Its Queue must be set and belongs to this ladder
	// alone. Retry.Backoff.First is also the pause after a Check that failed before the
	// deadline; it doubles each time.
	Consumer duepost.Consumer
	// QueueType is Quorum or Classic; empty takes the default of the virtual host.
	QueueType duepost.QueueType

	// OnStep is told what came of each step, before its message is acknowledged. It must not
	// block. Default none.
	OnStep func(Step)

	// Now must be the clock of the client. Default time.Now.
	Now func() time.Time
	// Logger gets a line for each Check that failed. Nil discards.
	Logger *slog.Logger
}

// Ladder leads items through their steps. Made by [New]; its methods may be called concurrently.
type Ladder struct {
	client *duepost.Client
	o      Options
	log    *slog.Logger
}

// New declares the queue of a ladder. Every process that begins items or takes steps makes one.
func New(ctx context.Context, client *duepost.Client, o Options) (*Ladder, error) {
	o.Steps = o.Steps.withDefaults()
	if o.Consumer.Retry.Attempts == 0 {
		o.Consumer.Retry.Attempts = 10
	}
	if o.Consumer.Retry.Backoff.First == 0 {
		o.Consumer.Retry.Backoff.First = time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	err := o.Steps.check()
	if o.Check == nil || o.Expire == nil {
		err = errors.Join(err, errors.New("both Check and Expire must be set"))
	}
	if err == nil {
		queue := duepost.Queue{Name: o.Consumer.Queue, Type: o.QueueType}
		err = client.Declare(ctx, duepost.Topology{Queues: []duepost.Queue{queue}})
	}
	if err != nil {
		return nil, fmt.Errorf("make ladder %q: %w", o.Consumer.Queue, err)
	}
	return &Ladder{client: client, o: o, log: o.Logger.With("part", "ladder", "queue", o.Consumer.Queue)}, nil
}

// Begin starts the time of an item. An item that begins again, though it was not done, has a new
// deadline where the broker knows keys ([duepost.Broker]); elsewhere both deadlines come, and the
// first counts.
func (l *Ladder) Begin(ctx context.Context, id string) error {
	if _, err := l.client.Publish(ctx, l.First(id)); err != nil {
		return fmt.Errorf("begin item %q: %w", id, err)
	}
	return nil
}

// First is the message that Begin publishes, for who publishes it another way: with the transaction
// that makes the item. The time of the item begins now, not when the message is published.
func (l *Ladder) First(id string) duepost.Message {
	p := l.o.Steps.first(ceilTime(l.o.Now()))
	m := l.message(id, p)
	m.At = p.due()
	return m
}

// Finish takes out the message of an item that is done, where the broker knows keys. Nobody has to
// call it: elsewhere, and where it is not called, the next step finds out.
func (l *Ladder) Finish(ctx context.Context, id string) error {
	if !l.client.Broker().Keys {
		return nil
	}
	err := l.client.Cancel(ctx, "", l.key(id))
	if err != nil && !errors.Is(err, duepost.ErrNotPending) {
		return fmt.Errorf("finish item %q: %w", id, err)
	}
	return nil
}

// Run takes steps until ctx ends or the client is closed; what was begun is finished. It returns
// what [duepost.Client.Consume] returns.
func (l *Ladder) Run(ctx context.Context) error {
	return l.client.Consume(ctx, l.o.Consumer, l.step)
}

// message is an item's message for a step, without its delay.
func (l *Ladder) message(id string, p position) duepost.Message {
	m := duepost.Message{
		RoutingKey: l.o.Consumer.Queue, Body: []byte(id), ContentType: "text/plain",
		Headers: map[string]any{header: p.String()},
	}
	if l.client.Broker().Keys { // so that messages that came twice become one again
		m.Key = l.key(id)
	}
	return m
}

// key is that of the message of an item. Keys of all ladders of a broker meet in one exchange.
func (l *Ladder) key(id string) string { return l.o.Consumer.Queue + "/" + id }

// send publishes an item's message for a step. The delay is a duration, not an instant: a broker
// whose clock is ahead of ours would hand over an instant too early, again and again. What the
// broker may have taken is sent again: a step that comes twice does no harm.
func (l *Ladder) send(ctx context.Context, id string, p position) error {
	m := l.message(id, p)
	for {
		m.Delay = max(p.due().Sub(l.o.Now()), 0)
		_, err := l.client.Publish(ctx, m)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, duepost.ErrUnconfirmed) || ctx.Err() != nil:
			return fmt.Errorf("send step %d: %w", p.n, err)
		}
	}
}

// check is Check with panics as errors.
func (l *Ladder) check(ctx context.Context, id string) (done bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("check panicked", "id", id, "err", p, "stack", string(debug.Stack()))
			done, err = false, fmt.Errorf("check: panic: %v", p)
		}
	}()
	done, err = l.o.Check(ctx, id)
	if err != nil {
		err = fmt.Errorf("check: %w", err)
	}
	return done, err
}

// ceilTime is t in whole milliseconds, so that nothing is early.
func ceilTime(t time.Time) time.Time {
	return time.UnixMilli(t.Add(time.Millisecond - 1).UnixMilli())
}
