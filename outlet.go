package duepost

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// outlet is one channel in confirm mode, shared by all who publish, from its opening to its end.
//
// What is under way is kept in the order of publishing, for the two questions that the protocol
// leaves to the order: which message came back, and which of them ended the channel.
type outlet struct {
	session *session
	ch      *amqp.Channel
	known   nameSet // exchanges that were there when last looked

	ended   chan struct{} // closed when the channel has ended and what follows is set
	reason  error         // why
	culprit *flight       // whose fault that was, nil if it cannot be told
	verdict error         // what the culprit gets

	mu       sync.Mutex
	underway []*flight // guarded by mu; answered ones leave lazily, from the front
}

// flight is one message from its sending to its answer.
type flight struct {
	out           *outlet
	exchange, key string
	id            string
	size          int
	confirm       *amqp.DeferredConfirmation // nil until sent; guarded by out.mu
	returned      *ReturnedError             // nil if it did not come back; guarded by out.mu
}

// errUnsent is wrapped by errors of messages that surely did not reach the broker.
var errUnsent = errors.New("not sent")

func openOutlet(s *session) (*outlet, error) {
	ch, err := s.conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	o := &outlet{session: s, ch: ch, ended: make(chan struct{})}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	// The client library hands a return to its listeners one after the other, each without a
	// buffer, before it reads the confirm behind it. So once the second has taken it, all that the
	// first did is done, and done before the confirm.
	first, second := ch.NotifyReturn(make(chan amqp.Return)), ch.NotifyReturn(make(chan amqp.Return))
	go o.watchReturns(first, second)
	go o.watchEnd(closed)
	if err := ch.Confirm(false); err != nil {
		_ = ch.Close()
		return nil, fmt.Errorf("select confirms: %w", err)
	}
	return o, nil
}

// watchReturns notes which message came back. Returns come in the order of publishing, so of
// several that look alike it is the first that has not come back yet. [rmq mandatory]
func (o *outlet) watchReturns(first, second <-chan amqp.Return) {
	for r := range first {
		o.mu.Lock()
		for _, f := range o.underway {
			if f.returned == nil && f.id == r.MessageId && f.exchange == r.Exchange && f.key == r.RoutingKey {
				f.returned = &ReturnedError{Code: int(r.ReplyCode), Text: r.ReplyText}
				break
			}
		}
		o.mu.Unlock()
		<-second
	}
}

// watchEnd finds out why the channel ended, and through whom.
func (o *outlet) watchEnd(closed <-chan *amqp.Error) {
	err := <-closed
	o.reason = errors.New("channel closed by this client")
	if err != nil {
		o.reason = err
		o.mu.Lock()
		o.culprit, o.verdict = o.blame(err)
		o.mu.Unlock()
	}
	close(o.ended)
}

// blame finds the message that made the broker close the channel, by what the broker says. A
// channel has one error and the broker does not say which publish it was for. [amqp basic.publish]
func (o *outlet) blame(err *amqp.Error) (*flight, error) {
	if !err.Server || !err.Recover { // the whole connection has ended
		return nil, nil
	}
	is := func(*flight) bool { return len(o.underway) == 1 } // who else
	verdict := fmt.Errorf("%w: %w", ErrRefused, err)
	switch err.Code {
	case amqp.NotFound, amqp.AccessRefused:
		verdict = fmt.Errorf("%w: %w", ErrUnknownExchange, err)
		if err.Code == amqp.AccessRefused {
			verdict = fmt.Errorf("%w: %w", ErrNotPermitted, err)
		}
		is = func(f *flight) bool {
			name := f.exchange
			if name == "" {
				name = "amq.default" // as brokers call it in texts
			}
			return strings.Contains(err.Reason, "exchange '"+name+"'")
		}
	case amqp.PreconditionFailed, amqp.ContentTooLarge:
		if size, ok := refusedSize(err.Reason); ok {
			verdict = fmt.Errorf("%w: %w", ErrTooLarge, err)
			is = func(f *flight) bool { return f.size == size }
		}
	}
	for _, f := range o.underway {
		if is(f) && (f.confirm == nil || !f.confirm.Acked()) {
			return f, verdict
		}
	}
	return nil, nil
}

var sizeText = regexp.MustCompile(`message size (\d+) is larger`)

// refusedSize is the size that the broker says is too large.
func refusedSize(reason string) (int, bool) {
	m := sizeText.FindStringSubmatch(reason)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// send hands a message to the client library. An error that wraps errUnsent is of a message
// that did not go out; after any other it may have.
func (o *outlet) send(e *envelope) (*flight, error) {
	f := &flight{
		out: o, exchange: e.exchange, key: e.key, id: e.publishing.MessageId, size: len(e.publishing.Body),
	}
	o.add(f)
	confirm, err := o.ch.PublishWithDeferredConfirm(e.exchange, e.key, e.mandatory, false, e.publishing)
	o.mu.Lock()
	f.confirm = confirm
	o.mu.Unlock()
	if err == nil {
		return f, nil
	}
	o.remove(f)
	if err == amqp.ErrClosed { // found closed before the last frame, without which it is no message
		return nil, fmt.Errorf("%w: %w", errUnsent, err)
	}
	return nil, err
}

// add appends to what is under way, before the message can come back.
func (o *outlet) add(f *flight) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.underway) > 0 && o.underway[0].isAnswered() {
		o.underway[0] = nil // the rest of the array outlives it
		o.underway = o.underway[1:]
	}
	o.underway = append(o.underway, f)
}

func (o *outlet) remove(f *flight) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, other := range o.underway {
		if other == f {
			o.underway = append(o.underway[:i], o.underway[i+1:]...)
			return
		}
	}
}

// isAnswered reports whether the broker has answered f. The caller holds out.mu.
func (f *flight) isAnswered() bool {
	if f.confirm == nil {
		return false
	}
	select {
	case <-f.confirm.Done():
		// A channel that ends is marked closed first and nacks what is under way then, which
		// is no answer.
		return f.confirm.Acked() || !f.out.ch.IsClosed()
	default:
		return false
	}
}

// answer is what became of f, to be called when its confirm is done. nil is confirmed and routed.
func (f *flight) answer() error {
	if f.confirm.Acked() {
		f.out.mu.Lock()
		returned := f.returned
		f.out.mu.Unlock()
		if returned != nil {
			return returned
		}
		return nil
	}
	if !f.out.ch.IsClosed() {
		return fmt.Errorf("%w: nack", ErrRefused)
	}
	// The library answers everything with a nack when a channel ends; it may have been one of
	// the broker's just before, but that cannot be told any more.
	<-f.out.ended
	return f.out.fate(f)
}

// fate is what became of a message without an answer when the channel ended. The broker deals
// with a channel's messages in order, and with none behind the one that ended the channel.
func (o *outlet) fate(f *flight) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.culprit == nil:
		return fmt.Errorf("%w: %w", ErrUnconfirmed, o.reason)
	case f == o.culprit:
		return o.verdict
	case o.culprit.confirm != nil && f.confirm.DeliveryTag > o.culprit.confirm.DeliveryTag:
		return fmt.Errorf("%w: %w", errUnsent, o.reason)
	}
	return fmt.Errorf("%w: %w", ErrUnconfirmed, o.reason)
}
