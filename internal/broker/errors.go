package broker

import (
	"context"
	"errors"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// String names the queue as RabbitMQ does in its texts.
func (q *Queue) String() string { return nameQueue(q.name, q.vhost.name) }

func nameQueue(name, vhost string) string {
	return "queue '" + name + "' in vhost '" + vhost + "'"
}

func nameExchange(name, vhost string) string {
	return "exchange '" + name + "' in vhost '" + vhost + "'"
}

func (q *Queue) notFound() error { return queueNotFound(q.name, q.vhost.name) }

func queueNotFound(name, vhost string) error {
	return amqp.Errorf(amqp.NotFound, "no queue '%s' in vhost '%s'", name, vhost)
}

func (x *Exchange) internalRefused() error {
	return amqp.Errorf(amqp.AccessRefused, "cannot publish to internal %s", x)
}

func exchangeNotFound(name, vhost string) error {
	return amqp.Errorf(amqp.NotFound, "no exchange '%s' in vhost '%s'", name, vhost)
}

func (q *Queue) locked() error {
	return amqp.Errorf(amqp.ResourceLocked, "cannot obtain exclusive access to locked %s. "+
		"It could be originally declared on another connection or the exclusive property "+
		"value does not match that of the original declaration.", q)
}

// storeFailed makes a protocol error of what the store says. The text goes to the client, so it
// tells no details.
func storeFailed(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, store.ErrFull) {
		return amqp.Errorf(amqp.ResourceError, "no space left on the disk")
	}
	return amqp.Errorf(amqp.InternalError, "the message store does not accept changes")
}

// wait blocks until a change is on stable storage.
func (b *Broker) wait(lsn store.LSN) error {
	if lsn == 0 {
		return nil
	}
	return b.waited(b.store.Wait(context.Background(), lsn))
}

// waited logs why the store failed and returns what the client hears of it.
func (b *Broker) waited(err error) error {
	if err != nil {
		b.log.Error("store change", "err", err)
	}
	return storeFailed(err)
}

// logIfFailed is for what nobody waits for.
func (b *Broker) logIfFailed(what string, err error) {
	if err != nil {
		b.log.Error(what, "err", err)
	}
}
