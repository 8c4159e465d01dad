package ladder

import (
	"context"
	"fmt"
	"time"

	"github.com/duepost/duepost"
)

// Step is one look at an item and what came of it.
type Step struct {
	// ID is the item.
	ID string
	// N counts the steps of the item, 1 for the first.
	N int
	// Began is when the item began, and Deadline when its time is up.
	Began, Deadline time.Time
	// Due is when the step was to be, and Received when its message came.
	Due, Received time.Time
	// Outcome is what came of it.
	Outcome Outcome
	// Next is when the item is looked at next; zero if never, and if the broker decides, as after
	// a failure at the deadline.
	Next time.Time
	// Err is why it failed.
	Err error
}

// Lateness is how long after Due the message came.
func (s Step) Lateness() time.Duration { return max(s.Received.Sub(s.Due), 0) }

// Outcome is what came of a step.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"    // Check said so
	NotYet  Outcome = "not yet" // Check said so, and there is time left
	Failed  Outcome = "failed"  // Check or Expire failed, or the broker did not take the next step
	Expired Outcome = "expired" // Expire returned nil
)

// step handles a message.
func (l *Ladder) step(ctx context.Context, d *duepost.Delivery) error {
	text, _ := d.Headers[header].(string)
	p, err := parsePosition(text)
	if err != nil {
		return duepost.Park(err.Error())
	}
	s := Step{
		ID: string(d.Body), N: p.n, Began: p.began, Deadline: p.deadline(), Due: p.due(), Received: d.Received,
	}
	if early := p.due().Sub(d.Received); early > 0 {
		// The broker's clock is ahead, or somebody did not want to wait. Expire must.
		return l.send(ctx, s.ID, p)
	}
	err = l.take(ctx, &s, p, d.Attempt)
	if l.o.OnStep != nil {
		l.o.OnStep(s)
	}
	return err
}

// take looks at an item and does what is to be done. It completes s.
func (l *Ladder) take(ctx context.Context, s *Step, p position, attempt int) error {
	done, err := l.check(ctx, s.ID)
	switch {
	case err != nil && p.isLast():
		return s.failed(err)
	case err != nil:
		return l.again(ctx, s, p, attempt, err)
	case done:
		s.Outcome = Done
		return nil
	case p.isLast():
		if err := l.o.Expire(ctx, s.ID); err != nil {
			return s.failed(fmt.Errorf("expire: %w", err))
		}
		s.Outcome = Expired
		return nil
	}
	s.Outcome = NotYet
	return l.climb(ctx, s, p)
}

// climb sends the next step.
func (l *Ladder) climb(ctx context.Context, s *Step, p position) error {
	next := p.next(l.o.Now().Sub(p.began))
	if err := l.send(ctx, s.ID, next); err != nil {
		return s.failed(err)
	}
	s.Next = next.due()
	return nil
}

// again deals with a Check that failed before the deadline: it is tried again after a pause, or
// with the next step if that comes first. So it is never parked, and never moves the deadline.
func (l *Ladder) again(ctx context.Context, s *Step, p position, attempt int, cause error) error {
	l.log.Warn("check", "id", s.ID, "n", p.n, "err", cause)
	retry := l.o.Consumer.Retry
	pause := retry.Backoff.First << min(attempt-1, 20)
	now := l.o.Now()
	next := p.next(now.Sub(p.began))
	if attempt < retry.Attempts && now.Add(pause).Before(next.due()) {
		s.Next = now.Add(pause)
		return fmt.Errorf("%w (%w)", s.failed(cause), duepost.RetryAfter(pause))
	}
	if err := l.climb(ctx, s, p); err != nil {
		return err
	}
	s.Outcome, s.Err = Failed, cause
	return nil
}

// failed notes that a step failed.
func (s *Step) failed(err error) error {
	s.Outcome, s.Err = Failed, err
	return err
}
