package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/duepost/duepost/internal/management"
)

// closeCmd closes connections of others.
type closeCmd struct {
	apiFlags

	Connection         closeConnectionCmd `cmd:"" help:"Close one connection, by its name in list connections."`
	AllConnections     closeAllCmd        `cmd:"" aliases:"all" help:"Close all connections, or those to a virtual host."`
	AllUserConnections closeUserCmd       `cmd:"" aliases:"user" help:"Close all connections of a user."`
}

// connection closes one.
func (c *closeCmd) connection(ctx context.Context, name, reason string) error {
	_, err := c.ask(ctx, management.Request{Method: http.MethodDelete, Path: management.Path("connections", name), Reason: reason})
	return missing(err, fmt.Sprintf("connection %q", name))
}

type closeConnectionCmd struct {
	Name   string `arg:"" help:"As in '127.0.0.1:40312 -> 127.0.0.1:5672'."`
	Reason string `arg:"" optional:"" default:"closed by an operator" help:"What its client is told."`
}

// Run closes the connection.
func (c *closeConnectionCmd) Run(ctx context.Context, p process, in *closeCmd) error {
	if err := in.connection(ctx, c.Name, c.Reason); err != nil {
		return fmt.Errorf("close connection: %w", err)
	}
	in.say(p, "closed %s", c.Name)
	return nil
}

type closeAllCmd struct {
	VHost  string `name:"vhost" short:"p" placeholder:"NAME" help:"Those to this virtual host only."`
	Reason string `arg:"" optional:"" default:"closed by an operator" help:"What the clients are told."`
}

// Run closes the connections there are; some may have gone meanwhile.
func (c *closeAllCmd) Run(ctx context.Context, p process, in *closeCmd) error {
	path := "connections"
	if c.VHost != "" {
		path = management.Path("vhosts", c.VHost, "connections")
	}
	return in.closeListed(ctx, p, path, c.Reason)
}

type closeUserCmd struct {
	Name   string `arg:"" name:"username" help:"The user."`
	Reason string `arg:"" optional:"" default:"closed by an operator" help:"What the clients are told."`
}

// Run closes the connections of the user.
func (c *closeUserCmd) Run(ctx context.Context, p process, in *closeCmd) error {
	return in.closeListed(ctx, p, management.Path("connections", "username", c.Name), c.Reason)
}

// closeListed closes the connections that a path lists.
func (c *closeCmd) closeListed(ctx context.Context, p process, path, reason string) error {
	var all []struct{ Name string }
	if err := c.get(ctx, path, &all); err != nil {
		return missing(err, listed(path))
	}
	closed := 0
	for _, one := range all {
		switch err := c.connection(ctx, one.Name, reason); {
		case err == nil:
			closed++
		case !isMissing(err):
			return fmt.Errorf("close connection %q: %w", one.Name, err)
		}
	}
	c.say(p, "closed %d", closed)
	return nil
}
