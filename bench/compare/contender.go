package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/duepost/duepost/internal/load"
	"github.com/duepost/duepost/internal/testbroker"
)

// contender is a broker that is loaded.
type contender struct {
	*testbroker.Broker
	delays bool // has delayed exchanges; RabbitMQ's are a plugin that does not come with it
}

// start starts what is to be compared. Brokers that were started are returned with an error too.
func start(ctx context.Context, o options, dir string, stderr io.Writer) (all []*contender, err error) {
	if !strings.EqualFold(o.only, "rabbitmq") {
		program, err := testbroker.BuildDuepost(ctx, o.program, dir)
		if err != nil {
			return all, err
		}
		b, err := testbroker.StartDuepost(ctx, program, testbroker.Options{Dir: filepath.Join(dir, "duepost")})
		if err != nil {
			return all, err
		}
		all = append(all, &contender{b, true})
	}
	if strings.EqualFold(o.only, "duepost") {
		return all, nil
	}
	installed, err := testbroker.InstalledRabbitMQs()
	if err != nil {
		return all, err
	}
	if len(installed) == 0 {
		fmt.Fprintln(stderr, "RabbitMQ is not installed (Debian package rabbitmq-server): no ratios")
		return all, nil
	}
	b, err := installed[0].Start(ctx, testbroker.Options{Dir: filepath.Join(dir, "rabbitmq")})
	if err != nil {
		return all, err
	}
	return append(all, &contender{b, false}), nil
}

// load puts one row's load on the broker.
func (c *contender) load(ctx context.Context, r row) (load.Result, error) {
	o := r.options
	o.URL, o.PID, o.Children = c.URL(), c.PID(), true
	return load.Run(ctx, r.scenario, o)
}

// stopAll stops brokers in order.
func stopAll(all []*contender) (err error) {
	for _, c := range all {
		err = errors.Join(err, c.Stop())
	}
	return err
}
