package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/duepost/duepost/internal/load"
)

// benchCmd loads a broker. The defaults are those of docs/BENCHMARKS.md.
type benchCmd struct {
	brokerURL
	Scenarios      []string      `arg:"" optional:"" name:"scenario" enum:"publish,consume,plain,delayed,burst" default:"plain" help:"What to do, one after the other: publish, consume, plain (both at once), delayed (delays spread over a range), burst (all due at one instant). Default: plain."`
	Publishers     int           `name:"publishers" short:"p" default:"4" help:"Publishing connections."`
	Consumers      int           `name:"consumers" short:"c" default:"4" help:"Consuming connections."`
	Queues         int           `name:"queues" default:"1" help:"Queues, shared out evenly."`
	Size           int           `name:"size" default:"256" help:"Bytes of a body."`
	Transient      bool          `name:"transient" help:"Neither durable nor confirmed nor acknowledged. Default: persistent, with confirms and manual acks."`
	Window         int           `name:"window" default:"1000" help:"Unconfirmed messages per publisher."`
	AckEvery       int           `name:"ack-every" default:"100" help:"Deliveries per basic.ack (multiple)."`
	Prefetch       int           `name:"prefetch" default:"2000" help:"Prefetch count per consumer."`
	Warmup         time.Duration `name:"warmup" default:"3s" help:"Not measured (publish, plain)."`
	Duration       time.Duration `name:"duration" default:"10s" help:"Measured (publish, plain)."`
	Messages       int           `name:"messages" short:"n" default:"200000" help:"Messages in all (consume, delayed, burst)."`
	DelayMin       time.Duration `name:"delay-min" default:"1s" help:"Shortest delay (delayed)."`
	DelayMax       time.Duration `name:"delay-max" default:"20s" help:"Longest delay (delayed)."`
	BurstIn        time.Duration `name:"burst-in" default:"30s" help:"From the start to the common due instant (burst); must leave time to publish."`
	Patience       time.Duration `name:"patience" default:"30s" help:"What has not come for so long counts as lost."`
	BrokerPID      int           `name:"broker-pid" placeholder:"PID" help:"Process id of the broker on this machine: gives its CPU time per message and its memory (Linux)."`
	BrokerChildren bool          `name:"broker-children" help:"Count the descendants of --broker-pid as well."`
}

// Run plays the scenarios and prints a JSON line for each.
func (c *benchCmd) Run(ctx context.Context, p process) error {
	o := c.options()
	if err := o.Validate(); err != nil {
		return &usageError{err, "duepost bench --help"}
	}
	conn, err := c.dial("bench")
	if err != nil {
		return err
	}
	if err := conn.Close(); err != nil {
		return fmt.Errorf("close connection: %w", err)
	}
	var unmet error
	for _, scenario := range c.Scenarios {
		res, err := load.Run(ctx, scenario, o)
		if err != nil {
			return fmt.Errorf("scenario %s: %w", scenario, err)
		}
		if err := json.NewEncoder(p.stdout).Encode(res); err != nil {
			return fmt.Errorf("print result: %w", err)
		}
		if res.Lost > 0 || res.Early > 0 {
			unmet = errors.Join(unmet, fmt.Errorf("scenario %s: %d lost, %d early", scenario, res.Lost, res.Early))
		}
	}
	if unmet != nil {
		return &hintedError{unmet, "", exitUnmet}
	}
	return nil
}

func (c *benchCmd) options() load.Options {
	return load.Options{
		URL:        c.URL,
		Publishers: c.Publishers, Consumers: c.Consumers, Queues: c.Queues,
		Size: c.Size, Persistent: !c.Transient,
		Window: c.Window, AckEvery: c.AckEvery, Prefetch: c.Prefetch,
		Warmup: c.Warmup, Duration: c.Duration, Messages: c.Messages,
		DelayMin: c.DelayMin, DelayMax: c.DelayMax, BurstIn: c.BurstIn,
		Patience: c.Patience,
		PID:      c.BrokerPID, Children: c.BrokerChildren,
	}
}
