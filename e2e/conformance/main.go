// Command conformance runs the integration tests of the Go client amqp091-go
// against "duepost serve", or with -rabbitmq through "duepost relay --gateway"
// against a RabbitMQ.
//
// It takes the client's sources at the version below out of the module cache,
// compiles their tests in a temporary directory, and runs them against a broker
// built from this repository. The tests want the default ports, so broker and
// tests get a network namespace of their own where the system grants one.
// Nothing of the client is kept. Its tests are as they were written, save that
// those meant for RabbitMQ alone run against any broker.
//
// Every test must pass, save those that left-out.txt names with their reasons.
// A test that skips itself, a name in the list that no test has, and a test that
// never ended are failures too.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// client is the module whose tests are run.
const client = "github.com/rabbitmq/amqp091-go@v1.16.0"

//go:embed left-out.txt
var leftOutText string

//go:embed left-out-rabbitmq.txt
var leftOutOfRabbitMQText string

// options are what the command line says.
type options struct {
	run   string
	url   string
	trace bool
	// rabbitmq is the version of a RabbitMQ to start, empty for Duepost; direct is without the
	// gateway.
	rabbitmq string
	direct   bool
}

func main() {
	var o options
	flag.StringVar(&o.run, "run", "", "run only the tests that match this `pattern`")
	flag.StringVar(&o.url, "url", "", "use the broker at this `URL` instead of starting duepost")
	flag.StringVar(&o.rabbitmq, "rabbitmq", "", "go through the gateway to the installed RabbitMQ of this `version`, 3.10 or 4.3, or all that are installed")
	flag.BoolVar(&o.direct, "direct", false, "with -rabbitmq, go without the gateway")
	flag.BoolVar(&o.trace, "v", false, "print everything that the tests print")
	stage := flag.String("stage", "", "`directory` that an outer run has prepared; set by the program itself")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := conform(ctx, o, *stage); err != nil {
		fmt.Fprintf(os.Stderr, "conformance: %v\n", err)
		os.Exit(1)
	}
}

// conform prepares the programs and runs them in a namespace, or, if stage names
// a prepared directory, is that inner run.
func conform(ctx context.Context, o options, stage string) error {
	if stage != "" {
		if err := raiseLoopback(); err != nil {
			return err
		}
		return run(ctx, o, stage)
	}
	dir, err := os.MkdirTemp("", "duepost-conformance-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := prepare(ctx, dir, o.url == ""); err != nil {
		return err
	}
	if o.rabbitmq != "" {
		return runOnRabbitMQ(ctx, o, dir)
	}
	if o.url != "" {
		return run(ctx, o, dir)
	}
	args := []string{"-stage", dir, "-run", o.run, fmt.Sprintf("-v=%t", o.trace)}
	entered, err := runInNamespace(ctx, args)
	if entered {
		return err
	}
	fmt.Printf("no network namespace to be had (%v): using ports 5672 and 15672 of this machine\n", err)
	return run(ctx, o, dir)
}

// leftOut is a test that is not run, and why.
type leftOut struct{ test, reason string }

// parseLeftOut reads "TestName: reason" lines; # starts a comment.
func parseLeftOut(text string) ([]leftOut, error) {
	var list []leftOut
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		test, reason, ok := strings.Cut(line, ": ")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("left-out.txt: %q gives no reason", line)
		}
		list = append(list, leftOut{test, reason})
	}
	return list, nil
}

// Paths below the prepared directory.
func sources(dir string) string    { return filepath.Join(dir, "client") }
func testBinary(dir string) string { return filepath.Join(dir, "client.test") }
func brokerPath(dir string) string { return filepath.Join(dir, "duepost") }
