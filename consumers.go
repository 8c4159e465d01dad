package duepost

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// consumers is the connection over which a client consumes, made by the first consumer, and who
// consumes over it.
type consumers struct {
	newLink func() *link
	ctx     context.Context // ends when the client closes
	stop    context.CancelFunc

	mu      sync.Mutex // held while the connection is made, so that the others wait for it
	link    *link      // nil before the first consumer; guarded by mu
	closed  bool       // guarded by mu
	running sync.WaitGroup
}

func (cs *consumers) init(newLink func() *link) {
	cs.newLink = newLink
	cs.ctx, cs.stop = context.WithCancel(context.Background())
}

// begin registers a consumer. Its context ends with ctx and when the client closes; end must be
// called when it has ended.
func (cs *consumers) begin(ctx context.Context) (consuming context.Context, end func(), err error) {
	consuming, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(cs.ctx, cancel)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if err := cs.connectLocked(consuming); err != nil {
		unhook()
		cancel()
		return nil, nil, err
	}
	cs.running.Add(1)
	return consuming, func() { unhook(); cancel(); cs.running.Done() }, nil
}

func (cs *consumers) connectLocked(ctx context.Context) error {
	if cs.closed || cs.ctx.Err() != nil {
		return ErrClosed
	}
	if cs.link != nil {
		return nil
	}
	l := cs.newLink()
	if err := l.open(ctx); err != nil {
		return fmt.Errorf("connect to consume: %w", err)
	}
	cs.link = l
	return nil
}

// drain stops all consumers and waits for them.
func (cs *consumers) drain(timeout time.Duration) error {
	cs.stop() // also who is about to connect, with the lock
	cs.mu.Lock()
	cs.closed = true
	cs.mu.Unlock()
	done := make(chan struct{})
	go func() { cs.running.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-time.After(timeout):
		return ErrHandlersRunning
	}
}

// close closes the connection.
func (cs *consumers) close() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.link != nil {
		cs.link.close()
	}
}
