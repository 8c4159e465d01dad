package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/relay"
	"github.com/duepost/duepost/internal/relay/admin"
	"github.com/duepost/duepost/internal/relay/topology"
)

// formatFlag is for verbs that print what programs read, too.
type formatFlag struct {
	Format string `name:"format" enum:"table,json" default:"table" help:"How it is printed: table or json."`
}

// print prints v as JSON, or rows of cells.
func (f formatFlag) print(w io.Writer, v any, rows func(line func(cells ...any))) error {
	if f.Format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows(func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(tw, "\t")
			}
			fmt.Fprint(tw, c)
		}
		fmt.Fprintln(tw)
	})
	return tw.Flush()
}

type relayListCmd struct{ formatFlag }

// Run lists the delayed exchanges.
func (c *relayListCmd) Run(ctx context.Context, p process, in *relayCmd) error {
	api, vhost, err := in.management()
	if err != nil {
		return err
	}
	all, err := topology.Delayed(ctx, api, vhost)
	if err != nil {
		return err
	}
	return c.print(p.stdout, all, func(line func(...any)) {
		line("name", "type", "alternate-exchange")
		for _, x := range all {
			line(x.Name, x.Type, x.Alternate)
		}
	})
}

type relayStatusCmd struct{ formatFlag }

// Run tells what waits. Without the management API what relays hold is not seen.
func (c *relayStatusCmd) Run(ctx context.Context, p process, in *relayCmd) error {
	s, err := c.read(ctx, p, in)
	if err != nil {
		return err
	}
	return c.print(p.stdout, s, func(line func(...any)) {
		line("waiting", s.Waiting)
		line("intake", s.Intake)
		line("rescue", s.Rescue)
		line("parked", s.Parked)
		for _, name := range slices.Sorted(maps.Keys(s.Relays)) {
			line("relay", name, fmt.Sprint(s.Relays[name], " slots"))
		}
		for _, b := range s.Timeline {
			line("due", b.From.Format(time.RFC3339), "to", b.To.Format(time.RFC3339), b.Messages)
		}
	})
}

func (c *relayStatusCmd) read(ctx context.Context, p process, in *relayCmd) (admin.Status, error) {
	if in.Management != noManagement {
		api, vhost, err := in.management()
		if err != nil {
			return admin.Status{}, err
		}
		return admin.Read(ctx, api, vhost)
	}
	conn, err := in.dial()
	if err != nil {
		return admin.Status{}, err
	}
	defer conn.Close() // all was answered
	fmt.Fprintln(p.stderr, "without the management API what relays hold at the moment, and they themselves, are not seen")
	pending, err := topology.CountReady(conn)
	return admin.Of(&pending, conn.Config.Vhost), err
}

type relayParkedCmd struct {
	formatFlag
	Limit int `name:"limit" default:"100" help:"How many to show."`
}

// Run shows parked messages, which stay where they are.
func (c *relayParkedCmd) Run(p process, in *relayCmd) error {
	conn, err := in.dial()
	if err != nil {
		return err
	}
	defer conn.Close() // all was answered
	all, err := relay.ListParked(conn, c.Limit)
	if err != nil {
		return err
	}
	return c.print(p.stdout, all, func(line func(...any)) {
		line("exchange", "key", "due", "bytes", "id", "reason")
		for _, m := range all {
			line(m.Exchange, m.Key, m.Due.Format(time.RFC3339), m.Bytes, m.ID, m.Reason)
		}
	})
}

type relayRedriveCmd struct {
	Exchange string `name:"exchange" placeholder:"NAME" help:"Only messages that were published to this delayed exchange."`
	Limit    int    `name:"limit" default:"10000" help:"How many to look at."`
}

// Run hands on parked messages.
func (c *relayRedriveCmd) Run(ctx context.Context, p process, in *relayCmd) error {
	conn, err := in.dial()
	if err != nil {
		return err
	}
	defer conn.Close() // all was answered
	uri, err := amqp.ParseURI(in.RabbitMQ[0])
	if err != nil {
		return err
	}
	done, err := relay.Redrive(ctx, conn, uri.Username, c.Exchange, c.Limit)
	fmt.Fprintf(p.stdout, "%d handed on, %d left\n", done.Released, done.Left)
	return err
}

type relayRemoveCmd struct{}

// Run takes away what relays have made.
func (*relayRemoveCmd) Run(ctx context.Context, p process, in *relayCmd) error {
	api, vhost, err := in.management()
	if err != nil {
		return err
	}
	conn, err := in.dial()
	if err != nil {
		return err
	}
	defer conn.Close() // all was answered
	err = topology.Remove(ctx, conn, api, vhost)
	if used := new(topology.InUseError); errors.As(err, &used) {
		return &hintedError{err, "stop all relays, delete their exchanges, and wait for what is due or redrive it", exitRefused}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "removed everything of relays in vhost %q\n", vhost)
	return nil
}
