package shop

import "sync"

// changes tells those who watch that something may be different.
type changes struct {
	mu   sync.Mutex    // guards next
	next chan struct{} // closed by the next change; nil if nobody waits
}

// signal tells all who wait.
func (c *changes) signal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

func (c *changes) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// Changed returns what is closed when something has changed that this process did.
func (s *Shop) Changed() <-chan struct{} { return s.changes.wait() }
