package duepost

import (
	"context"
	"sync/atomic"
)

// gate holds publishers back while it is shut. The zero value is open. Passing an open gate
// costs one atomic read.
type gate struct {
	// shut is nil while the gate is open, else closed when it opens. Only set changes it, and
	// only one goroutine calls set.
	shut atomic.Pointer[chan struct{}]
}

func (g *gate) set(shut bool) {
	old := g.shut.Load()
	switch {
	case shut && old == nil:
		ch := make(chan struct{})
		g.shut.Store(&ch)
	case !shut && old != nil:
		g.shut.Store(nil)
		close(*old)
	}
}

// wait returns when the gate is open or lost is closed, else with what ended ctx.
func (g *gate) wait(ctx context.Context, lost <-chan struct{}) error {
	for {
		shut := g.shut.Load()
		if shut == nil {
			return nil
		}
		select {
		case <-*shut:
		case <-lost:
			return nil // whoever uses the session finds out
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
