package gateway

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// letter is what a pump is asked to do between two frames.
type letter struct {
	// say is written to the pump's destination first: whole frames, or nothing.
	say []byte
	// resume ends the hold of the channel.
	resume  bool
	channel uint16
}

// mailbox is how other goroutines reach the one that owns a pump. A letter wakes it, also out of
// a read, by a deadline that has passed.
type mailbox struct {
	src    net.Conn      // what the pump reads from
	signal chan struct{} // capacity 1: there is a letter
	filled atomic.Bool   // letters is not empty

	mu      sync.Mutex // guards letters, and that the deadline says whether there are any
	letters []letter
}

func newMailbox(src net.Conn) *mailbox {
	return &mailbox{src: src, signal: make(chan struct{}, 1)}
}

// post adds a letter. It does not wait and may be called by anyone.
func (m *mailbox) post(l letter) {
	m.mu.Lock()
	m.letters = append(m.letters, l)
	m.filled.Store(true)
	_ = m.src.SetReadDeadline(time.Unix(1, 0)) // of a closed socket nobody reads
	m.mu.Unlock()
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// take empties the mailbox.
func (m *mailbox) take() []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.letters
	m.letters = nil
	m.filled.Store(false)
	_ = m.src.SetReadDeadline(time.Time{})
	return all
}

// postpone lets the pump read on with letters in the box, because it is within a frame.
func (m *mailbox) postpone() {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.src.SetReadDeadline(time.Time{})
}
