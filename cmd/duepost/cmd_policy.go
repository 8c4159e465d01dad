package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/duepost/duepost/internal/management"
)

// policyCmd administers policies.
type policyCmd struct {
	apiFlags
	vhostFlag
	Operator bool `name:"operator" help:"Operator policies instead of policies."`

	Set    policySetCmd    `cmd:"" help:"Set a policy, or replace the one of that name."`
	Delete policyDeleteCmd `cmd:"" aliases:"clear" help:"Delete a policy."`
	List   policyListCmd   `cmd:"" help:"List the policies of a virtual host."`
}

// kind is the kind of policies by its path.
func (c *policyCmd) kind() string {
	if c.Operator {
		return "operator-policies"
	}
	return "policies"
}

// called is what messages call a policy.
func (c *policyCmd) called(name string) string {
	kind := "policy"
	if c.Operator {
		kind = "operator policy"
	}
	return fmt.Sprintf("%s %q in vhost %q", kind, name, c.VHost)
}

type policySetCmd struct {
	Name       string `arg:"" help:"Its name."`
	Pattern    string `arg:"" help:"Regular expression for the names it applies to."`
	Definition string `arg:"" help:"Settings as a JSON object, as in '{\"max-length\": 1000}'."`
	Priority   int    `name:"priority" default:"0" help:"Of several that match, the highest applies."`
	ApplyTo    string `name:"apply-to" default:"all" enum:"all,queues,classic_queues,quorum_queues,streams,exchanges" help:"What it applies to: all, queues, classic_queues, quorum_queues, streams, exchanges."`
}

// Run sets the policy.
func (c *policySetCmd) Run(ctx context.Context, p process, in *policyCmd) error {
	var definition map[string]json.RawMessage
	if err := json.Unmarshal([]byte(c.Definition), &definition); err != nil {
		return &usageError{fmt.Errorf("definition: is no JSON object: %w", err), `'{"max-length": 1000}' is one`}
	}
	err := in.put(ctx, management.Path(in.kind(), in.VHost, c.Name), map[string]any{
		"pattern": c.Pattern, "definition": definition, "priority": c.Priority, "apply-to": c.ApplyTo,
	})
	if err != nil {
		return fmt.Errorf("set %s: %w", in.called(c.Name), err)
	}
	in.say(p, "set %s", in.called(c.Name))
	return nil
}

type policyDeleteCmd struct {
	Name string `arg:"" help:"Its name."`
}

// Run deletes the policy.
func (c *policyDeleteCmd) Run(ctx context.Context, p process, in *policyCmd) error {
	if err := in.remove(ctx, management.Path(in.kind(), in.VHost, c.Name), in.called(c.Name)); err != nil {
		return fmt.Errorf("delete policy: %w", err)
	}
	in.say(p, "deleted %s", in.called(c.Name))
	return nil
}

type policyListCmd struct{}

// Run lists the policies.
func (c *policyListCmd) Run(ctx context.Context, p process, in *policyCmd) error {
	return in.list(ctx, p, management.Path(in.kind(), in.VHost), "name", "pattern", "apply-to", "definition", "priority")
}
