package duepost

import (
	"fmt"
	"time"
)

// Drop is an error for a handler to return that ends a message for good: it is acknowledged, not
// retried and not parked. reason is logged.
func Drop(reason string) error { return &outcome{kind: dropped, reason: reason} }

// RetryAfter is an error for a handler to return that lets the message come again after d
// instead of after the pause of [Consumer.Retry]. It counts as an attempt. To tell why, wrap it:
//
//	return fmt.Errorf("reserve stock: %w (%w)", err, duepost.RetryAfter(time.Minute))
func RetryAfter(d time.Duration) error { return &outcome{kind: retried, after: max(d, 0)} }

// Park is an error for a handler to return that moves the message to the parking queue at once,
// because trying again cannot help.
func Park(reason string) error { return &outcome{kind: parked, reason: reason} }

// outcome is what a handler wants to become of its message.
type outcome struct {
	kind   outcomeKind
	reason string
	after  time.Duration
}

type outcomeKind int

const (
	retried outcomeKind = iota
	dropped
	parked
)

// Error says it in words.
func (o *outcome) Error() string {
	switch o.kind {
	case dropped:
		return "drop: " + o.reason
	case parked:
		return "park: " + o.reason
	}
	return fmt.Sprintf("retry after %v", o.after)
}
