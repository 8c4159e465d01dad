package duepost

import (
	"context"
	"sync/atomic"
)

// gate holds publishers back while it is shut. Passing an open gate costs one atomic read.
type gate struct {
	now atomic.Pointer[gateState] // only set changes it, and only one goroutine calls set
}

type gateState struct {
	shut    bool
	changed chan struct{} // closed when this is not the state any more
}

func newGate() *gate {
	g := &gate{}
	g.now.Store(&gateState{changed: make(chan struct{})})
	return g
}

func (g *gate) set(shut bool) {
	old := g.now.Load()
	if old.shut == shut {
		return
	}
	g.now.Store(&gateState{shut: shut, changed: make(chan struct{})})
	close(old.changed)
}

// wait returns when the gate is open or lost is closed, else with what ended ctx.
func (g *gate) wait(ctx context.Context, lost <-chan struct{}) error {
	for {
		now := g.now.Load()
		if !now.shut {
			return nil
		}
		select {
		case <-now.changed:
		case <-lost:
			return nil // whoever uses the session finds out
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
