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
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/duepost/duepost/internal/requirement"
)

// rabbit43Variable names a directory with a Debian in which RabbitMQ 4.3 is installed. Where it is
// set, that one is shown too.
const rabbit43Variable = "DUEPOST_PARITY_RABBITMQ43"

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

// run compares with each RabbitMQ that is there and prints a table for each.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	documents, err := os.ReadFile(o.semantics)
	if err != nil {
		return fmt.Errorf("read what is documented: %w", err)
	}
	peers, err := installed()
	if err != nil {
		return err
	}
	if len(peers) == 0 {
		return missing(stdout)
	}
	dir, err := os.MkdirTemp("", "duepost-parity-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	program, err := build(ctx, o.program, dir)
	if err != nil {
		return err
	}
	for _, p := range peers {
		p.dir = filepath.Join(dir, p.version)
		err = errors.Join(err, compareWith(ctx, o, p, program, string(documents), stdout))
	}
	return err
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

// compareWith plays all rules on a new Duepost and on a new RabbitMQ and judges what came of it.
func compareWith(ctx context.Context, o options, p peer, program, documents string, stdout io.Writer) (err error) {
	theirs, ours, err := startBoth(ctx, p, program)
	defer func() {
		for _, b := range []*broker{theirs, ours} {
			if b != nil {
				err = errors.Join(err, b.stop())
			}
		}
	}()
	if err != nil {
		return err
	}
	rows := play(ctx, o.run, theirs, ours)
	verdicts := judge(rows, differencesOf(p.version), documents, o.run.String() == "")
	if o.full != "" {
		if err := writeFull(o.full+"."+p.version, verdicts); err != nil {
			return err
		}
	}
	return report(stdout, theirs.name, verdicts)
}
