package main

import (
	"context"
	"fmt"

	"github.com/duepost/duepost/internal/management"
)

// permissionsCmd administers permissions and topic permissions.
type permissionsCmd struct {
	apiFlags
	vhostFlag

	Set        permissionsSetCmd        `cmd:"" help:"Set what a user may do in a virtual host."`
	Clear      permissionsClearCmd      `cmd:"" aliases:"delete" help:"Take all rights in a virtual host from a user."`
	List       permissionsListCmd       `cmd:"" help:"List the permissions in a virtual host."`
	SetTopic   permissionsSetTopicCmd   `cmd:"" help:"Limit the routing keys of a user in a topic exchange."`
	ClearTopic permissionsClearTopicCmd `cmd:"" aliases:"delete-topic" help:"Lift such limits."`
	ListTopic  permissionsListTopicCmd  `cmd:"" help:"List the limits of routing keys in a virtual host."`
}

type permissionsSetCmd struct {
	Name      string `arg:"" name:"username" help:"The user."`
	Configure string `arg:"" help:"Regular expression for what it may declare and delete; '' is nothing, '.*' everything."`
	Write     string `arg:"" help:"The same for what it may publish to."`
	Read      string `arg:"" help:"The same for what it may consume from."`
}

// Run sets the permission.
func (c *permissionsSetCmd) Run(ctx context.Context, p process, in *permissionsCmd) error {
	err := in.put(ctx, management.Path("permissions", in.VHost, c.Name), map[string]any{
		"configure": c.Configure, "write": c.Write, "read": c.Read})
	if err != nil {
		return fmt.Errorf("set permissions of user %q in vhost %q: %w", c.Name, in.VHost, err)
	}
	in.say(p, "user %q may configure '%s', write '%s', read '%s' in vhost %q", c.Name, c.Configure, c.Write, c.Read, in.VHost)
	return nil
}

type permissionsClearCmd struct {
	Name string `arg:"" name:"username" help:"The user."`
}

// Run takes the permission away.
func (c *permissionsClearCmd) Run(ctx context.Context, p process, in *permissionsCmd) error {
	what := fmt.Sprintf("permission of user %q in vhost %q", c.Name, in.VHost)
	if err := in.remove(ctx, management.Path("permissions", in.VHost, c.Name), what); err != nil {
		return fmt.Errorf("clear permissions: %w", err)
	}
	in.say(p, "user %q may do nothing in vhost %q", c.Name, in.VHost)
	return nil
}

type permissionsListCmd struct{}

// Run lists the permissions.
func (c *permissionsListCmd) Run(ctx context.Context, p process, in *permissionsCmd) error {
	return in.list(ctx, p, management.Path("vhosts", in.VHost, "permissions"), "user", "configure", "write", "read")
}

type permissionsSetTopicCmd struct {
	Name     string `arg:"" name:"username" help:"The user."`
	Exchange string `arg:"" help:"The topic exchange."`
	Write    string `arg:"" help:"Regular expression for the keys it may publish with; {username} and {vhost} are filled in."`
	Read     string `arg:"" help:"The same for the keys it may bind with."`
}

// Run sets the topic permission.
func (c *permissionsSetTopicCmd) Run(ctx context.Context, p process, in *permissionsCmd) error {
	err := in.put(ctx, management.Path("topic-permissions", in.VHost, c.Name), map[string]any{
		"exchange": c.Exchange, "write": c.Write, "read": c.Read})
	if err != nil {
		return fmt.Errorf("set topic permissions of user %q in vhost %q: %w", c.Name, in.VHost, err)
	}
	in.say(p, "user %q may write '%s', read '%s' in exchange %q in vhost %q", c.Name, c.Write, c.Read, c.Exchange, in.VHost)
	return nil
}

type permissionsClearTopicCmd struct {
	Name     string `arg:"" name:"username" help:"The user."`
	Exchange string `arg:"" optional:"" help:"The topic exchange; all of them when absent."`
}

// Run takes topic permissions away.
func (c *permissionsClearTopicCmd) Run(ctx context.Context, p process, in *permissionsCmd) error {
	path := management.Path("topic-permissions", in.VHost, c.Name)
	if c.Exchange != "" {
		path = management.Path("topic-permissions", in.VHost, c.Name, c.Exchange)
	}
	what := fmt.Sprintf("topic permission of user %q in vhost %q", c.Name, in.VHost)
	if err := in.remove(ctx, path, what); err != nil {
		return fmt.Errorf("clear topic permissions: %w", err)
	}
	in.say(p, "cleared every %s", what)
	return nil
}

type permissionsListTopicCmd struct{}

// Run lists the topic permissions.
func (c *permissionsListTopicCmd) Run(ctx context.Context, p process, in *permissionsCmd) error {
	return in.list(ctx, p, management.Path("vhosts", in.VHost, "topic-permissions"), "user", "exchange", "write", "read")
}
