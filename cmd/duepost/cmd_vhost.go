package main

import (
	"context"
	"fmt"

	"github.com/duepost/duepost/internal/management"
)

// vhostCmd administers virtual hosts.
type vhostCmd struct {
	apiFlags

	Add         vhostAddCmd         `cmd:"" help:"Add a virtual host."`
	Update      vhostUpdateCmd      `cmd:"" help:"Replace what is kept about a virtual host."`
	Delete      vhostDeleteCmd      `cmd:"" help:"Delete a virtual host with everything in it, delayed messages included, and close its connections."`
	List        vhostListCmd        `cmd:"" help:"List the virtual hosts."`
	SetLimits   vhostSetLimitsCmd   `cmd:"" help:"Limit the queues and connections of a virtual host."`
	ClearLimits vhostClearLimitsCmd `cmd:"" help:"Lift all limits of a virtual host."`
}

// vhostMetadata is what is kept about a virtual host.
type vhostMetadata struct {
	Description      string   `name:"description" placeholder:"TEXT" help:"What it is for."`
	Tags             []string `name:"tags" placeholder:"TAG,..." help:"For the operators."`
	DefaultQueueType string   `name:"default-queue-type" placeholder:"TYPE" help:"Type of queues that are declared without one: classic or quorum."`
}

func (m *vhostMetadata) body() map[string]any {
	body := map[string]any{"description": m.Description, "tags": tagList(m.Tags)}
	if m.DefaultQueueType != "" {
		body["default_queue_type"] = m.DefaultQueueType
	}
	return body
}

// check returns an error if there is no such virtual host.
func (c *vhostCmd) check(ctx context.Context, name string) error {
	var ignored map[string]any
	return missing(c.get(ctx, management.Path("vhosts", name), &ignored), fmt.Sprintf("vhost %q", name))
}

type vhostAddCmd struct {
	Name string `arg:"" help:"Its name."`
	vhostMetadata
}

// Run adds the virtual host, and refuses one that is there.
func (c *vhostAddCmd) Run(ctx context.Context, p process, in *vhostCmd) error {
	switch err := in.check(ctx, c.Name); {
	case err == nil:
		return &hintedError{fmt.Errorf("add vhost: there is a vhost %q", c.Name), "update changes what is kept about it", exitFailed}
	case !isMissing(err):
		return fmt.Errorf("add vhost %q: %w", c.Name, err)
	}
	if err := in.put(ctx, management.Path("vhosts", c.Name), c.body()); err != nil {
		return fmt.Errorf("add vhost %q: %w", c.Name, err)
	}
	in.say(p, "added vhost %q, in which user %q may do everything", c.Name, in.User)
	return nil
}

type vhostUpdateCmd struct {
	Name string `arg:"" help:"Its name."`
	vhostMetadata
}

// Run replaces what is kept about a virtual host.
func (c *vhostUpdateCmd) Run(ctx context.Context, p process, in *vhostCmd) error {
	if err := in.check(ctx, c.Name); err != nil {
		return fmt.Errorf("update vhost: %w", err)
	}
	if err := in.put(ctx, management.Path("vhosts", c.Name), c.body()); err != nil {
		return fmt.Errorf("update vhost %q: %w", c.Name, err)
	}
	in.say(p, "updated vhost %q", c.Name)
	return nil
}

type vhostDeleteCmd struct {
	Name string `arg:"" help:"Its name."`
}

// Run deletes the virtual host.
func (c *vhostDeleteCmd) Run(ctx context.Context, p process, in *vhostCmd) error {
	if err := in.remove(ctx, management.Path("vhosts", c.Name), fmt.Sprintf("vhost %q", c.Name)); err != nil {
		return fmt.Errorf("delete vhost: %w", err)
	}
	in.say(p, "deleted vhost %q", c.Name)
	return nil
}

type vhostListCmd struct{}

// Run lists the virtual hosts.
func (c *vhostListCmd) Run(ctx context.Context, p process, in *vhostCmd) error {
	return in.list(ctx, p, "vhosts", "name", "description", "tags", "default_queue_type", "messages")
}
