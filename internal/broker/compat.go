package broker

// Compat are departures from our own ways, for those who depend on others'. The zero value has
// none.
type Compat struct {
	// Plugin makes delayed exchanges of which neither arguments nor a policy say otherwise do as
	// those of RabbitMQ's delayed-message plugin, in what its clients see: docs/SEMANTICS.md has
	// the list.
	Plugin bool
	// ClientDeaths makes dead-lettering go on with an x-death that the publisher sent, as
	// RabbitMQ 3 does; else it is replaced, as in RabbitMQ 4.
	ClientDeaths bool
}

// What the plugin does otherwise hangs on one fact: to RabbitMQ it is an exchange that routes a
// message which must wait to nobody. So the message is unroutable when it is published, and what
// it leaves behind is found again by the exchange's name.

// isPlugin reports whether the exchange does as the plugin's.
func (x *Exchange) isPlugin() bool { return x.settings.Load().plugin }

// passesInnerType reports whether a declaration of an exchange that is there may have any inner
// type, or none.
func (x *Exchange) passesInnerType(spec *ExchangeSpec) bool {
	return x != nil && x.delayed && spec.Type == delayedType && x.isPlugin()
}

// walkBeside follows a message that waits in an exchange to where it goes all the same.
func (r *route) walkBeside(x *Exchange, e *envelope) error {
	if !x.isPlugin() {
		return nil
	}
	if alternate := x.alternate(); alternate != nil {
		return r.walk(alternate, e)
	}
	return nil
}

// isTaken reports whether the message is not to be returned as unroutable.
func (r *route) isTaken() bool {
	if len(r.queues) > 0 || r.delay.Key != nil && len(r.delayed) > 0 {
		return true
	}
	for _, x := range r.delayed {
		if !x.isPlugin() {
			return true
		}
	}
	return false
}

// holdBeforeCommit makes the message at hand of a transaction wait where no rollback undoes it,
// and returns where that is.
func (p *Publisher) holdBeforeCommit() (held []*Exchange, err error) {
	for _, x := range p.route.delayed {
		if !x.isPlugin() || p.route.delay.Key != nil {
			continue
		}
		held = append(held, x)
		if x.isFull() {
			p.broker.counters.delayedRefused.Add(1)
			continue
		}
		if _, err := p.hold(x); err != nil {
			return nil, storeFailed(err)
		}
	}
	return held, nil
}
