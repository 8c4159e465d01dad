// Command compare loads Duepost, and RabbitMQ where it is installed, with the same load by turns
// on this machine, and prints the medians and their ratios as a Markdown table.
//
//	go run ./bench/compare -runs 3
//
// Absolute figures depend on the machine; the ratios and the broker's CPU time per message are
// what to compare by. Both brokers and the load share the machine, one broker at work at a time.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/duepost/duepost/internal/load"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// options of the command line.
type options struct {
	runs    int
	load    load.Options
	program string
	only    string
}

// run starts the brokers, loads them and prints: the table on stdout, every single result as a
// JSON line on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "duepost-compare-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	brokers, err := start(ctx, o, dir, stderr)
	defer func() {
		err = errors.Join(err, stopAll(brokers))
	}()
	if err != nil {
		return err
	}
	c := newComparison(brokers)
	for i := range o.runs {
		for _, r := range rows(o.load) {
			for _, b := range brokers {
				if r.needsDelay && !b.delays {
					continue
				}
				res, err := b.load(ctx, r)
				if err != nil {
					return fmt.Errorf("run %d, %s, %s: %w", i+1, b.Name, r.title, err)
				}
				c.add(r, b, res)
				if err := json.NewEncoder(stderr).Encode(res); err != nil {
					return err
				}
			}
		}
	}
	fmt.Fprintf(stdout, "%s, %d CPUs, %s/%s; medians of %d runs\n\n", runtime.Version(),
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, o.runs)
	return c.print(stdout)
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{load: load.Defaults()}
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.runs, "runs", 3, "how often to measure each row")
	flags.DurationVar(&o.load.Warmup, "warmup", o.load.Warmup, "not measured")
	flags.DurationVar(&o.load.Duration, "duration", o.load.Duration, "measured, of the timed rows")
	flags.IntVar(&o.load.Messages, "messages", o.load.Messages, "messages of the counted rows")
	flags.StringVar(&o.program, "duepost", "", "path of a built duepost; empty builds one")
	flags.StringVar(&o.only, "only", "", "load only this broker: duepost or rabbitmq")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	return o, o.load.Validate()
}

// row is one line of the table: a scenario with its load.
type row struct {
	title      string
	scenario   string
	options    load.Options
	needsDelay bool
}

// rows are what is compared, in the order of the table.
func rows(o load.Options) []row {
	transient := o
	transient.Persistent = false
	one := o
	one.Publishers, one.Consumers = 1, 1
	delayed := one
	delayed.Messages = o.Messages * 3 / 2 // by default 300,000 over 20 s, 15,000 a second
	burst := one
	burst.BurstIn = max(10*time.Second, time.Duration(o.Messages)*100*time.Microsecond)
	return []row{
		{"plain, persistent, 4+4", load.Plain, o, false},
		{"plain, transient, 4+4", load.Plain, transient, false},
		{"publish, persistent, 4 connections", load.Publish, o, false},
		{"consume, persistent, 4 connections", load.Consume, o, false},
		{"delayed, 1 to 20 s, 1+1", load.Delayed, delayed, true},
		{"burst, 1+1", load.Burst, burst, true},
	}
}
