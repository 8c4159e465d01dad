//go:build !linux

package delay

import (
	"os"
	"time"
)

// lookEvery is how often the clocks are compared on systems that do not report a set clock.
const lookEvery = time.Minute

// minuteTicker stands in for a report from the system: a step is noticed within a minute.
type minuteTicker struct {
	ticker *time.Ticker
	closed chan struct{}
}

func newStepSource() (stepSource, error) {
	return &minuteTicker{ticker: time.NewTicker(lookEvery), closed: make(chan struct{})}, nil
}

func (t *minuteTicker) wait() error {
	select {
	case <-t.ticker.C:
		return nil
	case <-t.closed:
		return os.ErrClosed
	}
}

// Close makes a wait in progress return os.ErrClosed.
func (t *minuteTicker) Close() error {
	t.ticker.Stop()
	close(t.closed)
	return nil
}
