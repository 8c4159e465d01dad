package broker

import "github.com/duepost/duepost/internal/delay"

// How messages expire. A queue with one TTL expires in queue order, so only its head is looked
// at. A message with a TTL of its own is in a heap by the end of its time. A TTL of 0 is offered
// to consumers once and expires if none takes it. A held message does not expire; when it comes
// back, it does so at once if its time has ended. One alarm per queue is set for the earliest
// end; it goes off, and the worker runs the dispatch.

// clockSlack is how many milliseconds messages may be out of order in one queue: publishers
// read the clock before they push. What is further out of order tells of a clock set back.
const clockSlack = 1000

// expireLocked takes out what has expired, as much as fits into one round.
func (q *Queue) expireLocked(d *dispatch, s *queueSettings) {
	now := q.broker.nowMillis()
	for len(q.expires) > 0 && q.expires[0].at <= now && len(d.expired) < claimBatch {
		pos := q.expires[0].pos &^ byQueueTTL
		if q.index.isPaged(pos) {
			d.miss(pos)
			return
		}
		q.expires.pop()
		e := q.index.at(pos)
		switch {
		case e == nil: // settled before
		case q.index.isHeld(pos):
			e.set(flagOverdue)
		default:
			q.index.hold(pos)
			d.expired = append(d.expired, pos)
		}
	}
	if s.ttl < 0 {
		return
	}
	for len(d.expired) < claimBatch {
		pos, ok := q.index.longestReady()
		if !ok {
			return
		}
		if q.index.isPaged(pos) {
			d.miss(pos)
			return
		}
		e := q.index.at(pos)
		if e.has(flagZeroTTL) || e.arrivedMillis()+s.ttl > now {
			return
		}
		q.index.hold(pos)
		d.expired = append(d.expired, pos)
	}
}

// expireZeroLocked takes out the messages with a TTL of 0 that nobody took.
func (q *Queue) expireZeroLocked(d *dispatch) {
	for i, pos := range q.zero {
		if q.index.isPaged(pos) {
			d.miss(pos)
			q.zero = append(q.zero[:0], q.zero[i:]...)
			return
		}
		if q.index.isLive(pos) && !q.index.isHeld(pos) {
			q.index.hold(pos)
			d.expired = append(d.expired, pos)
		}
	}
	q.zero = q.zero[:0]
}

// noteArrivalLocked arranges for the end of a new message's time.
func (q *Queue) noteArrivalLocked(pos uint64, e *entry, ttl int64, s *queueSettings) {
	arrived := e.arrivedMillis()
	if ttl == 0 || s.ttl == 0 {
		e.set(flagZeroTTL)
		q.zero = append(q.zero, pos)
		return
	}
	if ttl > 0 {
		q.noteExpiryLocked(pos, arrived+ttl)
	}
	if s.ttl < 0 {
		return
	}
	if arrived < q.newest-clockSlack { // it would be stuck behind messages of a later hour
		q.noteDisorderLocked(pos, arrived+s.ttl)
	}
	q.newest = max(q.newest, arrived)
	q.armForLocked(arrived + s.ttl)
}

// noteDisorderLocked arranges for the end of a message's time that the queue's order would make
// too late.
func (q *Queue) noteDisorderLocked(pos uint64, at int64) {
	q.disordered = true
	q.noteExpiryLocked(pos|byQueueTTL, at)
}

// noteReturnLocked arranges for the end of a message's time that comes back to its place.
func (q *Queue) noteReturnLocked(pos uint64, e *entry) {
	if e.has(flagOverdue | flagZeroTTL) {
		e.clear(flagOverdue | flagZeroTTL)
		q.noteExpiryLocked(pos, 0)
	}
}

