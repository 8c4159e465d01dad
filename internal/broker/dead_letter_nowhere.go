package broker

// What becomes of dead letters that nobody takes: their exchange is not there, it leads nowhere, or
// what it leads to is full. They are dropped and counted, unless the queue's settings say that they
// are parked or stay. [rmq dead-letter-strategy]

// waitsForTargets reports whether a dead letter that is not taken stays in the queue and is tried
// again. What is too much for the queue does not: its limit would be none.
// [rmq dead-letter-strategy]
func (q *Queue) waitsForTargets(s *queueSettings, reason deathReason) bool {
	return s.atLeastOnce && q.logged && reason != maxLen
}

// addUnroutable decides about a dead letter that nobody is there to take, and reports false if it
// is to stay.
func (l *deadLetterer) addUnroutable() bool {
	q := l.queue
	if l.settings.parksUnroutable {
		if l.park() {
			return true
		}
		if l.reason != maxLen {
			return false
		}
	}
	if q.waitsForTargets(l.settings, l.reason) {
		return false
	}
	if l.exchange == nil {
		q.noteNoDLX(l.settings.dlx, 1)
		return true
	}
	l.broker.counters.deadDropped.Add(1)
	return true
}

// park puts l.message into the group for the parking queue, if that has room.
func (l *deadLetterer) park() bool {
	parking, err := l.queue.vhost.parkingQueue(reasonDeadLetter)
	if err != nil || parking.Messages()+l.parked >= l.broker.limits.MaxParked {
		l.broker.logIfFailed("park dead letter", err)
		return false
	}
	l.parked++
	l.message.Persistent = true
	l.broker.logIfFailed("park dead letter", l.group.enqueue(&l.message, []*Queue{parking}))
	l.broker.counters.deadParked.Add(1)
	if !l.queue.undeliverable.Swap(true) {
		l.broker.log.Warn("dead letters parked: nobody takes them", "vhost", l.queue.vhost.name,
			"queue", l.queue.name, "exchange", l.settings.dlx)
	}
	return true
}

// noteNoDLX counts messages whose dead-letter exchange does not exist and logs it once.
func (q *Queue) noteNoDLX(dlx string, n int) {
	q.broker.counters.deadDropped.Add(uint64(n))
	if !q.undeliverable.Swap(true) {
		q.broker.log.Warn("dead letters dropped: no such exchange",
			"vhost", q.vhost.name, "queue", q.name, "exchange", dlx)
	}
}

// noteWaiting logs once that dead letters of the queue stay until somebody takes them.
func (q *Queue) noteWaiting(dlx string) {
	if !q.undeliverable.Swap(true) {
		q.broker.log.Warn("dead letters wait: nobody takes them",
			"vhost", q.vhost.name, "queue", q.name, "exchange", dlx)
	}
}
