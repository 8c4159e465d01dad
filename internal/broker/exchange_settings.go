package broker

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

// exchangeSettings are the values in force for an exchange: what its declare arguments and the
// policy that matches it make of it. They are never changed, only replaced as a whole.
type exchangeSettings struct {
	alternate string // exchange for what no binding takes, "" for none
}

// newExchangeSettings computes what is in force from arguments that were checked and from a
// policy's definition, which may be nil.
func newExchangeSettings(args amqp.Table, d policy.Definition) *exchangeSettings {
	s := new(exchangeSettings)
	var ok bool
	if s.alternate, ok = args[argAlternate].(string); !ok {
		s.alternate, _ = d[argAlternate].(string)
	}
	return s
}

// setPolicyLocked puts into force what a policy says, nil for none, together with the arguments.
func (x *Exchange) setPolicyLocked(d policy.Definition) {
	x.applyLocked(newExchangeSettings(x.args, d))
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
