// Command parity runs one black-box program against Duepost and against a real RabbitMQ, and
// prints what each of them does about every rule that a client can see.
//
// A rule is a short piece of client code that notes what it observes. The notes of both brokers
// are compared line by line. Where they differ, differences.go must name the rule and the place in
// docs/SEMANTICS.md that documents it; a difference that is not named is a failure, and so is a
// named one that is none any more.
//
// It knows how to start both brokers and nothing of the inside of either. Every rule has names of
// its own for queues and exchanges, so that all rules share two brokers and run side by side.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/duepost/duepost/internal/requirement"
	"github.com/duepost/duepost/internal/testbroker"
)

// options are what the command line says.
type options struct {
	run       *regexp.Regexp
	program   string
	semantics string
	full      string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(1)
	}
}

// run compares with each RabbitMQ that is there and prints one table.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	documents, err := os.ReadFile(o.semantics)
	if err != nil {
		return fmt.Errorf("read what is documented: %w", err)
	}
	installed, err := testbroker.InstalledRabbitMQs()
	if err != nil {
		return err
	}
	if len(installed) == 0 || installed[0].Version != "3.10" {
		return missing(stdout)
	}
	dir, err := os.MkdirTemp("", "duepost-parity-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	program, err := testbroker.BuildDuepost(ctx, o.program, dir)
	if err != nil {
		return err
	}
	all, err := start(ctx, installed, program, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.stop()) }()
	return compare(ctx, o, all, string(documents), stdout)
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("parity", flag.ContinueOnError)
	flags.SetOutput(stderr)
	pattern := flags.String("run", "", "only the rules whose name matches this `pattern`")
	flags.StringVar(&o.program, "duepost", "", "`path` of a built duepost; empty builds one")
	flags.StringVar(&o.semantics, "semantics", "docs/SEMANTICS.md", "`file` that documents the differences")
	flags.StringVar(&o.full, "full", "", "write every line that was observed to this `file`")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	o.run, err = regexp.Compile(*pattern)
	return o, err
}

// missing says loudly that nothing was compared. Where requirements are strict it is a failure.
func missing(stdout io.Writer) error {
	text := "needs RabbitMQ, which is missing here (Debian package rabbitmq-server)"
	if requirement.Strict() {
		return fmt.Errorf("%s, and %s=all forbids to skip", text, requirement.Variable)
	}
	_, err := fmt.Fprintln(stdout, "--- SKIP: parity", text)
	return err
}

// compare plays all rules on all brokers and judges what came of it.
func compare(ctx context.Context, o options, all *brokers, documents string, stdout io.Writer) error {
	table := table{verdicts: judge(play(ctx, o.run, all), differences(), documents, o.run.String() == "")}
	for _, b := range all.theirs {
		table.peers = append(table.peers, b.Name)
	}
	if o.full != "" {
		if err := table.writeFull(o.full); err != nil {
			return err
		}
	}
	return table.print(stdout)
}
