package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"strings"

	"github.com/duepost/duepost/internal/config"
	"github.com/duepost/duepost/internal/daemon"
)

// serveCmd runs the broker.
type serveCmd struct {
	Settings    config.Config `embed:""`
	Config      string        `name:"config" placeholder:"FILE" help:"JSON file with settings, one object; keys are the names of these flags without the dashes. Flags win over the environment, the environment over the file."`
	CPUProfile  string        `name:"cpu-profile" placeholder:"FILE" help:"Write a CPU profile from start to stop, for go tool pprof."`
	PrintConfig bool          `name:"print-config" help:"Print the settings in force, secrets masked, and end."`
}

// Run serves until ctx ends.
func (c *serveCmd) Run(ctx context.Context, p process, vars *settings) error {
	if err := c.Settings.Validate(); err != nil {
		return &usageError{err, vars.explain(err, "duepost serve --help; --print-config shows the settings in force")}
	}
	if c.PrintConfig {
		text, err := c.Settings.JSON()
		if err != nil {
			return fmt.Errorf("print configuration: %w", err)
		}
		_, err = fmt.Fprintf(p.stdout, "%s\n", text)
		return err
	}
	if c.CPUProfile != "" {
		stop, err := profileCPU(c.CPUProfile)
		if err != nil {
			return err
		}
		defer stop()
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	return daemon.Run(ctx, c.Settings, newLogger(p.stderr, c.Settings), func(d *daemon.Daemon) {
		fmt.Fprint(p.stdout, welcome(c.Settings, d.AMQPAddr(), d.AMQPSAddr(), d.HTTPAddr()))
	})
}

// gcPercent is by how much the heap may grow between collections, unless GOGC says it. Nearly
// all of a broker's heap is large and without pointers, so that a collection is cheap, while
// the usual 100 would hold as much garbage as there are messages in memory.
const gcPercent = 25

// profileCPU profiles this process until stop.
func profileCPU(file string) (stop func(), err error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("create CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("start CPU profile: %w", err), f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		// A profile that cannot be written out shows when it is read.
		_ = f.Close()
	}, nil
}

func newLogger(w io.Writer, c config.Config) *slog.Logger {
	var level slog.Level
	// Validate has checked the word.
	_ = level.UnmarshalText([]byte(c.LogLevel))
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// welcome says where to connect, and how to see a delayed message with two commands that work
// as they are printed.
func welcome(c config.Config, amqpAddr, amqpsAddr, httpAddr net.Addr) string {
	var b strings.Builder
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		dir = c.DataDir
	}
	fmt.Fprintf(&b, "duepost %s is ready, data in %s\n", config.Version(), dir)
	if amqpAddr != nil {
		fmt.Fprintf(&b, "  AMQP   %s\n", clientURL("amqp", c, amqpAddr))
	}
	if amqpsAddr != nil {
		fmt.Fprintf(&b, "  AMQPS  %s\n", clientURL("amqps", c, amqpsAddr))
	}
	if httpAddr != nil {
		fmt.Fprintf(&b, "  HTTP   http://%s/healthz\n", reachable(httpAddr))
	}
	if amqpAddr == nil {
		return b.String()
	}
	var at string
	if u := clientURL("amqp", c, amqpAddr); u != defaultURL {
		at = " --url " + u
	}
	fmt.Fprintf(&b, `
Send and receive a delayed message from another terminal
(in the source tree: go run ./cmd/duepost in place of duepost):
  duepost publish%[1]s --in 5s --to orders hello
  duepost consume%[1]s --queue orders
`, at)
	return b.String()
}

// clientURL is what a client on this machine connects to; a password that is not the default
// stays secret.
func clientURL(scheme string, c config.Config, a net.Addr) string {
	password := "PASSWORD"
	if c.DefaultPass == config.Default().DefaultPass {
		password = string(c.DefaultPass)
	}
	return fmt.Sprintf("%s://%s:%s@%s/", scheme, url.PathEscape(c.DefaultUser), password, reachable(a))
}

// reachable replaces the address that stands for all of this machine's by the loopback one.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return a.String()
}
