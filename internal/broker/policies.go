package broker

import (
	"errors"

	"github.com/duepost/duepost/internal/policy"
	"github.com/duepost/duepost/internal/store"
)

// SetPolicy adds a policy, or replaces that of the same name, and puts into force what follows
// for the queues and exchanges that there are. It is durable when SetPolicy returns. The error is
// a *policy.Fault if the policy is at fault, else an *amqp.Error.
func (v *VHost) SetPolicy(p policy.Policy) error {
	if err := p.Validate(); err != nil {
		return err
	}
	return v.setPolicy(&v.policies, &p)
}

// SetOperatorPolicy is SetPolicy for operator policies.
func (v *VHost) SetOperatorPolicy(p policy.Policy) error {
	if err := p.ValidateOperator(); err != nil {
		return err
	}
	return v.setPolicy(&v.operatorPolicies, &p)
}

// DeletePolicy deletes a policy, and what it had put into force is no more. It reports whether
// there was such a policy.
func (v *VHost) DeletePolicy(name string) (existed bool, err error) {
	return v.deletePolicy(&v.policies, name)
}

// DeleteOperatorPolicy is DeletePolicy for operator policies.
func (v *VHost) DeleteOperatorPolicy(name string) (existed bool, err error) {
	return v.deletePolicy(&v.operatorPolicies, name)
}

// Policies returns all policies, those with the highest priority first. They are not to be
// changed.
func (v *VHost) Policies() []*policy.Policy {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.policies.All()
}

// OperatorPolicies is Policies for operator policies.
func (v *VHost) OperatorPolicies() []*policy.Policy {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.operatorPolicies.All()
}

// AppliedPolicies are the policies that a queue or an exchange falls under. Names are empty where
// there is none.
type AppliedPolicies struct {
	Policy         string
	OperatorPolicy string
	Definition     policy.Definition // what comes of both, not to be changed; nil without any
}

// Policies returns what the queue falls under.
func (q *Queue) Policies() AppliedPolicies {
	q.vhost.mu.RLock()
	defer q.vhost.mu.RUnlock()
	return q.policies.applied()
}

// Policies returns what the exchange falls under.
func (x *Exchange) Policies() AppliedPolicies {
	x.vhost.mu.RLock()
	defer x.vhost.mu.RUnlock()
	return x.policies.applied()
}

// policyPair is what applies to one queue or exchange; either may be nil.
type policyPair struct{ user, operator *policy.Policy }

func (p policyPair) definition() policy.Definition { return policy.Merge(p.user, p.operator) }

func (p policyPair) applied() AppliedPolicies {
	a := AppliedPolicies{Definition: p.definition()}
	if p.user != nil {
		a.Policy = p.user.Name
	}
	if p.operator != nil {
		a.OperatorPolicy = p.operator.Name
	}
	return a
}

// matchLocked finds what applies to a queue or an exchange.
func (v *VHost) matchLocked(name string, k policy.Kind) policyPair {
	return policyPair{v.policies.Match(name, k), v.operatorPolicies.Match(name, k)}
}

// policyKind is what kind of thing policies take the queue for.
func (q *Queue) policyKind() policy.Kind {
	if q.quorum {
		return policy.QuorumQueue
	}
	return policy.ClassicQueue
}

// policyList is policies or operator policies, and where they are stored.
type policyList struct {
	policy.List
	prefix string
}

// define returns the list with a policy that was validated, and puts the policy's definition into
// a batch.
func (l *policyList) define(b *store.Batch, vhost string, p *policy.Policy) (policy.List, error) {
	stored := *p
	if stored.ApplyTo == "" {
		stored.ApplyTo = policy.All
	}
	value, err := encodePolicy(&stored)
	if err != nil {
		return l.List, err
	}
	b.Put(definitionKey(l.prefix, vhost, p.Name), value)
	return l.With(&stored)
}

// setPolicy stores a policy that was validated and puts it into force.
func (v *VHost) setPolicy(list *policyList, p *policy.Policy) error {
	var b store.Batch
	lsn, err := v.changePolicies(list, &b, func() (policy.List, error) {
		return list.define(&b, v.name, p)
	})
	if err != nil {
		return err
	}
	return v.broker.wait(lsn)
}

func (v *VHost) deletePolicy(list *policyList, name string) (existed bool, err error) {
	var b store.Batch
	b.Delete(definitionKey(list.prefix, v.name, name))
	lsn, err := v.changePolicies(list, &b, func() (policy.List, error) {
		if list.Named(name) == nil {
			return policy.List{}, errStays
		}
		return list.Without(name), nil
	})
	switch {
	case errors.Is(err, errStays):
		return false, nil
	case err != nil:
		return true, err
	}
	return true, v.broker.wait(lsn)
}

// changePolicies puts another list in place of one, if next has one, and stores what differs.
func (v *VHost) changePolicies(
	list *policyList, differs *store.Batch, next func() (policy.List, error),
) (store.LSN, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.checkAliveLocked(); err != nil {
		return 0, err
	}
	changed, err := next()
	if err != nil {
		return 0, err
	}
	lsn, err := v.broker.store.Commit(differs)
	if err != nil {
		return 0, v.broker.waited(err)
	}
	list.List = changed
	v.applyPoliciesLocked()
	return lsn, nil
}

// applyPoliciesLocked puts into force what the policies of now say. What falls under the same
// as before is left alone.
func (v *VHost) applyPoliciesLocked() {
	for _, q := range v.queues {
		if p := v.matchLocked(q.name, q.policyKind()); p != q.policies {
			q.policies = p
			q.setPolicy(p.definition())
		}
	}
	for _, x := range v.exchanges {
		if p := v.matchLocked(x.name, policy.Exchange); p != x.policies {
			x.policies = p
			x.setPolicyLocked(p.definition())
		}
	}
}
