package delay

import (
	"errors"
	"log/slog"
	"os"
)

// StepWatcher calls [Alarms.Recheck] at the moment the machine's clock is set or the machine
// wakes from sleep. Without it Alarms notices a step at its next wake or Set, which after a
// step forward may be as late as the step is long.
//
// It is a part of its own because it listens to the machine: tests that bring their own clock
// do without it.
type StepWatcher struct {
	alarms *Alarms
	log    *slog.Logger
	source stepSource
	done   chan struct{}
}

// stepSource is the operating system's side. wait blocks until the clock may have been set
// and returns nil, or returns os.ErrClosed after Close, or why it cannot watch any longer.
type stepSource interface {
	wait() error
	Close() error
}

// NewStepWatcher returns a watcher that has not been started. A nil log discards.
func NewStepWatcher(alarms *Alarms, log *slog.Logger) *StepWatcher {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &StepWatcher{alarms: alarms, log: log.With("part", "step-watcher")}
}

// Start begins to watch. It is called once. An error means that this machine cannot tell;
// Alarms works without, and Stop is then a no-op.
func (w *StepWatcher) Start() error {
	source, err := newStepSource()
	if err != nil {
		return err
	}
	w.watch(source)
	return nil
}

// Stop ends the watch and waits for its goroutine.
func (w *StepWatcher) Stop() {
	if w.source == nil {
		return
	}
	if err := w.source.Close(); err != nil {
		w.log.Warn("clock watch not closed", "err", err)
	}
	<-w.done
}

func (w *StepWatcher) watch(source stepSource) {
	w.source = source
	w.done = make(chan struct{})
	go w.run()
}

func (w *StepWatcher) run() {
	defer close(w.done)
	for {
		err := w.source.wait()
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			w.log.Error("clock watch ended", "err", err)
			return
		}
		w.alarms.Recheck()
	}
}
