package broker

import (
	"slices"

	"github.com/duepost/duepost/internal/amqp"
)

// Consume adds a consumer. It gets nothing before its first Wake. [amqp basic.consume]
func (q *Queue) Consume(spec ConsumerSpec) (*Consumer, error) {
	if err := checkConsumerArguments(q, spec.Args); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted {
		return nil, q.notFound()
	}
	if q.exclusive || spec.Exclusive && len(q.consumers) > 0 {
		return nil, amqp.Errorf(amqp.AccessRefused, "%s in exclusive use", q)
	}
	c := &Consumer{queue: q, receiver: spec.Receiver, spec: spec}
	c.starved.Store(true)
	q.consumers = append(q.consumers, c)
	q.exclusive = spec.Exclusive
	return c, nil
}

// removeConsumer is Consumer.Cancel.
func (q *Queue) removeConsumer(c *Consumer) {
	q.mu.Lock()
	i := slices.Index(q.consumers, c)
	if i < 0 {
		q.mu.Unlock()
		return
	}
	q.consumers = slices.Delete(q.consumers, i, i+1)
	q.exclusive = false // one that was exclusive was alone
	q.retireLocked(c)
	q.touchLocked()
	unused := len(q.consumers) == 0
	q.mu.Unlock()
	if unused && q.autoDelete {
		q.broker.logIfFailed("delete auto-delete queue", q.vhost.deleteUnusedQueue(q))
	}
}
