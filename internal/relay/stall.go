package relay

import (
	"fmt"
	"sync"
	"time"
)

const (
	// stallAfter is how long RabbitMQ may take to answer for a release, while it answers for others,
	// before what goes to the same place is held back: a queue of it is without a leader, or too slow.
	stallAfter = 3 * time.Second
	// muteAfter is how long RabbitMQ may answer nothing at all. It stops reading from a channel that
	// has published too much to a queue without a leader, so the session begins anew then.
	muteAfter = 10 * time.Second
	// setBack is for how long what cannot be released now goes back to the wheel.
	setBack = 20 * time.Second
	// mostTries is how often a message is tried again from memory.
	mostTries = 6
)

// place is where messages are released.
type place struct{ exchange, key string }

func (it *item) place() place { return place{it.dueExchange(), it.key} }

// stalls are the places that do not answer. They outlive sessions.
type stalls struct {
	mu  sync.Mutex      // guards all
	all map[place]*item // with the one message that is on its way there to try, nil for none
}

// add notes that a place does not answer, and reports whether that is news.
func (s *stalls) add(p place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.all[p]; known {
		return false
	}
	if s.all == nil {
		s.all = map[place]*item{}
	}
	s.all[p] = nil
	return true
}

// admits reports whether a message may be sent to its place: to one that does not answer, one at a time.
func (s *stalls) admits(it *item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	trying, stalled := s.all[it.place()]
	if stalled && trying == nil {
		s.all[it.place()] = it
	}
	return !stalled || trying == nil || trying == it
}

// answers notes that a place has answered, and reports whether that is news.
func (s *stalls) answers(p place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.all[p]
	delete(s.all, p)
	return known
}

// begin forgets what is on its way: a new session has sent nothing.
func (s *stalls) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.all {
		s.all[p] = nil
	}
}

// lookForStalls finds places that do not answer. What is on its way there stays so, and counts no more
// towards the window.
func (w *worker) lookForStalls() error {
	now := w.s.now()
	if w.s.blocked.Load() > 0 { // all is answered once it is not
		w.heard = now
		for it := range w.flying {
			it.sentAt = now
		}
		return nil
	}
	var oldest *item
	for it := range w.flying {
		if oldest == nil || it.sentAt < oldest.sentAt {
			oldest = it
		}
		if now-it.sentAt < stallAfter.Milliseconds() || w.heard-it.sentAt < stallAfter.Milliseconds()/2 {
			continue // it is too early, or RabbitMQ answers nobody
		}
		w.stall(it)
		delete(w.flying, it)
		w.stuck++
	}
	if oldest == nil || now-max(w.heard, oldest.sentAt) < muteAfter.Milliseconds() {
		return nil
	}
	w.stall(oldest)
	return fmt.Errorf("publishing ended: RabbitMQ has answered nothing for %v", muteAfter)
}

// stall notes that the place of a message does not answer.
func (w *worker) stall(it *item) {
	if it.to == release && w.s.r.stalls.add(it.place()) {
		w.s.r.log.Warn("no answer for what is released", "exchange", it.dueExchange(), "key", it.key)
	}
}

// isSetBack reports whether a message that is due goes back to the wheel for a while, so that it is not
// kept in memory until its place takes it.
func (w *worker) isSetBack(it *item) bool {
	return it.tries >= mostTries || !w.s.r.stalls.admits(it)
}
