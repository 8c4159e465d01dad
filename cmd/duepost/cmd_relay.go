package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/management"
	"github.com/duepost/duepost/internal/relay"
	"github.com/duepost/duepost/internal/relay/topology"
)

// relayCmd is delayed exchanges on RabbitMQ.
type relayCmd struct {
	RabbitMQ   []string `name:"rabbitmq" sep:"," default:"amqp://guest:guest@127.0.0.1:5672/" placeholder:"URL" help:"The RabbitMQ, 3.10 or later, with the virtual host. Several nodes of a cluster are tried in turn."`
	Management string   `name:"management" default:"http://{host}:15672" placeholder:"URL" help:"The management API of RabbitMQ, where the relay sees to it that no policy acts on its queues; {host} is the node that it is connected to; none to trust that there is no such policy."`

	Run      relayRunCmd      `cmd:"" default:"withargs" help:"Hand on delayed messages until SIGTERM or SIGINT. Several may run."`
	Exchange relayExchangeCmd `cmd:"" help:"Declare and delete delayed exchanges."`
	Status   relayStatusCmd   `cmd:"" help:"Tell what waits, when it is due, and which relays are alive."`
	Parked   relayParkedCmd   `cmd:"" help:"Show what could not be delivered."`
	Redrive  relayRedriveCmd  `cmd:"" help:"Hand on what could not be delivered, now."`
	Remove   relayRemoveCmd   `cmd:"" help:"Take away everything that relays have made, if it is empty and nobody uses it."`
}

