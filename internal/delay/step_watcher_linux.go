package delay

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timerFD is a timer on the wall clock that is set for the far future and never meant to run
// out: the kernel cancels it when the wall clock jumps, and the read that waits on it says so
// (TFD_TIMER_CANCEL_ON_SET). The runtime's poller does the waiting, so no thread is held.
type timerFD struct {
	file *os.File
}

// farFuture is when the timer would run out, which would do no harm.
const farFuture = 100 * 365 * 24 * time.Hour

func newStepSource() (stepSource, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create clock timer: %w", err)
	}
	t := &timerFD{file: os.NewFile(uintptr(fd), "timerfd")}
	if err := t.arm(fd); err != nil {
		return nil, errors.Join(fmt.Errorf("arm clock timer: %w", err), t.file.Close())
	}
	return t, nil
}

func (t *timerFD) arm(fd int) error {
	at := unix.NsecToTimespec(time.Now().Add(farFuture).UnixNano())
	return unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET,
		&unix.ItimerSpec{Value: at}, nil)
}

// wait returns nil at each jump. The kernel keeps the timer armed and goes on watching after
// it has reported a jump, so there is nothing to set again.
func (t *timerFD) wait() error {
	var expirations [8]byte
	_, err := t.file.Read(expirations[:])
	if errors.Is(err, unix.ECANCELED) {
		return nil
	}
	return err
}

// Close makes a wait in progress return os.ErrClosed.
func (t *timerFD) Close() error { return t.file.Close() }
