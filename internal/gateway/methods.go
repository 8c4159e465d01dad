package gateway

import (
	"errors"

	"github.com/duepost/duepost/internal/relay/topology"
	"github.com/duepost/duepost/internal/wire"
)

// errUnknown is the reason why a method that needs to know cannot go on.
var errUnknown = errors.New("cannot tell whether it is delayed: the relay has no answer from the broker")

// topology deals with a method about exchanges and bindings.
func (u *upward) topology(h head, id wire.MethodID, frame []byte) (instead []byte, passes bool) {
	m, err := wire.Parse(payload(frame))
	if err != nil {
		return nil, true // the broker will say so
	}
	switch m := m.(type) {
	case *wire.ExchangeDeclare:
		return u.declare(h, m)
	case *wire.ExchangeDelete:
		return u.delete(h, m, frame)
	case *wire.QueueBind:
		return u.redirect(h, m, &m.Exchange, frame)
	case *wire.QueueUnbind:
		return u.redirect(h, m, &m.Exchange, frame)
	case *wire.ExchangeBind:
		return u.redirect(h, m, &m.Source, frame)
	case *wire.ExchangeUnbind:
		return u.redirect(h, m, &m.Source, frame)
	}
	return nil, true
}

// declare has the broker declare the exchange that publishers see, on the client's own channel and
// so with the client's own rights. The errand goes on in [link.outerDeclared]. A passive declaration
// asks for a name only, which is there. [amqp exchange.declare]
func (u *upward) declare(h head, m *wire.ExchangeDeclare) (instead []byte, passes bool) {
	if m.Type != delayedType || m.Passive {
		return nil, true
	}
	e := &errand{kind: declaring, channel: h.channel, key: exchangeKey{u.vhost, m.Exchange}, noWait: m.NoWait}
	wanted, err := readExchange(topology.Exchange{
		Name: m.Exchange, Durable: m.Durable, AutoDelete: m.AutoDelete, Internal: m.Internal,
	}, m.Arguments)
	if err != nil {
		return u.refuse(e, m.ID(), err)
	}
	args, err := outerArguments(wanted)
	if err != nil {
		return u.refuse(e, m.ID(), err)
	}
	e.wanted = wanted
	u.l.begin(e)
	u.holds[h.channel] = &hold{}
	m.Type, m.NoWait, m.Arguments = outerType, false, args
	return u.say(h, m)
}

// delete deletes the exchange with the bindings first, so that if-unused means the client's
// bindings, and then the one that publishers see. [amqp exchange.delete]
func (u *upward) delete(h head, m *wire.ExchangeDelete, frame []byte) (instead []byte, passes bool) {
	x, state := u.ask(h, m.Exchange, frame)
	switch {
	case x == nil && state == unsure:
		return nil, false // held
	case state == plain:
		return nil, true
	}
	e := &errand{kind: deletingDue, channel: h.channel, key: exchangeKey{u.vhost, m.Exchange}, noWait: m.NoWait}
	if state == unsure {
		return u.refuse(e, m.ID(), errUnknown)
	}
	u.l.begin(e)
	u.holds[h.channel] = &hold{}
	m.Exchange, m.NoWait = m.Exchange+dueSuffix, false
	return u.say(h, m)
}

// redirect makes a binding of a delayed exchange one of the exchange that holds its bindings. name
// is the field of m that says whose binding it is. [amqp queue.bind] [rmq e2e]
func (u *upward) redirect(h head, m wire.Method, name *string, frame []byte) (instead []byte, passes bool) {
	x, state := u.ask(h, *name, frame)
	switch {
	case x == nil && state == unsure:
		return nil, false // held
	case state == plain:
		return nil, true
	case state == unsure:
		e := &errand{channel: h.channel, key: exchangeKey{u.vhost, *name}}
		return u.refuse(e, m.ID(), errUnknown)
	}
	*name += dueSuffix
	return u.say(h, m)
}

// ask returns what an exchange is. If that has to be asked the channel is held, with the frame,
// and x is nil and the state unsure.
func (u *upward) ask(h head, name string, frame []byte) (x *exchange, state uint32) {
	if !mayBeDelayed([]byte(name)) {
		return nil, plain
	}
	x = u.find([]byte(name))
	if u.answered == x {
		return x, x.state.Load()
	}
	u.holdFor(x, h.channel, frame)
	return nil, unsure
}

// refuse has the broker close the channel, with err as the reason.
func (u *upward) refuse(e *errand, id wire.MethodID, err error) (instead []byte, passes bool) {
	u.holds[e.channel] = &hold{}
	return u.l.refusal(e, id, err), false
}

// say returns a method as the frame that passes.
func (u *upward) say(h head, m wire.Method) (instead []byte, passes bool) {
	u.instead = wire.AppendMethod(u.instead[:0], h.channel, m)
	return u.instead, false
}
