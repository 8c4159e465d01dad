package e2e

import (
	"fmt"
	"sync"
	"time"
)

// ackMargin is how old an acknowledgement must be at the moment of a crash to
// count as kept. AMQP does not confirm acks; the broker logs them with its next
// commit.
const ackMargin = 500 * time.Millisecond

// ledger is what the outside world knows about messages: which were confirmed,
// which were acknowledged, and everything that contradicts a promise.
type ledger struct {
	mu        sync.Mutex
	due       map[string]time.Time // all that was published
	confirmed map[string]bool
	acked     map[string]time.Time // when first acknowledged
	settled   map[string]bool      // acknowledged long enough before a crash
	run       map[string]bool      // delivered since the last start
	gone      map[string]bool      // cancelled, which was confirmed: it must not come
	last      time.Time            // when the last of those would have been due
	open      int                  // confirmed and not acknowledged
	faults    []string
	empty     chan struct{} // receives when nothing is open any more
}

func newLedger() *ledger {
	return &ledger{
		due: map[string]time.Time{}, confirmed: map[string]bool{}, acked: map[string]time.Time{},
		settled: map[string]bool{}, run: map[string]bool{},
		gone: map[string]bool{}, empty: make(chan struct{}, 1),
	}
}

func (l *ledger) publish(id string, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due[id] = due
}

func (l *ledger) confirm(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.confirmed[id] = true
	if l.acked[id].IsZero() {
		l.open++
	}
}

// cancel notes that a message was taken out before it was due, and that this was
// confirmed.
func (l *ledger) cancel(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone[id] = true
	if due := l.due[id]; due.After(l.last) {
		l.last = due
	}
}

// awaitCancelled waits until all that was cancelled would have come.
func (l *ledger) awaitCancelled() {
	l.mu.Lock()
	last := l.last
	l.mu.Unlock()
	<-time.After(time.Until(last) + ackMargin)
}

// deliver notes that a message came.
func (l *ledger) deliver(id string, arrived time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	due, known := l.due[id]
	switch {
	case !known:
		l.faultLocked("%s was never published", id)
	case arrived.Before(due):
		l.faultLocked("%s came %s before it was due", id, due.Sub(arrived))
	case l.gone[id]:
		l.faultLocked("%s was cancelled and came", id)
	case l.settled[id]:
		l.faultLocked("%s was acknowledged before a crash and came again", id)
	case l.run[id]:
		l.faultLocked("%s came twice without a crash between", id)
	}
	l.run[id] = true
}

func (l *ledger) faultLocked(format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// ack notes an acknowledgement that was written at that time or a little later.
func (l *ledger) ack(id string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.acked[id].IsZero() {
		return
	}
	l.acked[id] = at
	if l.confirmed[id] {
		l.open--
		l.tellLocked()
	}
}

func (l *ledger) tellLocked() {
	if l.open > 0 {
		return
	}
	select {
	case l.empty <- struct{}{}:
	default:
	}
}

// crash draws the line after a stop of the broker, which was told or killed at
// one time and gone at another. Acks of a while before must have been kept, later
// ones may have been, and those of after were never read.
func (l *ledger) crash(told, gone time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, when := range l.acked {
		switch {
		case told.Sub(when) >= ackMargin:
			l.settled[id] = true
		case when.After(gone):
			delete(l.acked, id)
			if l.confirmed[id] {
				l.open++
			}
		}
	}
	clear(l.run)
}

// awaitAll waits until every confirmed message was acknowledged, and names some
// of those that were not.
func (l *ledger) awaitAll(limit time.Duration) error {
	late := time.After(limit)
	for {
		l.mu.Lock()
		open := l.open
		l.mu.Unlock()
		if open == 0 {
			return nil
		}
		select {
		case <-l.empty:
		case <-late:
			return l.missing()
		}
	}
}

func (l *ledger) missing() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []string
	for id := range l.confirmed {
		if l.acked[id].IsZero() && len(ids) < 10 {
			ids = append(ids, fmt.Sprintf("%s, due %s ago", id, time.Since(l.due[id]).Round(time.Millisecond)))
		}
	}
	return fmt.Errorf("%d confirmed messages did not come, among them %q", l.open, ids)
}

// counts tells how much was going on.
func (l *ledger) counts() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d published, %d confirmed, %d cancelled, %d acknowledged, %d of them long enough before a crash",
		len(l.due), len(l.confirmed), len(l.gone), len(l.acked), len(l.settled))
}

// verdict is every promise that was broken, at most ten.
func (l *ledger) verdict() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.faults[:min(len(l.faults), 10)]
}
