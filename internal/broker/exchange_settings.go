package broker

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

// exchangeSettings are the values in force for an exchange: what its declare arguments and the
// policy that matches it make of it. They are never changed, only replaced as a whole.
type exchangeSettings struct {
	alternate string // exchange for what no binding takes, "" for none

	// Of a delayed exchange.
	maxLength       int64 // most messages that wait, -1 unlimited
	maxBytes        int64 // most bytes of those, -1 unlimited
	late            late  // what becomes of those that are due for longer than lateAfter
	lateAfter       int64 // milliseconds
	hasDeadLetter   bool
	deadLetter      string // exchange for late ones, and for what waits when the exchange is deleted
	dropsUnroutable bool   // what nobody takes when it is due is dropped and not parked
	plugin          bool   // it does as RabbitMQ's plugin does; see Compat
}

// late says what becomes of messages that are released late, after a stop for example.
type late uint8

const (
	lateDeliver    late = iota // they go as all others
	lateDeadLetter             // they go to another exchange
	lateDrop
)

// newExchangeSettings computes what is in force from arguments that were checked, from a policy's
// definition, which may be nil, and from what the broker says of all delayed exchanges.
func newExchangeSettings(args amqp.Table, d policy.Definition, c *Compat) *exchangeSettings {
	s := new(exchangeSettings)
	var ok bool
	if s.alternate, ok = args[argAlternate].(string); !ok {
		s.alternate, _ = d[argAlternate].(string)
	}
	e := effective{args, d}
	s.maxLength, s.maxBytes = e.least("delayed-max-length"), e.least("delayed-max-length-bytes")
	s.lateAfter = max(e.least("delayed-late-after"), 0)
	s.deadLetter, s.hasDeadLetter = e.text("delayed-dead-letter-exchange")
	switch mode, _ := e.text("delayed-late"); mode {
	case "dead-letter":
		s.late = lateDeadLetter
	case "drop":
		s.late = lateDrop
	}
	s.plugin = c.Plugin
	if mode, ok := e.text("delayed-compat"); ok {
		s.plugin = mode == "plugin"
	}
	mode, ok := e.text("delayed-unroutable")
	s.dropsUnroutable = mode == "drop" || s.plugin && !ok
	return s
}

// delayedArguments are the arguments of a delayed exchange that are its settings, with their checks.
func delayedArguments() []namedCheck {
	return []namedCheck{
		{"x-delayed-max-length", checkNotNegative},
		{"x-delayed-max-length-bytes", checkNotNegative},
		{"x-delayed-late", oneOf("invalid_late_policy", "deliver", "dead-letter", "drop")},
		{"x-delayed-late-after", checkNotNegative},
		{"x-delayed-dead-letter-exchange", checkString},
		{"x-delayed-compat", oneOf("invalid_compat_mode", "strict", "plugin")},
		{"x-delayed-unroutable", oneOf("invalid_unroutable_policy", "park", "drop")},
	}
}

// isFull reports whether one more message must not wait in the exchange.
func (x *Exchange) isFull() bool {
	s := x.settings.Load()
	if s.maxLength < 0 && s.maxBytes < 0 {
		return false
	}
	p := x.pending()
	return s.maxLength >= 0 && p.Count >= uint64(s.maxLength) ||
		s.maxBytes >= 0 && p.Bytes >= uint64(s.maxBytes)
}

// setPolicyLocked puts into force what a policy says, nil for none, together with the arguments.
func (x *Exchange) setPolicyLocked(d policy.Definition) {
	x.applyLocked(newExchangeSettings(x.args, d, &x.vhost.broker.compat))
}

// applyLocked puts settings into force. The caller holds VHost.mu, for routes found before may be
// others now.
func (x *Exchange) applyLocked(s *exchangeSettings) {
	if *x.settings.Load() == *s {
		return
	}
	x.settings.Store(s)
	x.vhost.changedLocked()
}

// alternate returns the exchange for what no binding takes, or nil.
func (x *Exchange) alternate() *Exchange {
	name := x.settings.Load().alternate
	if name == "" {
		return nil
	}
	return x.vhost.exchange(name)
}
