package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/duepost/duepost"
)

// Publisher publishes messages; a *duepost.Client is one.
type Publisher interface {
	// Publish returns nil when the broker has confirmed m, and ends when ctx does. It is called
	// concurrently.
	Publish(ctx context.Context, m duepost.Message) (duepost.Receipt, error)
}

// longestPause is between two rounds when something goes wrong for long: soon after it ends,
// what has gathered is sent.
const longestPause = 10 * time.Second

// Relay publishes what is added until ctx ends, and then returns nil. It may run in any number
// of processes. Faults of the database and the broker are logged and tried again, with pauses
// that grow up to ten seconds, or to [Options.Interval] where that is longer.
func (o *Outbox) Relay(ctx context.Context, p Publisher) error {
	if p == nil {
		return fmt.Errorf("relay: publisher is nil: %w", ErrInvalid)
	}
	pause, purge := o.o.Interval, time.Now()
	for ctx.Err() == nil {
		n, err := o.RelayOnce(ctx, p)
		if err == nil && !time.Now().Before(purge) {
			_, err = o.Purge(ctx)
			purge = time.Now().Add(max(time.Minute, o.o.Keep/24))
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			o.log.Warn("relay failed", "err", err, "next", pause)
			o.rest(ctx, pause, nil)
			pause = min(2*pause, max(o.o.Interval, longestPause))
			continue
		case n == 0:
			o.rest(ctx, o.o.Interval, o.wake)
		}
		pause = o.o.Interval
	}
	return nil
}

// rest waits for d, the end of ctx or a call.
func (o *Outbox) rest(ctx context.Context, d time.Duration, call <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-call:
	}
}

// RelayOnce publishes one batch of what is ready and says how many rows it has taken: 0 if there
// was nothing to do. An error is of the database, or of a broker that is away; what it held
// back is ready again.
func (o *Outbox) RelayOnce(ctx context.Context, p Publisher) (taken int, err error) {
	rows, err := o.claim(ctx)
	if err != nil {
		return 0, fmt.Errorf("claim rows: %w", err)
	}
	if len(rows) == 0 {
		return 0, nil
	}
	err = o.settle(ctx, rows, o.publish(ctx, p, rows))
	return len(rows), err
}

// publish publishes the rows, many at a time, and returns an error for each. It ends well before
// the lease does.
func (o *Outbox) publish(ctx context.Context, p Publisher, rows []row) []error {
	ctx, cancel := context.WithTimeout(ctx, o.o.Lease/2)
	defer cancel()
	errs := make([]error, len(rows))
	var all sync.WaitGroup
	for i := range rows {
		all.Go(func() {
			m, err := decode(rows[i].message, rows[i].body)
			if err != nil {
				errs[i] = fmt.Errorf("%w: %w", ErrInvalid, err)
				return
			}
			_, errs[i] = p.Publish(ctx, m)
		})
	}
	all.Wait()
	return errs
}

// settle writes down what became of the rows. It does so also when ctx has ended: a confirm
// that is not written down is a message that comes twice.
func (o *Outbox) settle(ctx context.Context, rows []row, errs []error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.o.Lease/4)
	defer cancel()
	var confirmed, heldBack []row
	var away error
	var all []error
	for i, r := range rows {
		switch err := errs[i]; {
		case err == nil:
			confirmed = append(confirmed, r)
		case isFault(err):
			all = append(all, o.blame(ctx, r, err))
		default:
			heldBack = append(heldBack, r)
			away = err
		}
	}
	all = append(all, o.markPublished(ctx, confirmed), o.giveBack(ctx, heldBack))
	if away != nil {
		all = append(all, fmt.Errorf("publish %d of %d rows, will be tried again: %w", len(heldBack), len(rows), away))
	}
	return errors.Join(all...)
}

// isFault reports whether it is the message that is at fault, and not the broker, which may be
// away, short of memory or closed.
func isFault(err error) bool {
	for _, fault := range []error{
		duepost.ErrInvalid, duepost.ErrNotSupported, duepost.ErrNotPermitted,
		duepost.ErrUnroutable, duepost.ErrUnknownExchange, duepost.ErrTooLarge,
	} {
		if errors.Is(err, fault) {
			return true
		}
	}
	return false
}

// blame counts a fault of the message and parks it if it was one too many.
func (o *Outbox) blame(ctx context.Context, r row, fault error) error {
	hopeless := errors.Is(fault, duepost.ErrInvalid) || errors.Is(fault, duepost.ErrTooLarge)
	if hopeless || r.failures+1 >= o.o.Attempts {
		o.log.Error("message parked", "id", r.messageID, "n", r.failures+1, "err", fault)
		return o.markFault(ctx, r, parked, 0, fault)
	}
	pause := min(o.o.Backoff<<min(r.failures, 20), 10*time.Minute)
	return o.markFault(ctx, r, pending, pause, fault)
}
