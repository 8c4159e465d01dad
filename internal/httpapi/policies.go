package httpapi

import (
	"encoding/json"

	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/policy"
)

func policyObject(vhost string, p *policy.Policy) object {
	return object{
		"vhost": vhost, "name": p.Name, "pattern": p.Pattern, "apply-to": p.ApplyTo,
		"definition": p.Definition, "priority": p.Priority,
	}
}

// kind is one of the two kinds of policies.
type kind struct {
	all    func(*broker.VHost) []*policy.Policy
	set    func(*broker.VHost, policy.Policy) error
	delete func(*broker.VHost, string) (bool, error)
}

func userPolicies() kind {
	return kind{(*broker.VHost).Policies, (*broker.VHost).SetPolicy, (*broker.VHost).DeletePolicy}
}

func operatorPolicies() kind {
	return kind{(*broker.VHost).OperatorPolicies, (*broker.VHost).SetOperatorPolicy, (*broker.VHost).DeleteOperatorPolicy}
}

func listPolicies(c *call) (any, error)         { return userPolicies().list(c) }
func listOperatorPolicies(c *call) (any, error) { return operatorPolicies().list(c) }

func (k kind) list(c *call) (any, error) {
	visible, err := c.visible()
	if err != nil {
		return nil, err
	}
	all := rows{}
	for _, v := range visible {
		for _, p := range k.all(v) {
			all = append(all, policyObject(v.Name(), p))
		}
	}
	return all, nil
}

func showPolicy(c *call) (any, error)         { return userPolicies().show(c) }
func showOperatorPolicy(c *call) (any, error) { return operatorPolicies().show(c) }

func (k kind) show(c *call) (any, error) {
	v, err := c.vhost()
	if err != nil {
		return nil, err
	}
	if p := k.named(v, c.name("name")); p != nil {
		return policyObject(v.Name(), p), nil
	}
	return nil, notFound()
}

func (k kind) named(v *broker.VHost, name string) *policy.Policy {
	for _, p := range k.all(v) {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func putPolicy(c *call) (any, error)         { return userPolicies().put(c) }
func putOperatorPolicy(c *call) (any, error) { return operatorPolicies().put(c) }

func (k kind) put(c *call) (any, error) {
	var body struct {
		Pattern    *string        `json:"pattern"`
		ApplyTo    string         `json:"apply-to"`
		Priority   any            `json:"priority"`
		Definition map[string]any `json:"definition"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if err := need(required{"pattern", body.Pattern}); err != nil {
		return nil, err
	}
	if body.Definition == nil {
		return nil, badRequest("[{key_missing,definition}]")
	}
	v, err := c.vhost()
	if err != nil {
		return nil, err
	}
	p := policy.Policy{Name: c.name("name"), Pattern: *body.Pattern, ApplyTo: body.ApplyTo}
	if p.Priority, err = priority(body.Priority); err != nil {
		return nil, err
	}
	p.Definition = policy.Definition(plainNumbers(body.Definition).(map[string]any))
	existed := k.named(v, p.Name) != nil
	return madeIf(!existed), k.set(v, p)
}

// priority is 0 unless there is one.
func priority(v any) (float64, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case json.Number:
		f, err := v.Float64()
		if err == nil {
			return f, nil
		}
	case string:
		return 0, badRequest("Validation failed\n\npriority should be a number, actually was <<%q>>\n", v)
	}
	return 0, badRequest("Validation failed\n\npriority should be a number, actually was %v\n", v)
}

func deletePolicy(c *call) (any, error)         { return userPolicies().remove(c) }
func deleteOperatorPolicy(c *call) (any, error) { return operatorPolicies().remove(c) }

func (k kind) remove(c *call) (any, error) {
	v, err := c.vhost()
	if err != nil {
		return nil, err
	}
	return nil, foundOr(k.delete(v, c.name("name")))
}
