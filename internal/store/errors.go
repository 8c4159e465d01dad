package store

import (
	"errors"
	"fmt"
)

var (
	// ErrMoved is returned by Read when the cleaner moved the record away (or it
	// was settled and is gone): look the reference up again and retry.
	ErrMoved = errors.New("read record: moved")
	// ErrFull is returned by appends while the disk has no room. Settle, Move,
	// Retry, Discard and Cancel keep working from a reserve. Options.SpaceChanged
	// tells when to try again.
	ErrFull = errors.New("append record: no space left on the disk")
	// ErrClosed is returned after Close or Abandon.
	ErrClosed = errors.New("store is closed")
	// ErrLocked means another process has the directory open.
	ErrLocked = errors.New("data directory is in use by another process")
	// ErrTooLarge means a message or batch beyond the format's limit of 1 GiB, or
	// a name longer than 255 bytes.
	ErrTooLarge = errors.New("append record: too large")
	// ErrUnknownKey is returned by Commit when a Move, Retry or Discard names an
	// entry that is not in flight. Nothing of the batch is applied.
	ErrUnknownKey = errors.New("commit batch: entry is not in flight")
	// ErrNotPending is returned by Get for a key of which nothing is pending.
	ErrNotPending = errors.New("find delayed message: not pending")
)

// FailedError is the fail-stop state: the store no longer confirms anything.
type FailedError struct {
	Op  string // what failed: "write", "sync"
	Err error
}

func (e *FailedError) Error() string { return fmt.Sprintf("store stopped: %s log: %v", e.Op, e.Err) }

// Unwrap returns the cause.
func (e *FailedError) Unwrap() error { return e.Err }

// VersionError means the directory was written by a newer format.
type VersionError struct {
	File      string
	Got, Want uint16
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("open store: %s has format version %d, this program knows up to %d: use a newer duepost", e.File, e.Got, e.Want)
}

// CorruptError is damage found while reading one record.
type CorruptError struct {
	File   string
	Offset int64
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("read record: %s at offset %d: %s", e.File, e.Offset, e.Reason)
}

// IsCorruption reports whether err is damage in stored data.
func IsCorruption(err error) bool {
	var c *CorruptError
	return errors.As(err, &c)
}
