package once

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// What errors.Is finds in the errors of this package.
var (
	// ErrBusy: somebody else is doing this work just now, and [Skip] says not to wait. Whether
	// it will be done is not known, so try again later: a handler returns this error as it is.
	ErrBusy = errors.New("work is being done by another")
	// ErrLeaseLost: the lease ended before the work was recorded as done. Somebody else may do
	// it, too.
	ErrLeaseLost = errors.New("lease lost")
	// ErrInvalid: the key or a setting cannot be right. Trying again is of no use.
	ErrInvalid = errors.New("invalid")
)

// Store remembers what was done. T is what the work gets besides its context: *sql.Tx from
// [SQL], [Lease] from stores that have leases.
type Store[T any] interface {
	// Once runs work and records key, or returns nil without running it if key is recorded. It
	// may be called concurrently and blocks while work runs, also another's of the same
	// key unless it is to be skipped. Nothing is recorded if work returns an error or
	// panics.
	Once(ctx context.Context, key string, work func(context.Context, T) error) error
}

// Do does work once for each key of the store. It returns nil if the work is done, be it by an
// earlier call or somebody else; the error of the work as it is; or [ErrBusy].
func Do[T any](ctx context.Context, s Store[T], key string, work func(context.Context, T) error) error {
	if err := checkName("key", key); err != nil {
		return fmt.Errorf("do once %q: %w", key, err)
	}
	return s.Once(ctx, key, work)
}

// Duplicates says what becomes of a call whose key another is working on.
type Duplicates int

const (
	// Wait until the other has ended, and do the work if it was not done.
	Wait Duplicates = iota
	// Skip returns [ErrBusy] at once.
	Skip
)

// DefaultKeep is how long keys are remembered unless [Options.Keep] says otherwise.
const DefaultKeep = 7 * 24 * time.Hour

// Options are the settings of a store.
type Options struct {
	// Keep is how long keys are remembered, counted from when the work was done. Default
	// [DefaultKeep], 7 days. It must be longer than a message can take to come a second time: retries, time in
	// a parking queue, and its own delay.
	Keep time.Duration
	// Duplicates says whether calls of the same key at the same time wait, the default.
	Duplicates Duplicates
	// Lease is how long a crash can keep others from a key, in stores with leases. It is renewed
	// while the work runs. Default 30 s.
	Lease time.Duration
}

// withDefaults fills in what is not set and refuses what cannot be.
func (o Options) withDefaults(scope string) (Options, error) {
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	if o.Lease == 0 {
		o.Lease = 30 * time.Second
	}
	var err error
	switch {
	case o.Keep < time.Second:
		err = fmt.Errorf("keep is %v, must be at least 1s: %w", o.Keep, ErrInvalid)
	case o.Lease < 10*time.Millisecond:
		err = fmt.Errorf("lease is %v, must be at least 10ms: %w", o.Lease, ErrInvalid)
	case o.Duplicates != Wait && o.Duplicates != Skip:
		err = fmt.Errorf("duplicates is %d, must be Wait or Skip: %w", o.Duplicates, ErrInvalid)
	}
	return o, errors.Join(err, checkName("scope", scope))
}

// maxNameBytes is what the columns of scope and key hold. Some databases cut what is longer.
const maxNameBytes = 255

// checkName refuses what not every store can tell from every other name.
func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s is empty: %w", what, ErrInvalid)
	case len(name) > maxNameBytes:
		return fmt.Errorf("%s has %d bytes, allowed are %d: %w", what, len(name), maxNameBytes, ErrInvalid)
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return fmt.Errorf("%s %q is not UTF-8 text: %w", what, name, ErrInvalid)
	}
	return nil
}
