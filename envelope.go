package duepost

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// maxShortString is the most bytes of names and keys. [amqp 4.2.5.3]
const maxShortString = 255

// Headers that the client adds. Handlers do not see them.
const (
	ownHeader = "x-duepost-" // how all of them begin

	// Of messages that are or were delayed.
	headerDue = "x-duepost-due" // int64, unix milliseconds by the publisher's clock
	headerTo  = "x-duepost-to"  // the exchange that the publisher named, if the message takes another way

	// Of messages that were given to a handler before.
	headerAttempts = "x-duepost-attempts"    // int64, how often
	headerExchange = "x-duepost-exchange"    // what the first publisher named
	headerRouting  = "x-duepost-routing-key" // the same
	headerKey      = "x-duepost-key"         // the key under which it waited at first
	headerDeath    = "x-duepost-death"       // x-death as it was then

	// Of messages in a parking queue.
	headerParkedReason   = "x-duepost-parked-reason"
	headerParkedAttempts = "x-duepost-parked-attempts" // int64
	headerParkedQueue    = "x-duepost-parked-queue"
	headerParkedTime     = "x-duepost-parked-time" // int64, unix milliseconds
)

// envelope is a message as it goes to the client library.
type envelope struct {
	exchange, key string
	mandatory     bool
	publishing    amqp.Publishing
	overdue       bool
	due           time.Time // zero if it does not wait
}

// seal checks m and decides which way it takes. own are headers of the client's own, or nil.
func (c *Client) seal(ctx context.Context, m *Message, own amqp.Table) (*envelope, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	now := c.now()
	e := &envelope{
		exchange: m.Exchange, key: m.RoutingKey, mandatory: !m.DropUnroutable,
		publishing: amqp.Publishing{
			ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, CorrelationId: m.CorrelationID,
			ReplyTo: m.ReplyTo, MessageId: m.MessageID, Timestamp: m.Timestamp, Type: m.Type, AppId: m.AppID,
			Priority: m.Priority, DeliveryMode: amqp.Persistent, Body: m.Body,
		},
	}
	p := &e.publishing
	if m.MessageID == "" {
		p.MessageId = rand.Text()
	}
	if m.Timestamp.IsZero() {
		p.Timestamp = now
	}
	if m.Transient {
		p.DeliveryMode = amqp.Transient
	}
	if m.Expiration > 0 {
		p.Expiration = strconv.FormatInt(ceilMillis(m.Expiration), 10)
	}
	wait := m.wait(now)
	more := len(own)
	if wait.asked {
		more += 4
	}
	var err error
	if p.Headers, err = toTable(m.Headers, more); err != nil {
		return nil, err
	}
	for k, v := range own {
		p.Headers[k] = v
	}
	if wait.asked {
		e.due, e.overdue = wait.due, wait.overdue
		p.Headers[headerDue] = wait.due.UnixMilli()
	}
	if wait.millis > 0 || m.Key != "" {
		return e, c.delay(ctx, e, m, wait)
	}
	return e, nil
}

// check refuses what no broker can take.
func (m *Message) check() error {
	for _, f := range [...]struct{ name, text string }{
		{"exchange", m.Exchange}, {"routing key", m.RoutingKey}, {"key", m.Key}, {"message id", m.MessageID},
		{"correlation id", m.CorrelationID}, {"reply-to", m.ReplyTo}, {"content type", m.ContentType},
		{"content encoding", m.ContentEncoding}, {"type", m.Type}, {"app id", m.AppID},
	} {
		if len(f.text) > maxShortString {
			return invalid("%s has %d bytes, allowed are %d", f.name, len(f.text), maxShortString)
		}
	}
	switch {
	case m.Delay < 0:
		return invalid("delay is negative: %v", m.Delay)
	case m.Delay > 0 && !m.At.IsZero():
		return invalid("both Delay and At are set")
	case m.Expiration < 0:
		return invalid("expiration is negative: %v", m.Expiration)
	}
	for name := range m.Headers {
		if strings.HasPrefix(name, ownHeader) {
			return invalid("header %q: names that begin with %s are the client's own", name, ownHeader)
		}
	}
	return nil
}

// wait is what a message asks for.
type wait struct {
	asked   bool // it has a Delay or At
	overdue bool // At is not after now
	due     time.Time
	millis  int64 // from now, rounded up; 0 if it goes at once
}

func (m *Message) wait(now time.Time) wait {
	switch {
	case m.Delay > 0:
		return wait{asked: true, due: now.Add(m.Delay), millis: ceilMillis(m.Delay)}
	case m.At.IsZero():
		return wait{}
	case !m.At.After(now):
		return wait{asked: true, overdue: true, due: m.At}
	}
	return wait{asked: true, due: m.At, millis: ceilMillis(m.At.Sub(now))}
}

// ceilMillis is d in milliseconds, rounded up so that nothing is early.
func ceilMillis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// receipt is what the publisher of e is told.
func (e *envelope) receipt() Receipt {
	r := Receipt{MessageID: e.publishing.MessageId, Overdue: e.overdue}
	if !e.overdue {
		r.Due = e.due
	}
	return r
}

// failure makes the error of Publish.
func (m *Message) failure(e *envelope, err error) error {
	p := &PublishError{Exchange: m.Exchange, RoutingKey: m.RoutingKey, MessageID: m.MessageID, Err: err}
	if e == nil { // refused before it was sent
		p.unsent = true
		return p
	}
	p.MessageID = e.publishing.MessageId
	_, p.unsent = err.(*unsentError)
	return p
}
