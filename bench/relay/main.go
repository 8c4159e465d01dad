// Command relay compares three ways of delivering messages on one RabbitMQ: delayed by the relay,
// delayed by a ladder of 28 queues with a time to live, and not delayed at all, which is the floor.
// Each is loaded at the same rates, by turns, and the broker's CPU time per message is what to
// compare by. Then 200,000 messages are published as fast as they go, and among them some that wait
// for one second only, which the others must not hold up.
//
//	DUEPOST_TEST_RABBITMQ43=DIR go run ./bench/relay
//
// It prints a Markdown table, each single result as a JSON line on stderr, and whether the gates
// hold; its exit code is 1 if one does not.
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
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/duepost/duepost/internal/load"
	"github.com/duepost/duepost/internal/testbroker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
}

// options of the command line.
type options struct {
	rates    []int // messages a second
	ladder   []int // those at which the ladder is loaded
	publish  time.Duration
	delayMax time.Duration
	burst    int
	program  string
	version  string
	only     string
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	flags.SetOutput(stderr)
	rates := flags.String("rates", "330,1500,3000", "messages a second of relay and floor, from low to high; empty for none")
	ladder := flags.String("ladder", "330,660,1500", "messages a second of the ladder, from low to high; empty for none")
	flags.DurationVar(&o.publish, "publish", time.Minute, "how long to publish at each rate")
	flags.DurationVar(&o.delayMax, "delay-max", time.Minute, "delays are from a second to this")
	flags.IntVar(&o.burst, "burst", 200_000, "messages published at once at the end; 0 for none")
	flags.StringVar(&o.program, "duepost", "", "path of a built duepost; empty builds one")
	flags.StringVar(&o.version, "rabbitmq", "", "3.10 or 4.3; empty for the newest that is installed")
	flags.StringVar(&o.only, "only", "", "load only the ways whose name begins so: relay, ladder, no delay")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.rates, err = numbers(*rates); err != nil {
		return o, fmt.Errorf("read -rates: %w", err)
	}
	if o.ladder, err = numbers(*ladder); err != nil {
		return o, fmt.Errorf("read -ladder: %w", err)
	}
	if o.delayMax < time.Second || o.publish < time.Second || o.burst < 0 {
		return o, errors.New("-delay-max and -publish must be at least 1s, -burst not negative")
	}
	return o, nil
}

func numbers(text string) (all []int, err error) {
	for one := range strings.SplitSeq(text, ",") {
		if one == "" {
			continue
		}
		n, err := strconv.Atoi(one)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no rate", one)
		}
		all = append(all, n)
	}
	return all, nil
}

// run starts the broker and the relay, loads and prints.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "duepost-relay-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	broker, err := startBroker(ctx, o.version, filepath.Join(dir, "rabbitmq"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Stop()) }()
	program, err := testbroker.BuildDuepost(ctx, o.program, dir)
	if err != nil {
		return err
	}
	r, err := startRelay(ctx, program, broker.URL(), stderr)
	if err != nil {
		return err
	}
	defer r.stop()
	b := bench{options: o, broker: broker, relay: r, log: json.NewEncoder(stderr)}
	if err := b.run(ctx); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s, %s, %d CPUs, %s/%s\n\n", broker.Name, runtime.Version(), runtime.NumCPU(),
		runtime.GOOS, runtime.GOARCH)
	return b.print(stdout)
}

// startBroker starts a RabbitMQ of the version, the newest if there is none.
func startBroker(ctx context.Context, version, dir string) (*testbroker.Broker, error) {
	all, err := testbroker.InstalledRabbitMQs()
	if err != nil {
		return nil, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		if version == "" || all[i].Version == version {
			return all[i].Start(ctx, testbroker.Options{Dir: dir})
		}
	}
	return nil, fmt.Errorf("start RabbitMQ %s: it is not installed (Debian package rabbitmq-server; "+
		"tools/rabbitmq43.sh for 4.3)", version)
}

// bench is one run with what came of it.
type bench struct {
	options
	broker *testbroker.Broker
	relay  *relay
	log    *json.Encoder
	rows   []row
	burst  *load.Result // of the short delays
}

