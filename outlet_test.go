package duepost

import (
	"errors"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// What brokers say when they close a channel, and whom it is about. The texts are RabbitMQ's.
func TestBlame(t *testing.T) {
	t.Parallel()
	soft := func(code int, reason string) *amqp.Error {
		return &amqp.Error{Code: code, Reason: reason, Server: true, Recover: true}
	}
	a, b := &flight{exchange: "a", size: 10}, &flight{exchange: "b", size: 20}
	for name, c := range map[string]struct {
		err     *amqp.Error
		under   []*flight
		culprit *flight
		verdict error
	}{
		"unknown exchange": {soft(404, "NOT_FOUND - no exchange 'b' in vhost '/'"), []*flight{a, b}, b, ErrUnknownExchange},
		"no permission": {
			soft(403, "ACCESS_REFUSED - write access to exchange 'b' in vhost '/' refused for user 'u'"),
			[]*flight{a, b}, b, ErrNotPermitted,
		},
		"too large": {
			soft(406, "PRECONDITION_FAILED - message size 20 is larger than configured max size 15"),
			[]*flight{a, b}, b, ErrTooLarge,
		},
		"something else, one":     {soft(406, "PRECONDITION_FAILED - what"), []*flight{b}, b, ErrRefused},
		"something else, several": {soft(406, "PRECONDITION_FAILED - what"), []*flight{a, b}, nil, nil},
		"the connection":          {&amqp.Error{Code: 541, Server: true}, []*flight{b}, nil, nil},
		"the network":             {&amqp.Error{Code: 501, Reason: "EOF"}, []*flight{b}, nil, nil},
	} {
		o := &outlet{underway: c.under}
		culprit, verdict := o.blame(c.err)
		if culprit != c.culprit || !errors.Is(verdict, c.verdict) || verdict != nil && !errors.Is(verdict, c.err) {
			t.Errorf("%s: blamed %+v, %v", name, culprit, verdict)
		}
	}
}
