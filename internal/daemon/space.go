package daemon

import "sync/atomic"

// blocker is the part of the server that holds publishers back.
type blocker interface {
	Block(reason string)
	Unblock()
}

// spaceWatch carries the store's word that the disk is full, or no longer, to the server. The
// store calls set from inside, where it may not be kept waiting, so a goroutine of its own does
// the telling.
type spaceWatch struct {
	full    atomic.Bool
	stopped atomic.Bool
	changed chan struct{} // holds one signal
}

// set notes the state. It may be called before there is a server.
func (w *spaceWatch) set(full bool) {
	w.full.Store(full)
	w.signal()
}

func (w *spaceWatch) stop() {
	w.stopped.Store(true)
	w.signal()
}

func (w *spaceWatch) signal() {
	select {
	case w.changed <- struct{}{}:
	default: // a signal waits already; the state is read after it
	}
}

// watch tells b until stop.
func (w *spaceWatch) watch(b blocker) {
	blocked := false
	for range w.changed {
		if w.stopped.Load() {
			return
		}
		full := w.full.Load()
		switch {
		case full && !blocked:
			b.Block("low on disk")
		case !full && blocked:
			b.Unblock()
		}
		blocked = full
	}
}
