package duepost

import (
	"errors"
	"fmt"
	"strings"
)

// What errors.Is finds in the errors of this package. Where the broker has given an error of its
// own, errors.As finds that, too: an *amqp091.Error with its code and text.
var (
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("client is closed")
	// ErrInvalid: the message or the setting cannot be right on any broker: a negative delay,
	// a header that AMQP has no type for. Trying again is of no use.
	ErrInvalid = errors.New("invalid")
	// ErrDelayTooLong: the delay is longer than this broker can keep a message. It is ErrInvalid, too.
	ErrDelayTooLong = fmt.Errorf("delay is too long: %w", ErrInvalid)
	// ErrNotSupported: this broker cannot do it, see [Client.Broker].
	ErrNotSupported = errors.New("not supported by this broker")
	// ErrUnconfirmed: the message was sent and the connection or the wait ended before an
	// answer: the broker has it or has it not. Publishing again may double it.
	ErrUnconfirmed = errors.New("not confirmed")
	// ErrNotPermitted: the user of the connection may not do it.
	ErrNotPermitted = errors.New("not permitted")
	// ErrRefused: the broker said that it has not taken the message: a full queue that refuses,
	// a full disk.
	ErrRefused = errors.New("refused by the broker")
	// ErrUnroutable: no queue takes the message. See [ReturnedError].
	ErrUnroutable = errors.New("unroutable")
	// ErrUnknownExchange: there is no exchange of that name.
	ErrUnknownExchange = errors.New("unknown exchange")
	// ErrTooLarge: the body is larger than the broker takes.
	ErrTooLarge = errors.New("body is too large")
	// ErrNotPending: nothing waits under the key; it was handed over, canceled, or never there.
	ErrNotPending = errors.New("not pending")
	// ErrBlocked: the wait ended while the broker, short of memory or disk, took no messages.
	ErrBlocked = errors.New("blocked by the broker")
	// ErrDisconnected: the wait ended while there was no connection.
	ErrDisconnected = errors.New("not connected")
	// ErrHandlersRunning: the time to drain ended with handlers that had not returned. Their
	// messages go back to the queue.
	ErrHandlersRunning = errors.New("handlers still running")
)

// PublishError is the error of every publish that was not confirmed.
type PublishError struct {
	Exchange, RoutingKey, MessageID string
	// Err is why; one of the errors above is in it.
	Err error

	unsent bool // surely never reached the broker
}

// Error says what became of which message.
func (e *PublishError) Error() string {
	return fmt.Sprintf("publish to exchange %q with key %q: %v", e.Exchange, e.RoutingKey, e.Err)
}

// Unwrap returns why.
func (e *PublishError) Unwrap() error { return e.Err }

// ReturnedError is a message that came back because no queue takes it. It is [ErrUnroutable].
type ReturnedError struct {
	Code int    // 312 NO_ROUTE
	Text string // as the broker says it
}

// Error is the broker's answer.
func (e *ReturnedError) Error() string { return fmt.Sprintf("returned: %d %s", e.Code, e.Text) }

// Is makes it ErrUnroutable.
func (e *ReturnedError) Is(target error) bool { return target == ErrUnroutable }

// BatchError is the error of a batch of which not all was confirmed.
type BatchError struct {
	// Errs has one entry for each message of the batch, nil if it was confirmed.
	Errs []error
}

// Error counts and tells the first.
func (e *BatchError) Error() string {
	n, first := 0, error(nil)
	for _, err := range e.Errs {
		if err != nil {
			n++
			if first == nil {
				first = err
			}
		}
	}
	return fmt.Sprintf("publish batch: %d of %d not confirmed, first: %v", n, len(e.Errs), first)
}

// Unwrap returns those that are not nil.
func (e *BatchError) Unwrap() []error {
	var errs []error
	for _, err := range e.Errs {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// SafeToRetry reports whether err is of a publish that surely never reached the broker, so that
// publishing again cannot double it. A [BatchError] is safe if all its errors are.
func SafeToRetry(err error) bool {
	var batch *BatchError
	if errors.As(err, &batch) {
		for _, one := range batch.Unwrap() {
			if !SafeToRetry(one) {
				return false
			}
		}
		return true
	}
	var p *PublishError
	return errors.As(err, &p) && p.unsent
}

// invalid makes an ErrInvalid that says what is wrong.
func invalid(format string, a ...any) error {
	return fmt.Errorf("%s: %w", strings.TrimSuffix(fmt.Sprintf(format, a...), "."), ErrInvalid)
}