// row is one result.
type row struct {
	Way  string `json:"way"`
	Rate int    `json:"rate"`
	load.Result
}

// Names of the ways.
const (
	byRelay  = "relay"
	byLadder = "ladder of 28"
	noDelay  = "no delay"
)

// run measures all, the rates from low to high and at each one way after the other.
func (b *bench) run(ctx context.Context) error {
	top := max(len(b.rates), len(b.ladder))
	for i := range top {
		for _, one := range []struct {
			way   string
			rates []int
			setup func(url string) (*load.Route, error)
		}{{noDelay, b.rates, setupFloor}, {byRelay, b.rates, setupRelay}, {byLadder, b.ladder, setupLadder}} {
			if i >= len(one.rates) || !strings.HasPrefix(one.way, b.only) {
				continue
			}
			route, err := one.setup(b.broker.URL())
			if err != nil {
				return fmt.Errorf("prepare %s: %w", one.way, err)
			}
			if err := b.measure(ctx, one.way, one.rates[i], route); err != nil {
				return fmt.Errorf("%s at %d/s: %w", one.way, one.rates[i], err)
			}
		}
	}
	if b.options.burst == 0 {
		return nil
	}
	return b.measureBurst(ctx)
}

// measure is one way at one rate.
func (b *bench) measure(ctx context.Context, way string, rate int, route *load.Route) error {
	o := b.load(route)
	o.Rate, o.Messages = rate, rate*int(b.publish/time.Second)
	// One acknowledgement for what comes in 20 ms: a consumer at work.
	o.AckEvery = max(1, rate/50)
	scenario := load.Delayed
	if way == noDelay {
		scenario, o.Duration = load.Plain, b.publish
	}
	if way == byRelay {
		o.HelperPID = b.relay.pid()
	}
	res, err := load.Run(ctx, scenario, o)
	if err != nil {
		return err
	}
	b.rows = append(b.rows, row{way, rate, res})
	return b.log.Encode(b.rows[len(b.rows)-1])
}

// load is what all have in common.
func (b *bench) load(route *load.Route) load.Options {
	o := load.Defaults()
	o.Publishers, o.Consumers, o.Route = 1, 1, route
	o.URL, o.PID, o.Children = b.broker.URL(), b.broker.PID(), true
	o.DelayMin, o.DelayMax = time.Second, b.delayMax
	return o
}

// shortRate is how many messages a second of a burst wait for one second only, shortShare how many in
// all.
const shortRate, shortShare = 500, 20

// measureBurst publishes messages that wait long as fast as they go, and beside them, at a rate that
// is no load, one in twenty that waits for a second. Each kind goes to a queue of its own.
func (b *bench) measureBurst(ctx context.Context) error {
	type outcome struct {
		res load.Result
		err error
	}
	results := map[string]chan outcome{"short": make(chan outcome, 1), "long": make(chan outcome, 1)}
	for name, done := range results {
		route, err := delayedRoute(b.broker.URL(), name)
		if err != nil {
			return err
		}
		o := b.load(route)
		o.Messages, o.HelperPID = b.options.burst/shortShare, b.relay.pid()
		if name == "short" {
			o.Rate, o.DelayMax = shortRate, o.DelayMin
		} else {
			o.Messages, o.DelayMin = b.options.burst-o.Messages, min(30*time.Second, o.DelayMax)
		}
		go func() {
			res, err := load.Run(ctx, load.Delayed, o)
			done <- outcome{res, err}
		}()
	}
	short, long := <-results["short"], <-results["long"]
	if err := errors.Join(short.err, long.err); err != nil {
		return fmt.Errorf("burst: %w", err)
	}
	b.burst = &short.res
	b.rows = append(b.rows, row{"relay, burst, 1 s", 0, short.res}, row{"relay, burst, longer", 0, long.res})
	return errors.Join(b.log.Encode(b.rows[len(b.rows)-2]), b.log.Encode(b.rows[len(b.rows)-1]))
}
