package testbroker

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module is the one that has the program.
const module = "github.com/duepost/duepost"

// BuildDuepost builds the program into dir and returns its path, unless one is given. It may be
// called in any module that knows where ours is.
func BuildDuepost(ctx context.Context, program, dir string) (string, error) {
	if program != "" {
		return program, nil
	}
	program = filepath.Join(dir, "bin", "duepost")
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", module, err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/duepost")
	build.Dir = strings.TrimSpace(string(root))
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build duepost: %w\n%s", err, out)
	}
	return program, nil
}

// Options are what brokers differ in.
type Options struct {
	// Dir is an absolute path of a directory for everything that the broker writes. It is made if
	// it is not there.
	Dir string
	// Management asks for the management API.
	Management bool
	// Config is appended to the configuration: lines of rabbitmq.conf for RabbitMQ. Duepost has
	// Args instead.
	Config string
	// Args are further arguments of "duepost serve". RabbitMQ has Config instead.
	Args []string
}

// StartDuepost serves with the program below the directory of the options and waits until it is
// ready.
func StartDuepost(ctx context.Context, program string, o Options) (*Broker, error) {
	b, err := newBroker("Duepost", o)
	if err != nil {
		return nil, err
	}
	b.command = exec.CommandContext
	b.serve = slices.Concat([]string{program, "serve", "--data-dir", filepath.Join(o.Dir, "data"),
		"--amqp-addr", b.AMQPAddr, "--http-addr", b.HTTPAddr, "--log-level", "warn"}, o.Args)
	if err := b.Start(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// newBroker finds ports that nobody has.
func newBroker(name string, o Options) (b *Broker, err error) {
	b = &Broker{Name: name}
	if b.AMQPAddr, err = freeAddr(); err != nil {
		return nil, err
	}
	if o.Management {
		b.HTTPAddr, err = freeAddr()
	}
	return b, err
}
