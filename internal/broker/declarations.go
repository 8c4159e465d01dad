package broker

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/duepost/duepost/internal/policy"
	"github.com/duepost/duepost/internal/store"
)

// Declarations are what a virtual host consists of, by how it was declared.
type Declarations struct {
	Policies         []*policy.Policy
	OperatorPolicies []*policy.Policy
	Limits           VHostLimits // nil says nothing of them
	Exchanges        []ExchangeSpec
	Queues           []QueueSpec
	Bindings         []BindingSpec
}

// BindingSpec is a binding to a queue, or to an exchange.
type BindingSpec struct {
	Binding
	ToExchange bool
}

// Check says what is wrong with a binding from that exchange, save with its ends.
func (b *BindingSpec) Check(source *ExchangeSpec) error {
	if _, err := b.key(b.ToExchange); err != nil {
		return err
	}
	if kind, err := exchangeKindOf(source, ""); err == nil && kind == headersKind {
		return checkMatchArgument(b.Args)
	}
	return nil
}

// Declarations returns all there is, in the order of names. Left out are exclusive queues and
// what every virtual host has: its first exchanges, and the bindings of the default exchange.
func (v *VHost) Declarations() Declarations {
	v.mu.RLock()
	defer v.mu.RUnlock()
	d := Declarations{Policies: v.policies.All(), OperatorPolicies: v.operatorPolicies.All(),
		Limits: v.limits}
	for _, name := range slices.Sorted(maps.Keys(v.exchanges)) {
		x := v.exchanges[name]
		if !IsPredeclared(name) {
			d.Exchanges = append(d.Exchanges, x.spec())
		}
		d.Bindings = append(d.Bindings, x.bindingSpecs()...)
	}
	for _, name := range slices.Sorted(maps.Keys(v.queues)) {
		if q := v.queues[name]; q.owner == nil {
			d.Queues = append(d.Queues, q.spec())
		}
	}
	return d
}

// IsPredeclared reports whether an exchange of that name is one that every virtual host has: no
// other can have such a name.
func IsPredeclared(exchange string) bool {
	return exchange == "" || strings.HasPrefix(exchange, "amq.")
}

func (x *Exchange) spec() ExchangeSpec {
	return ExchangeSpec{Name: x.name, Type: x.typeName, Durable: x.durable,
		AutoDelete: x.autoDelete, Internal: x.internal, Args: x.args}
}

func (q *Queue) spec() QueueSpec {
	return QueueSpec{Name: q.name, Durable: q.durable, Exclusive: q.owner != nil,
		AutoDelete: q.autoDelete, Args: q.args}
}

// bindingSpecs returns the bindings from an exchange save those to exclusive queues.
func (x *Exchange) bindingSpecs() []BindingSpec {
	var specs []BindingSpec
	for _, key := range slices.SortedFunc(maps.Keys(x.outgoing), compareBindings) {
		b := x.outgoing[key]
		if b.queue != nil && b.queue.owner != nil {
			continue
		}
		specs = append(specs, BindingSpec{ToExchange: key.toExchange, Binding: Binding{
			Source: key.source, Destination: key.destination, RoutingKey: key.routingKey, Args: b.args}})
	}
	return specs
}

func compareBindings(a, b bindingKey) int {
	return cmp.Or(cmp.Compare(a.destination, b.destination), cmp.Compare(a.routingKey, b.routingKey),
		cmp.Compare(a.args, b.args))
}

// Declare makes what is not there yet, all of it or nothing, and sets policies and limits. What is there
// under a name stays as it is; different says how it differs. An error is that of the first
// declaration that cannot be made. Everything is durable when Declare returns.
func (v *VHost) Declare(d *Declarations) (different []error, err error) {
	lsn, different, err := v.declare(d)
	if err != nil {
		return nil, err
	}
	return different, v.broker.wait(lsn)
}

func (v *VHost) declare(d *Declarations) (lsn store.LSN, different []error, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.checkAliveLocked(); err != nil {
		return 0, nil, err
	}
	t := declaration{vhost: v, policies: v.policies, operatorPolicies: v.operatorPolicies,
		limits: v.limits}
	err = t.all(d)
	if err == nil && t.batch.Len() > 0 {
		lsn, err = v.broker.store.Commit(&t.batch)
		err = v.broker.waited(err)
	}
	if err != nil {
		t.undo()
		return 0, nil, err
	}
	t.finish()
	return lsn, t.different, nil
}

