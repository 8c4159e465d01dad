package server

import "github.com/duepost/duepost/internal/broker"

// source is where unacknowledged deliveries of a channel came from: a consumer,
// or basic.get on a queue. The window refers to it by number, which keeps
// pointers out of the window.
type source struct {
	number   int32
	queue    *broker.Queue
	consumer *consumer // nil for basic.get

	// Guarded by the channel's mu.
	unacked int  // entries of the window that refer to it
	gone    bool // its consumer ended: free once nothing refers to it

	positions []uint64 // the reader's: settled as channel.how says, not passed on yet
}

// addSource finds a number for a source. The caller holds ch.mu.
func (ch *channel) addSource(s *source) {
	for i, o := range ch.sources {
		if o == nil {
			s.number = int32(i)
			ch.sources[i] = s
			return
		}
	}
	s.number = int32(len(ch.sources))
	ch.sources = append(ch.sources, s)
}

// getSource returns the source of what basic.get takes from a queue. The caller
// holds ch.mu.
func (ch *channel) getSource(q *broker.Queue) *source {
	for _, s := range ch.sources {
		if s != nil && s.consumer == nil && s.queue == q {
			return s
		}
	}
	s := &source{queue: q, gone: true}
	ch.addSource(s)
	return s
}

// remember puts a delivery into the window. The caller holds ch.mu.
func (ch *channel) remember(s *source, tag, pos uint64) {
	ch.window.push(unacked{tag: tag, pos: pos, source: s.number, at: ch.c.lookedAt.Load()})
	s.unacked++
}

// forgetSource says that nothing more will come from a source. The caller holds
// ch.mu.
func (ch *channel) forgetSource(s *source) {
	if s == nil {
		return
	}
	s.gone = true
	if s.unacked == 0 {
		ch.sources[s.number] = nil
	}
}

// takeFrom accounts for an entry that left the window and returns its source.
// The caller holds ch.mu.
func (ch *channel) takeFrom(u unacked) *source {
	s := ch.sources[u.source]
	s.unacked--
	if s.gone && s.unacked == 0 {
		ch.sources[u.source] = nil
	}
	return s
}

// sourceOf returns where a delivery came from that is out of the window but not
// accounted for yet.
func (ch *channel) sourceOf(u unacked) *source {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.sources[u.source]
}
