package broker

import "github.com/duepost/duepost/internal/policy"

// setPolicy puts into force what a policy says, nil for none, together with the arguments.
func (q *Queue) setPolicy(d policy.Definition) { q.apply(newQueueSettings(q.args, d)) }

// apply puts settings into force and does what the change makes necessary with what is in the
// queue: what is overdue by a shorter TTL expires, what is beyond a lower limit goes from the
// front, and the time of x-expires begins. The worker does it, so apply may be called under
// VHost.mu. Settings that are in force already change nothing.
//
// A message that was in the queue before it had a TTL, and whose arrival is out of order because
// the clock was set back, expires no later than those before it.
func (q *Queue) apply(s *queueSettings) {
	q.mu.Lock()
	defer q.mu.Unlock()
	old := q.settings.Load()
	if q.deleted || *old == *s {
		return
	}
	q.settings.Store(s)
	q.undeliverable.Store(false)
	if s.ttl != old.ttl {
		q.retimeLocked(old.ttl, s.ttl)
	}
	if s.expires != old.expires {
		q.touchLocked()
	}
	q.armLocked()
	if !q.dispatching {
		q.dispatching = true
		q.broker.worker.add(q)
	}
}

// retimeLocked corrects the ends of those messages in the heap that are there because of the
// queue's TTL, now that it is another.
func (q *Queue) retimeLocked(old, ttl int64) {
	if !q.disordered {
		return
	}
	kept := q.expires[:0]
	for _, x := range q.expires {
		if x.pos&byQueueTTL == 0 {
			kept = append(kept, x)
			continue
		}
		if ttl >= 0 && q.index.isLive(x.pos&^byQueueTTL) {
			kept = append(kept, expiry{at: x.at - old + ttl, pos: x.pos})
		}
	}
	q.expires = kept
	q.expires.order()
}