// hasOverdueLocked reports whether a ready message's time has, or may have, ended.
func (q *Queue) hasOverdueLocked(s *queueSettings) bool {
	if s.ttl < 0 && len(q.expires) == 0 {
		return false
	}
	now := q.broker.nowMillis()
	if len(q.expires) > 0 && q.expires[0].at <= now {
		return true
	}
	pos, ok := q.index.longestReady()
	return ok && s.ttl >= 0 && (q.index.isPaged(pos) || q.index.at(pos).arrivedMillis()+s.ttl <= now)
}

// trimExpiriesLocked takes out of the heap what was settled before its time, once that is half as
// much as there is in the queue. So a message with a TTL costs at most 24 bytes besides its entry,
// and 30 with what append keeps in reserve. Spread over what was settled it costs O(1).
func (q *Queue) trimExpiriesLocked() {
	n := q.index.ready + q.index.held
	if len(q.expires) > n+n/2+blockSize {
		q.expires.keep(q.index.isLive)
	}
}

// noteExpiryLocked puts a message into the heap.
func (q *Queue) noteExpiryLocked(pos uint64, at int64) {
	q.trimExpiriesLocked()
	q.expires.push(expiry{at: at, pos: pos})
	q.armForLocked(at)
}

// armLocked sets the alarm for the next thing that ends by itself: a message or the queue.
func (q *Queue) armLocked() {
	s := q.settings.Load()
	if len(q.expires) > 0 {
		q.armForLocked(q.expires[0].at)
	}
	if s.ttl >= 0 {
		if pos, ok := q.index.longestReady(); ok && !q.index.isPaged(pos) {
			q.armForLocked(q.index.at(pos).arrivedMillis() + s.ttl)
		} else if ok {
			q.armForLocked(q.loadRetry)
		}
	}
	if s.expires >= 0 && len(q.consumers) == 0 {
		q.armForLocked(q.lastUsed + s.expires)
	}
	if len(q.retries) > 0 {
		q.armForLocked(q.retries[0].at)
	}
	if len(q.stuck) > 0 {
		q.armForLocked(q.stuckUntil)
	}
	if q.loadRetry != 0 {
		q.armForLocked(q.loadRetry)
	}
}

// armForLocked makes sure that the alarm goes off at the given instant or before. Too early
// does no harm: then it is set anew.
func (q *Queue) armForLocked(at int64) {
	if q.deleted || q.armedAt != 0 && q.armedAt <= at {
		return
	}
	if q.alarm == nil {
		q.alarm = q.broker.alarms.New(q.onAlarm)
	}
	q.armedAt = max(at, 1)
	q.alarm.Set(at)
}

// onAlarm hands the queue to the worker. It runs on the alarms' goroutine.
func (q *Queue) onAlarm(int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armedAt = 0
	if q.deleted {
		return
	}
	if q.dispatching {
		return // whoever dispatches looks at the time and sets the alarm when it ends
	}
	q.dispatching = true
	q.broker.worker.add(q)
}

// touchLocked says that the queue is in use [rmq x-expires].
func (q *Queue) touchLocked() {
	s := q.settings.Load()
	if s.expires < 0 {
		return
	}
	q.lastUsed = q.broker.nowMillis()
	if len(q.consumers) == 0 {
		q.armForLocked(q.lastUsed + s.expires)
	}
}

// touch is touchLocked for those who do not hold the lock.
func (q *Queue) touch() {
	if q.settings.Load().expires < 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.touchLocked()
}

// hasExpired reports whether the queue is not used and has not been for its x-expires.
func (q *Queue) hasExpired(now int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.settings.Load()
	return !q.deleted && s.expires >= 0 && len(q.consumers) == 0 && now >= q.lastUsed+s.expires
}

// nowMillis is the wall clock, rounded down: what is due or has ended by it really is or has.
func (b *Broker) nowMillis() int64 { return b.clock.Now().UnixMilli() }

// arrivalMillis is the wall clock, rounded up: no delay and no time to live that counts from it
// ends too early.
func (b *Broker) arrivalMillis() int64 { return delay.CeilMillis(b.clock.Now()) }
