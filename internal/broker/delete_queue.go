package broker

import (
	"errors"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// QueueDelete deletes a queue with its messages, which are not dead-lettered, and returns how
// many were ready. One that does not exist is deleted already. [amqp queue.delete]
func (s *Session) QueueDelete(name string, ifUnused, ifEmpty bool) (messages int, err error) {
	name = cleanName(name)
	if err := s.checkQueue(s.rights.MayConfigure, name); err != nil {
		return 0, err
	}
	q := s.vhost.queue(name)
	if q == nil {
		return 0, nil
	}
	if err := q.checkAccess(s); err != nil {
		return 0, err
	}
	n, lsn, err := s.vhost.deleteQueue(q, func() error {
		switch {
		case ifUnused && len(q.consumers) > 0:
			return amqp.Errorf(amqp.PreconditionFailed, "%s in use", q)
		case ifEmpty && q.index.ready > 0:
			return amqp.Errorf(amqp.PreconditionFailed, "%s not empty", q)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, s.broker.wait(lsn)
}

// QueuePurge takes all ready messages out of a queue and returns how many they were.
// [amqp queue.purge]
func (s *Session) QueuePurge(name string) (messages int, err error) {
	q, err := s.Queue(name)
	if err != nil {
		return 0, err
	}
	messages, err = q.purge()
	if err != nil || messages == 0 || !q.logged {
		return messages, err
	}
	lsn, err := s.broker.ids.mark()
	if err != nil {
		return messages, s.broker.waited(err)
	}
	return messages, s.broker.wait(lsn)
}

// errStays is what a condition answers when the queue is to stay and nobody is to hear of it.
var errStays = errors.New("delete queue: it stays")

// deleteUnusedQueue deletes an auto-delete queue that has lost its last consumer.
func (v *VHost) deleteUnusedQueue(q *Queue) error {
	_, _, err := v.deleteQueue(q, func() error {
		if len(q.consumers) > 0 {
			return errStays
		}
		return nil
	})
	return ignoreStays(err)
}

// deleteExpiredQueue deletes a queue that was not used for its x-expires.
func (v *VHost) deleteExpiredQueue(q *Queue) error {
	_, _, err := v.deleteQueue(q, func() error {
		s := q.settings.Load()
		if len(q.consumers) > 0 || v.broker.nowMillis() < q.lastUsed+s.expires {
			return errStays
		}
		return nil
	})
	if err == nil {
		v.broker.counters.expiredQueues.Add(1)
		v.broker.log.Info("queue deleted: nobody used it", "vhost", v.name, "queue", q.name)
	}
	return ignoreStays(err)
}

func ignoreStays(err error) error {
	if errors.Is(err, errStays) {
		return nil
	}
	return err
}

// deleteQueue deletes a queue unless the condition, asked under the queue's lock, says why not.
func (v *VHost) deleteQueue(
	q *Queue, refuse func() error,
) (messages int, lsn store.LSN, err error) {
	v.mu.Lock()
	if v.queues[q.name] != q {
		v.mu.Unlock()
		return 0, 0, nil
	}
	consumers, ready, err := q.close(refuse)
	if err != nil {
		v.mu.Unlock()
		return 0, 0, err
	}
	var c change
	c.removeQueue(q)
	lsn, err = v.applyLocked(&c)
	v.mu.Unlock()

	q.dropAll()
	for _, consumer := range consumers {
		consumer.receiver.Cancelled()
	}
	return ready, lsn, err
}

// close makes the queue take and give nothing any more, unless refuse says why not. It returns
// the consumers it had and how many messages were ready.
func (q *Queue) close(refuse func() error) (consumers []*Consumer, ready int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := refuse(); err != nil {
		return nil, 0, err
	}
	q.deleted = true
	consumers, q.consumers, q.active, q.sole = q.consumers, nil, nil, nil
	for _, c := range consumers {
		c.gone = true
	}
	if q.alarm != nil {
		q.alarm.Clear()
	}
	return consumers, q.index.ready, nil
}

// dropAll lets go of all messages of a queue that is closed and, if it was logged, dropped.
func (q *Queue) dropAll() {
	q.mu.Lock()
	was := q.index.detach()
	q.expires, q.retries, q.zero, q.stuck, q.relocated = nil, nil, nil, nil, nil
	if q.listed {
		q.broker.pager.remove(q)
	}
	q.mu.Unlock()
	for i := range was {
		q.dropIndex(&was[i])
	}
}

// dropIndex lets go of all messages in an index that the queue has not got any more.
func (q *Queue) dropIndex(x *index) {
	unread, err := x.dissolve(func(e *entry) {
		if !e.has(flagLeaving) {
			q.broker.store.Drop(e.ref)
		}
	})
	if err != nil { // the cleaner asks about each when it comes to it
		q.broker.log.Warn("space of deleted messages comes back later: entries in the scratch file cannot be read",
			"vhost", q.vhost.name, "queue", q.name, "n", unread, "err", err)
	}
}

// Close ends the session: its exclusive queues are deleted. It is idempotent. The connection
// has cancelled its consumers and requeued what they held before.
func (s *Session) Close() {
	s.vhost.mu.Lock()
	if !s.closed {
		s.closed = true
		s.vhost.sessions--
	}
	var owned []*Queue
	for q := range s.exclusive {
		owned = append(owned, q)
	}
	s.vhost.mu.Unlock()
	for _, q := range owned {
		_, _, err := s.vhost.deleteQueue(q, func() error { return nil })
		s.broker.logIfFailed("delete exclusive queue", err)
	}
}