// dial connects to the first node that answers, for a short errand.
func (c *relayCmd) dial() (conn *amqp.Connection, err error) {
	for _, url := range c.RabbitMQ {
		if conn, err = (brokerURL{url}).dial("relay"); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// management is the API of the first node, and the virtual host of its URL.
func (c *relayCmd) management() (api *management.Client, vhost string, err error) {
	uri, err := amqp.ParseURI(c.RabbitMQ[0])
	switch {
	case err != nil:
		err = &usageError{fmt.Errorf("--rabbitmq: %w", err), "the form is amqp://USER:PASSWORD@HOST:PORT/VHOST"}
	case c.Management == noManagement:
		err = &usageError{errors.New("--management none: this verb needs the management API"), "duepost relay --help says how to name it"}
	}
	return relay.Management(uri, c.Management), uri.Vhost, err
}

// noManagement is said of a RabbitMQ without management API.
const noManagement = "none"

// relayRunCmd is the relay itself, and its gateway.
type relayRunCmd struct {
	VHosts []string `name:"vhost" sep:"none" placeholder:"NAME" help:"A virtual host to work in, instead of that of the URL; may be repeated; all for every one."`

	Exchanges string `name:"exchanges" placeholder:"FILE" help:"A YAML file of delayed exchanges, which are declared if they are not there."`

	HTTP string `name:"http" placeholder:"HOST:PORT" help:"Answer /health/live, /health/ready, /metrics and /api/relay/status there, to everybody who asks; nowhere unless set."`
	Hold int    `name:"hold" default:"100000" placeholder:"N" help:"About how many messages to hold in memory at most, of those that are due in the next seconds; 1,000 to 300,000."`

	Gateway gatewayFlags `embed:""`
}

// Run hands on messages, or serves the gateway, or both, until the context ends.
func (c *relayRunCmd) Run(ctx context.Context, p process, in *relayCmd) error {
	if err := c.Gateway.check(); err != nil {
		return err
	}
	if c.HTTP != "" && c.Gateway.Only {
		return &usageError{errors.New("--http: tells of relays, of which --gateway-only has none"), "leave one of them out"}
	}
	// The first connection is tried here: it tells a wrong URL or password with a hint.
	conn, err := in.dial()
	if err != nil {
		return err
	}
	if err := conn.CloseDeadline(time.Now().Add(dialTimeout)); err != nil {
		return fmt.Errorf("start relay: %w", err)
	}
	log := slog.New(slog.NewTextHandler(p.stderr, nil))
	var parts []func(context.Context) error
	if c.Gateway.Addr != "" {
		g, err := c.Gateway.open(in.RabbitMQ, log)
		if err != nil {
			return err
		}
		parts = append(parts, g.run)
	}
	if !c.Gateway.Only {
		fleet, err := c.fleet(in, log)
		if err != nil {
			return err
		}
		if c.HTTP != "" {
			serve, err := serveAdmin(c.HTTP, fleet, in, log)
			if err != nil {
				return err
			}
			parts = append(parts, serve)
		}
		parts = append(parts, func(ctx context.Context) error {
			if err := fleet.Run(ctx); err != nil {
				return fmt.Errorf("run relay: %w", err)
			}
			return nil
		})
	}
	return runAll(ctx, parts)
}

// fleet makes the relays.
func (c *relayRunCmd) fleet(in *relayCmd, log *slog.Logger) (*relay.Fleet, error) {
	cfg := relay.Config{URLs: in.RabbitMQ, Management: in.Management, Hold: c.Hold, Log: log}
	if c.Exchanges != "" {
		text, err := os.ReadFile(c.Exchanges)
		if err == nil {
			cfg.Exchanges, err = topology.ReadKept(text)
		}
		if err != nil {
			return nil, &usageError{fmt.Errorf("--exchanges %s: %w", c.Exchanges, err), "docs/RELAY.md shows such a file"}
		}
	}
	if in.Management == noManagement {
		cfg.Management = ""
		log.Warn("policies are not looked at: one that acts on the relay's queues loses messages",
			"set", topology.PolicyCommand("VHOST"))
	}
	fleet, err := relay.NewFleet(cfg, c.VHosts)
	if err != nil {
		return nil, &usageError{err, "duepost relay --help says what is allowed"}
	}
	return fleet, nil
}

// relayExchangeCmd administers delayed exchanges.
type relayExchangeCmd struct {
	List    relayListCmd    `cmd:"" help:"List delayed exchanges."`
	Declare relayDeclareCmd `cmd:"" help:"Declare a delayed exchange. Doing it again changes nothing."`
	Delete  relayDeleteCmd  `cmd:"" help:"Delete a delayed exchange with its bindings. What waits for it is parked when it is due."`
	Move    relayMoveCmd    `cmd:"" name:"move-bindings" help:"Move bindings that lead past the delay to where they belong."`
}

type relayDeclareCmd struct {
	Name      string `arg:"" help:"Its name, to which clients publish. They bind queues to NAME.duepost."`
	Type      string `name:"type" enum:"direct,topic,fanout,headers" default:"direct" help:"How its bindings are read: direct, topic, fanout or headers."`
	Alternate string `name:"alternate-exchange" placeholder:"NAME" help:"Where what nobody takes goes when it is due."`
}

// Run declares the exchange.
func (c *relayDeclareCmd) Run(p process, in *relayCmd) error {
	conn, err := in.dial()
	if err != nil {
		return err
	}
	defer conn.Close() // all was answered
	x := topology.Exchange{Name: c.Name, Type: c.Type, Durable: true, Alternate: c.Alternate}
	if err := topology.DeclareExchange(conn, x); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "declared delayed exchange %q; bind queues to %q\n", c.Name, topology.DueExchange(c.Name))
	return nil
}

type relayDeleteCmd struct {
	Name string `arg:"" help:"Its name."`
}

// Run deletes the exchange.
func (c *relayDeleteCmd) Run(p process, in *relayCmd) error {
	conn, err := in.dial()
	if err != nil {
		return err
	}
	defer conn.Close() // all was answered
	switch found, err := topology.IsDelayed(conn, c.Name); {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("delete exchange: there is no delayed exchange %q", c.Name)
	}
	if err := topology.DeleteExchange(conn, c.Name); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "deleted delayed exchange %q\n", c.Name)
	return nil
}

// relayMoveCmd moves what clients have bound to NAME, and not to NAME.duepost.
type relayMoveCmd struct {
	Name string `arg:"" help:"The delayed exchange."`
}

// Run moves the bindings.
func (c *relayMoveCmd) Run(ctx context.Context, p process, in *relayCmd) error {
	api, vhost, err := in.management()
	if err != nil {
		return err
	}
	found, err := topology.ForeignBindings(ctx, api, vhost)
	if err != nil {
		return err
	}
	moved := 0
	for _, b := range found {
		if b.Source != c.Name {
			continue
		}
		if err := topology.MoveBinding(ctx, api, vhost, b); err != nil {
			return err
		}
		moved++
		fmt.Fprintf(p.stdout, "moved %s to %q\n", b, topology.DueExchange(c.Name))
	}
	fmt.Fprintf(p.stdout, "%d bindings moved\n", moved)
	return nil
}
