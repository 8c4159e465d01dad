package delay

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// stubSource is a stepSource that reports what it is told to.
type stubSource chan error

func (s stubSource) wait() error {
	err, open := <-s
	if !open {
		return os.ErrClosed
	}
	return err
}

func (s stubSource) Close() error { close(s); return nil }

func TestStepWatcherMakesAlarmsLook(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, a *Alarms, f *firings) {
		w := NewStepWatcher(a, nil)
		source := make(stubSource)
		w.watch(source)
		a.New(f.named("due")).Set(f.clock.in(time.Hour))
		f.clock.step(2 * time.Hour)
		f.expect(t)
		source <- nil
		f.expect(t, firing{"due", f.clock.in(0)})
		w.Stop()
	})
}

func TestStepWatcherEndsWhenTheSystemCannotTell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := NewStepWatcher(NewAlarms(SystemClock{}, nil), nil)
		source := make(stubSource)
		w.watch(source)
		source <- errors.New("no such clock")
		<-w.done
		w.Stop()
	})
}

// TestStepWatcherOnThisMachine starts and stops the real watcher; setting the machine's clock
// is not a test's business.
func TestStepWatcherOnThisMachine(t *testing.T) {
	t.Parallel()
	a := NewAlarms(SystemClock{}, nil)
	w := NewStepWatcher(a, nil)
	if err := w.Start(); err != nil {
		t.Fatalf("start: %v", err)
	}
	w.Stop()
	if got := a.Stats(); got.StepsForward+got.StepsBack != 0 {
		t.Errorf("steps: got %+v, want none", got)
	}
	NewStepWatcher(a, nil).Stop() // without Start
}
