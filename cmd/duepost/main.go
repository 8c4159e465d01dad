// Command duepost is the whole product in one binary: the broker (serve), a short story that
// shows it at work (demo), client verbs that work against any AMQP 0-9-1 broker (publish, consume,
// bench), and verbs for operators on top of the management API (policy, user, list and so on). main.go knows the verbs and how a run ends; each verb has a file of its own
// and hands its work to a package under internal.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the command line. The help of a verb is its doc comment to the user.
type cli struct {
	Serve       serveCmd       `cmd:"" help:"Run the broker until SIGTERM or SIGINT."`
	Demo        demoCmd        `cmd:"" help:"Show delayed messages, and a crash they survive, in about 15 seconds."`
	Relay       relayCmd       `cmd:"" help:"Delayed exchanges on RabbitMQ itself."`
	Publish     publishCmd     `cmd:"" help:"Publish messages, now or delayed, to any AMQP 0-9-1 broker."`
	Consume     consumeCmd     `cmd:"" help:"Print the messages of a queue, with how late each one came."`
	Bench       benchCmd       `cmd:"" help:"Load any AMQP 0-9-1 broker and print one JSON line per result."`
	Store       storeCmd       `cmd:"" help:"Work on a data directory without a broker."`
	Policy      policyCmd      `cmd:"" help:"Set, delete and list policies."`
	User        userCmd        `cmd:"" help:"Add, change, delete and list users."`
	Permissions permissionsCmd `cmd:"" help:"Set, clear and list what users may do."`
	VHost       vhostCmd       `cmd:"" name:"vhost" help:"Add, delete and list virtual hosts."`
	Definitions definitionsCmd `cmd:"" help:"Export and import definitions."`
	List        listCmd        `cmd:"" help:"List queues, exchanges, connections and more."`
	Close       closeCmd       `cmd:"" help:"Close connections."`

	Version versionCmd `cmd:"" help:"Print version, Go version and platform."`

	ShowVersion versionFlag `name:"version" help:"Same as the verb version."`
}

// process is what a run has of the outside world, so that tests can give it another one.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string // NAME=VALUE
}

func main() {
	os.Exit(run(context.Background(), os.Args[1:], process{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(),
	}))
}

// run parses args, runs the verb and returns the exit code.
func run(ctx context.Context, args []string, p process) int {
	ctx, stop := signalContext(ctx)
	defer stop()

	var app cli
	var exited *int
	vars := newSettings(p.environ)
	unspecified := len(args) == 0
	if unspecified {
		args = []string{"--help"}
	}
	parser, err := kong.New(&app,
		kong.Name("duepost"),
		kong.Description(description),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(code int) { exited = &code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.PostBuild(vars.name),
		kong.ValueFormatter(vars.help),
		kong.Resolvers(vars),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(p, vars),
	)
	if err != nil {
		return report(p.stderr, err)
	}
	// Help is printed by a flag hook that ends the process: here it only notes the code, so the
	// rest of the parse is of no interest.
	verb, err := parser.Parse(joinNegatives(parser.Model, args))
	switch {
	case unspecified:
		return exitUsage
	case exited != nil:
		return *exited
	}
	if vars.fault != nil {
		return report(p.stderr, &usageError{vars.fault, "docs/CONFIGURATION.md shows such a file"})
	}
	if err != nil {
		return report(p.stderr, &usageError{err, vars.explain(err, usageHint(parser.Model, args[0]))})
	}
	vars.warnUnknown(p.stderr)
	return report(p.stderr, verb.Run())
}

// description heads the help. The exit codes are part of what scripts may rely on.
const description = `An AMQP 0-9-1 broker with delayed messages built in.

Exit codes: 0 done; 1 the operation did not succeed; 2 wrong command line or configuration;
3 cannot start, because an address or the data directory is not to be had; 4 it ran, and what
it was to check did not hold (consume: fewer than --count; demo, bench: lost, early or late;
store check: damage).`

// signalContext ends with the first SIGINT or SIGTERM; from then on the signals have their
// default effect again, so that a second one ends the process at once.
func signalContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// usageHint names the help that fits what was typed.
func usageHint(app *kong.Application, first string) string {
	for _, verb := range app.Children {
		if verb.Name == first {
			return fmt.Sprintf("duepost %s --help lists what is allowed", first)
		}
	}
	return "duepost --help lists the verbs"
}
