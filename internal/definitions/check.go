package definitions

import (
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/policy"
)

// checker compares a document with itself and with what there is.
type checker struct {
	*reader
	site   Site
	doc    *Document
	vhosts map[string]*scope
	broken map[place]bool // parts that have not the right form: nothing more is said of them
}

// scope is what will be in a virtual host.
type scope struct {
	exchanges map[string]broker.ExchangeSpec
	queues    map[string]struct{}
	limits    broker.VHostLimits
}

// check notes what is wrong with parts that have the right form.
func (c *checker) check() {
	c.broken = make(map[place]bool)
	for _, f := range c.faults {
		c.broken[place(f.Place).part()] = true
	}
	c.vhosts = make(map[string]*scope)
	for i := range c.doc.VHosts {
		v := &c.doc.VHosts[i]
		c.vhosts[v.Name] = newScope(c.site.Broker.VHost(v.Name))
		m := v.metadata()
		if err := broker.CheckVHost(v.Name, &m); err != nil {
			c.fault(v.at, "%s", textOf(err))
		}
	}
	c.checkRecords()
	for i := range c.doc.Parameters {
		c.parameter(&c.doc.Parameters[i])
	}
	for i := range c.doc.Policies {
		c.policy(&c.doc.Policies[i])
	}
	for i := range c.doc.Exchanges {
		c.exchange(&c.doc.Exchanges[i])
	}
	for i := range c.doc.Queues {
		c.queue(&c.doc.Queues[i])
	}
	for i := range c.doc.Bindings {
		c.binding(&c.doc.Bindings[i])
	}
	for _, name := range slices.Sorted(maps.Keys(c.vhosts)) {
		s := c.vhosts[name]
		if n := len(s.queues); len(c.doc.Queues) > 0 && !s.limits.Allow(broker.MaxQueues, n) {
			c.fault(root.field("queues"), "virtual host '%s' would have %d queues, its limit is %d",
				name, n, s.limits[broker.MaxQueues])
		}
	}
}

// fault notes what is wrong, if nothing was before with the same part.
func (c *checker) fault(at place, format string, a ...any) {
	if !c.broken[at.part()] {
		c.reader.fault(at, format, a...)
	}
}

// newScope returns what is in a virtual host; nil is one that is not there yet.
func newScope(v *broker.VHost) *scope {
	s := &scope{exchanges: make(map[string]broker.ExchangeSpec), queues: make(map[string]struct{})}
	for _, x := range broker.PredeclaredExchanges() {
		s.exchanges[x.Name] = x
	}
	if v == nil {
		return s
	}
	d := v.Declarations()
	s.limits = d.Limits
	for _, x := range d.Exchanges {
		s.exchanges[x.Name] = x
	}
	for _, q := range d.Queues {
		s.queues[q.Name] = struct{}{}
	}
	return s
}

// in returns what is in the virtual host that a part of the document is about, or nil if there is
// no such virtual host.
func (c *checker) in(vhost string, at place) *scope {
	if s, ok := c.vhosts[vhost]; ok {
		return s
	}
	v := c.site.Broker.VHost(vhost)
	if v == nil {
		c.fault(at.field("vhost"), "no such virtual host '%s'", vhost)
		return nil
	}
	s := newScope(v)
	c.vhosts[vhost] = s
	return s
}

func (c *checker) parameter(p *Parameter) {
	s := c.in(p.VHost, p.at)
	switch p.Component {
	case operatorPolicy:
		c.policyFaults(p.at.field("value"), p.policy.policy().OperatorFaults())
	case vhostLimits:
		if s != nil {
			s.limits = p.limits
		}
	case "policy":
		c.fault(p.at, "policies may not be set using this method")
	default:
		c.fault(p.at.field("component"), "component %s not found", p.Component)
	}
}

func (c *checker) policy(p *Policy) {
	c.in(p.VHost, p.at)
	c.policyFaults(p.at, p.policy().Faults())
}

// policyFaults notes the faults of a policy at a place.
func (c *checker) policyFaults(at place, faults iter.Seq[*policy.Fault]) {
	for fault := range faults {
		where := at.field(fault.Part)
		if fault.Key != "" {
			where = where.field(fault.Key)
		}
		c.fault(where, "%s", fault.Text)
	}
}

func (c *checker) exchange(x *Exchange) {
	s := c.in(x.VHost, x.at)
	spec := x.spec()
	if broker.IsPredeclared(x.Name) || s == nil {
		return
	}
	for argument, err := range spec.Faults(x.VHost) {
		at := x.at.field("type")
		if argument != "" {
			at = x.at.field("arguments").field(argument)
		}
		c.fault(at, "%s", textOf(err))
	}
	if _, ok := s.exchanges[x.Name]; !ok {
		s.exchanges[x.Name] = spec
	}
}

func (c *checker) queue(q *Queue) {
	s := c.in(q.VHost, q.at)
	if s == nil {
		return
	}
	spec := q.spec()
	for argument, err := range spec.Faults(q.VHost) {
		at := q.at
		if argument != "" {
			at = at.field("arguments").field(argument)
		}
		c.fault(at, "%s", textOf(err))
	}
	s.queues[q.Name] = struct{}{}
}

func (c *checker) binding(b *Binding) {
	s := c.in(b.VHost, b.at)
	if s == nil {
		return
	}
	source, ok := s.exchanges[b.Source]
	if !ok {
		c.fault(b.at.field("source"), "no exchange '%s' in vhost '%s'", b.Source, b.VHost)
	} else if err := b.spec().Check(&source); err != nil {
		c.fault(b.at.field("arguments"), "%s", textOf(err))
	}
	switch b.DestinationType {
	case toQueue:
		_, ok = s.queues[b.Destination]
	case toExchange:
		_, ok = s.exchanges[b.Destination]
	default:
		c.fault(b.at.field("destination_type"), "is '%s', must be 'queue' or 'exchange'", b.DestinationType)
		return
	}
	if !ok {
		c.fault(b.at.field("destination"), "no %s '%s' in vhost '%s'", b.DestinationType, b.Destination, b.VHost)
	}
}

// textOf returns what an error says without the protocol's code.
func textOf(err error) string {
	var e *amqp.Error
	if errors.As(err, &e) {
		return e.Text
	}
	return err.Error()
}
