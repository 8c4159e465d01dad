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
	exclusive := spec.Exclusive && !(q.singleActive && q.quorum)
	if q.exclusive || exclusive && (q.singleActive || len(q.consumers) > 0) {
		return nil, amqp.Errorf(amqp.AccessRefused, "%s in exclusive use", q)
	}
	c := &Consumer{queue: q, receiver: spec.Receiver, spec: spec}
	c.priority, _ = amqp.AsInt(spec.Args[argPriority])
	c.starved.Store(true)
	q.consumers = append(q.consumers, c)
	q.exclusive = exclusive
	q.isRanked = q.isRanked || c.priority != 0
	if q.singleActive && q.sole == nil {
		q.sole = c
	}
	return c, nil
}

// activateLocked puts a consumer that may have credit among those that are asked, unless it waits
// for its turn to be the only one. [rmq single active consumer]
func (q *Queue) activateLocked(c *Consumer) {
	c.isReady = true
	if q.singleActive && c != q.sole {
		return
	}
	c.starved.Store(false)
	if !q.isRanked {
		q.active = append(q.active, c)
		return
	}
	i, _ := slices.BinarySearchFunc(q.active, c, func(a, c *Consumer) int {
		if a.priority >= c.priority {
			return -1
		}
		return 1
	})
	q.active = slices.Insert(q.active, i, c)
}

// succeedLocked makes another consumer the only active one: of those with the highest priority the
// one that has been there longest. It reports whether it may have credit.
func (q *Queue) succeedLocked() bool {
	q.sole = nil
	for _, c := range q.consumers {
		if q.sole == nil || c.priority > q.sole.priority {
			q.sole = c
		}
	}
	if q.sole == nil || !q.sole.isReady {
		return false
	}
	q.activateLocked(q.sole)
	return true
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
	if c == q.sole && q.succeedLocked() && q.index.ready > 0 && !q.dispatching {
		q.dispatchLocked()
	} else {
		q.mu.Unlock()
	}
	if unused && q.autoDelete {
		q.broker.logIfFailed("delete auto-delete queue", q.vhost.deleteUnusedQueue(q))
	}
}