// declaration is a Declare under way. While it holds the lock, new exchanges and queues are in
// the virtual host's maps, where bindings find them; nothing else is done before all is stored.
type declaration struct {
	vhost     *VHost
	batch     store.Batch
	different []error

	policies         policyList
	operatorPolicies policyList
	limits           VHostLimits
	exchanges        []*Exchange
	queues           []*Queue
	bindings         []*binding
}

func (t *declaration) all(d *Declarations) error {
	for _, p := range d.Policies {
		if err := t.policy(&t.policies, p, p.Validate()); err != nil {
			return err
		}
	}
	for _, p := range d.OperatorPolicies {
		if err := t.policy(&t.operatorPolicies, p, p.ValidateOperator()); err != nil {
			return err
		}
	}
	if d.Limits != nil {
		t.limits = d.Limits
		if err := t.limits.define(&t.batch, t.vhost.name); err != nil {
			return err
		}
	}
	for i := range d.Exchanges {
		if err := t.exchange(&d.Exchanges[i]); err != nil {
			return err
		}
	}
	for i := range d.Queues {
		if err := t.queue(d.Queues[i]); err != nil {
			return err
		}
	}
	for i := range d.Bindings {
		if err := t.binding(&d.Bindings[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *declaration) policy(list *policyList, p *policy.Policy, fault error) error {
	if fault != nil {
		return fault
	}
	next, err := list.define(&t.batch, t.vhost.name, p)
	list.List = next
	return err
}

func (t *declaration) exchange(spec *ExchangeSpec) error {
	if x := t.vhost.exchanges[spec.Name]; x != nil {
		t.note(x.checkEquivalent(spec))
		return nil
	}
	if err := firstFault(spec.Faults(t.vhost.name)); err != nil {
		return err
	}
	kind, err := exchangeKindOf(spec, t.vhost.name)
	if err != nil {
		return err
	}
	x := newExchange(t.vhost, spec, kind)
	if err := x.define(&t.batch); err != nil {
		return err
	}
	t.vhost.exchanges[x.name] = x
	t.exchanges = append(t.exchanges, x)
	return nil
}

func (t *declaration) queue(spec QueueSpec) error {
	spec.Args = t.vhost.withDefaultType(&spec)
	if q := t.vhost.queues[spec.Name]; q != nil {
		t.note(q.checkEquivalent(nil, &spec))
		return nil
	}
	if err := t.limits.checkQueues(t.vhost, spec.Name); err != nil {
		return err
	}
	if err := firstFault(spec.Faults(t.vhost.name)); err != nil {
		return err
	}
	q := newQueue(t.vhost, &spec)
	if err := q.define(&t.batch); err != nil {
		return err
	}
	t.vhost.queues[q.name] = q
	t.queues = append(t.queues, q)
	return nil
}

func (t *declaration) binding(spec *BindingSpec) error {
	key, err := spec.key(spec.ToExchange)
	if err != nil {
		return err
	}
	if q := t.vhost.queues[key.destination]; !key.toExchange && q != nil && q.owner != nil {
		t.note(q.locked())
		return nil
	}
	b, err := t.vhost.newBindingLocked(nil, key, spec.Args)
	if err != nil {
		return err
	}
	if _, ok := b.source.outgoing[key]; ok {
		return nil
	}
	b.define(&t.batch)
	t.bindings = append(t.bindings, b)
	return nil
}

// note keeps how what is there differs from what was declared.
func (t *declaration) note(difference error) {
	if difference != nil {
		t.different = append(t.different, difference)
	}
}

// undo leaves the virtual host as it was.
func (t *declaration) undo() {
	for _, x := range t.exchanges {
		delete(t.vhost.exchanges, x.name)
	}
	for _, q := range t.queues {
		delete(t.vhost.queues, q.name)
	}
}

// finish makes known what is stored.
func (t *declaration) finish() {
	for _, x := range t.exchanges {
		t.vhost.addExchangeLocked(x)
	}
	for _, q := range t.queues {
		t.vhost.addQueueLocked(q)
	}
	for _, b := range t.bindings {
		b.link()
	}
	t.vhost.changedLocked()
	t.vhost.policies, t.vhost.operatorPolicies = t.policies, t.operatorPolicies
	t.vhost.limits = t.limits
	t.vhost.applyPoliciesLocked()
}
