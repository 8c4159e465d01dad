package policy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/duepost/duepost/internal/pattern"
)

// List is the policies, or the operator policies, of one virtual host. It is never changed: With
// and Without return another. The zero value is empty.
type List struct {
	ranked []ranked // in the order in which they are asked
}

// ranked is a policy that is ready to be asked.
type ranked struct {
	*Policy
	names  *pattern.Pattern
	lacked Kind // kinds of queues it does not apply to for its settings
}

// With returns the list with a policy that was validated, in place of one of the same name.
func (l List) With(p *Policy) (List, error) {
	names, err := pattern.Compile(p.Pattern)
	if err != nil {
		return l, fmt.Errorf("add policy %s: %w", p.Name, err)
	}
	next := append(l.Without(p.Name).ranked, ranked{p, names, p.Definition.lacked()})
	slices.SortFunc(next, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	return List{next}, nil
}

// Without returns the list without the policy of that name.
func (l List) Without(name string) List {
	var next []ranked
	for _, r := range l.ranked {
		if r.Name != name {
			next = append(next, r)
		}
	}
	return List{next}
}

// Named returns the policy of that name, or nil.
func (l List) Named(name string) *Policy {
	for _, r := range l.ranked {
		if r.Name == name {
			return r.Policy
		}
	}
	return nil
}

// All returns the policies, the highest priority first. They are not to be changed.
func (l List) All() []*Policy {
	all := make([]*Policy, len(l.ranked))
	for i, r := range l.ranked {
		all[i] = r.Policy
	}
	return all
}

// Len returns how many there are.
func (l List) Len() int { return len(l.ranked) }

// Match returns the one policy that applies to a thing, or nil. Of several with the same priority
// it is the first by name. [rmq policies]
func (l List) Match(name string, k Kind) *Policy {
	for _, r := range l.ranked {
		if r.appliesTo(k) && r.lacked&k == 0 && r.names.Matches(name) {
			return r.Policy
		}
	}
	return nil
}
