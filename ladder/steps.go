package ladder

import (
	"errors"
	"fmt"
	"iter"
	"time"
)

// maxDeadline keeps sums of two durations from overflowing; no broker delays for longer anyway.
const maxDeadline = 100 * 365 * 24 * time.Hour

// Steps says when an item is looked at. All instants are counted from when it began.
type Steps struct {
	// First is the delay of the first step. Default 1 minute.
	First time.Duration
	// Factor is what the delay grows by from step to step, at least 1. Default 2; 1 keeps it as
	// it is.
	Factor float64
	// Cap is the longest delay between two steps. 0, the default, is none.
	Cap time.Duration
	// Deadline is when the last step is, to the millisecond; the delay before it is cut. It must
	// be set.
	Deadline time.Duration
}

// Delays are the waits before each step. Their sum is the deadline. With a small Factor they may
// be very many.
func (s Steps) Delays() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		var at time.Duration
		for p := s.withDefaults().first(time.Time{}); ; p = p.next(p.at) {
			if !yield(p.at-at) || p.isLast() {
				return
			}
			at = p.at
		}
	}
}

// first is where an item begins. s is checked and complete.
func (s Steps) first(began time.Time) position {
	delay := min(s.First, s.Cap)
	return position{
		began: began, n: 1, at: min(delay, s.Deadline), delay: delay,
		factor: s.Factor, longest: s.Cap, end: s.Deadline,
	}
}

// withDefaults fills in what is not set, in whole milliseconds, rounded up.
func (s Steps) withDefaults() Steps {
	if s.First == 0 {
		s.First = time.Minute
	}
	if s.Factor == 0 {
		s.Factor = 2
	}
	if s.Cap == 0 || s.Cap > s.Deadline {
		s.Cap = s.Deadline
	}
	s.First, s.Cap, s.Deadline = ceil(s.First), ceil(s.Cap), ceil(s.Deadline)
	return s
}

func (s Steps) check() error {
	refuse := func(wrong bool, format string, a ...any) error {
		if !wrong {
			return nil
		}
		return fmt.Errorf(format, a...)
	}
	return errors.Join(
		refuse(s.First <= 0, "first delay is %v, must be positive", s.First),
		refuse(!(s.Factor >= 1), "factor is %v, must be at least 1", s.Factor), // NaN is not
		refuse(s.Cap <= 0, "cap is %v, must be positive", s.Cap),
		refuse(s.Deadline <= 0 || s.Deadline > maxDeadline, "deadline is %v, must be positive and at most %v", s.Deadline, maxDeadline),
	)
}

// ceil is d in whole milliseconds, so that nothing is early.
func ceil(d time.Duration) time.Duration {
	if part := d % time.Millisecond; part > 0 {
		d += time.Millisecond - part
	}
	return d
}
