package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/duepost/duepost/internal/daemon"
)

// Exit codes; main's description tells the user.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 3
	exitUnmet   = 4
)

// usageError is a wrong command line or configuration.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }
func (e *usageError) Hint() string  { return e.hint }
func (e *usageError) ExitCode() int { return exitUsage }

// hintedError is an error with what the user can do about it.
type hintedError struct {
	err  error
	hint string
	code int
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }
func (e *hintedError) Hint() string  { return e.hint }
func (e *hintedError) ExitCode() int { return e.code }

// report is the one place where an error becomes a text and an exit code.
func report(w io.Writer, err error) int {
	if err == nil {
		return exitDone
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(w, "duepost: interrupted: %s\n", strings.TrimSuffix(err.Error(), ": context canceled"))
		return exitFailed
	}
	fmt.Fprintf(w, "duepost: %v\n", err)
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && hinted.Hint() != "" {
		fmt.Fprintf(w, "hint: %s\n", hinted.Hint())
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	var refused *daemon.StartError
	if errors.As(err, &refused) {
		return exitRefused
	}
	return exitFailed
}
