package once

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lease is the right to work on a key for a while.
type Lease struct {
	// Key is what was given to [Do].
	Key string
	// Fence grows with every lease of this key while its record is kept. A resource that remembers the
	// highest it has seen can refuse one who was held up and does not know that he has lost his
	// lease.
	Fence int64
	// Holder names this one lease among all.
	Holder string
}

// Claim is the answer to somebody who wants to work on a key: one of three.
type Claim struct {
	// Done: the work was done.
	Done bool
	// Busy is how long the lease of another lasts if it is not renewed; 0 if nobody has one.
	Busy time.Duration
	// Lease is granted if the work is not Done and nobody is Busy with it.
	Lease Lease
}

// Leases keeps leases and records. Its clock decides, not those of the callers. All methods
// may be called concurrently, and none waits for a lease to end.
type Leases interface {
	// Claim grants a lease for key, or says why not.
	Claim(ctx context.Context, key string, lease time.Duration) (Claim, error)
	// Renew lets l last for lease from now, and reports whether l was still the last one
	// granted for its key.
	Renew(ctx context.Context, l Lease, lease time.Duration) (held bool, err error)
	// Finish ends l and records its key as done for keep, and reports whether l was still the
	// last one granted; else it records nothing.
	Finish(ctx context.Context, l Lease, keep time.Duration) (held bool, err error)
	// Release ends l, so that the next Claim is granted. Nothing happens if it was not the last.
	Release(ctx context.Context, l Lease) error
}

// NewLeased returns a store over l, which does the waiting and renews leases.
func NewLeased(l Leases, o Options) (Store[Lease], error) {
	o, err := o.withDefaults("leased")
	if err != nil {
		return nil, fmt.Errorf("make store: %w", err)
	}
	return &leased{leases: l, o: o}, nil
}

// leased is a store whose records are apart from the work.
type leased struct {
	leases Leases
	o      Options
}

// Once is as [Store] says. The context of work ends with the cause [ErrLeaseLost] when the lease
// could not be renewed.
func (s *leased) Once(ctx context.Context, key string, work func(context.Context, Lease) error) error {
	lease, done, err := s.claim(ctx, key)
	if err != nil || done {
		return err
	}
	finished := false
	defer func() { // also when work panics
		if !finished {
			s.release(ctx, lease)
		}
	}()
	if err := s.hold(ctx, lease, work); err != nil {
		return err
	}
	held, err := s.leases.Finish(ctx, lease, s.o.Keep)
	if err != nil {
		finished = true // perhaps; if not, the lease lapses
		return fmt.Errorf("record key as done: %w", err)
	}
	finished = held
	if !held {
		return ErrLeaseLost
	}
	return nil
}

// release gives a lease back, also when ctx has ended. If that cannot be, it lapses.
func (s *leased) release(ctx context.Context, l Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(s.o.Lease, 5*time.Second))
	defer cancel()
	_ = s.leases.Release(ctx, l)
}

// claim waits until it has a lease or the work is done. The stores have nobody who
// would call it, so it asks again, soon at first.
func (s *leased) claim(ctx context.Context, key string) (l Lease, done bool, err error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		c, err := s.leases.Claim(ctx, key, s.o.Lease)
		switch {
		case err != nil:
			return l, false, fmt.Errorf("claim key: %w", err)
		case c.Done || c.Busy <= 0:
			return c.Lease, c.Done, nil
		case s.o.Duplicates == Skip:
			return l, false, ErrBusy
		}
		select {
		case <-ctx.Done():
			return l, false, fmt.Errorf("wait for key: %w", context.Cause(ctx))
		case <-time.After(min(pause, c.Busy)):
		}
	}
}

// hold runs work while it renews the lease.
func (s *leased) hold(ctx context.Context, l Lease, work func(context.Context, Lease) error) error {
	ctx, lose := context.WithCancelCause(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if s.renew(ctx, l) {
			lose(ErrLeaseLost)
		}
	}()
	defer func() { lose(nil); <-stopped }()
	err := work(ctx, l)
	if err != nil && errors.Is(context.Cause(ctx), ErrLeaseLost) {
		return fmt.Errorf("%w: %w", ErrLeaseLost, err)
	}
	return err
}

// renew keeps the lease until ctx ends, and reports whether it was lost before. A store
// that does not answer counts as lost when the lease has lapsed.
func (s *leased) renew(ctx context.Context, l Lease) (lost bool) {
	every := time.NewTicker(s.o.Lease / 3)
	defer every.Stop()
	lapses := time.Now().Add(s.o.Lease)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-every.C:
		}
		asked := time.Now()
		try, cancel := context.WithDeadline(ctx, lapses)
		held, err := s.leases.Renew(try, l, s.o.Lease)
		cancel()
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil && !held, err != nil && !time.Now().Before(lapses):
			return true
		case err == nil:
			lapses = asked.Add(s.o.Lease)
		}
	}
}
