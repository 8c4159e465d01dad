package testbroker

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/duepost/duepost/internal/requirement"
)

// RabbitMQ43Variable names a directory with a Debian in which RabbitMQ 4.3 is installed, as
// tools/rabbitmq43.sh makes it. Programs and tests use that version where it is set.
const RabbitMQ43Variable = "DUEPOST_TEST_RABBITMQ43"

// Where Debian's package rabbitmq-server has the scripts that need no service manager.
const (
	rabbitServer  = "/usr/lib/rabbitmq/bin/rabbitmq-server"
	rabbitControl = "/usr/lib/rabbitmq/bin/rabbitmqctl"
)

// inside is where a RabbitMQ in a Debian of its own sees its directory.
const inside = "/mnt"

// RabbitMQ is an installation: this machine's, or one in a Debian of its own.
type RabbitMQ struct {
	// Version is "3.10" or "4.3".
	Version string
	root    string // of a Debian of its own; empty for this machine's
}

// InstalledRabbitMQs lists the installations, that of this machine first. A variable that names
// none is a mistake.
func InstalledRabbitMQs() (all []RabbitMQ, err error) {
	if _, err := os.Stat(rabbitServer); err == nil {
		all = append(all, RabbitMQ{Version: "3.10"})
	}
	if root := os.Getenv(RabbitMQ43Variable); root != "" {
		if _, err := os.Stat(filepath.Join(root, rabbitServer)); err != nil {
			return nil, fmt.Errorf("find RabbitMQ of %s: %w", RabbitMQ43Variable, err)
		}
		all = append(all, RabbitMQ{Version: "4.3", root: root})
	}
	return all, nil
}

// StartRabbitMQ starts this machine's RabbitMQ for a test, which it ends with; where there is none
// the test is skipped, or fails where nothing may be missing. Without a directory in the options
// it has one of the test's.
func StartRabbitMQ(t testing.TB, o Options) *Broker {
	t.Helper()
	requirement.File(t, "Debian package rabbitmq-server", rabbitServer)
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	b, err := RabbitMQ{Version: "3.10"}.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("what %s printed last:\n%s", b.Name, b.Output())
		}
	})
	return b
}

// Start runs the installation as it is out of the box, save what the options say, and waits until
// it is ready, which takes about 8 s. Statistics of the management API are gathered each second
// instead of each five, so that nobody waits for them.
func (r RabbitMQ) Start(ctx context.Context, o Options) (*Broker, error) {
	b, err := r.prepare(o)
	if err != nil {
		return nil, err
	}
	if err := b.Start(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// prepare makes all that a broker needs and does not start it.
func (r RabbitMQ) prepare(o Options) (*Broker, error) {
	b, err := newBroker("RabbitMQ "+r.Version, o)
	if err != nil {
		return nil, err
	}
	distAddr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	if err := r.writeFiles(b, o); err != nil {
		return nil, err
	}
	home := r.Seen(o.Dir)
	env := append(os.Environ(),
		"HOME="+home,
		"RABBITMQ_NODENAME="+b.node(),
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+port(b.AMQPAddr),
		"RABBITMQ_DIST_PORT="+port(distAddr),
		"RABBITMQ_MNESIA_BASE="+home+"/mnesia",
		"RABBITMQ_LOG_BASE="+home+"/log",
		"RABBITMQ_ENABLED_PLUGINS_FILE="+home+"/enabled_plugins",
		"RABBITMQ_CONFIG_FILE="+home+"/rabbitmq.conf",
		"RABBITMQ_CONF_ENV_FILE="+home+"/env.conf",
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"ERL_CRASH_DUMP="+home+"/erl_crash.dump",
	)
	b.command = func(ctx context.Context, program string, args ...string) *exec.Cmd {
		cmd := r.command(ctx, o.Dir, program, args)
		cmd.Env = env
		return cmd
	}
	b.serve, b.control = []string{rabbitServer}, rabbitControl
	return b, nil
}

// node is the name of a RabbitMQ among others.
func (b *Broker) node() string { return "duepost-" + port(b.AMQPAddr) + "@localhost" }

// Seen is the path by which the broker sees Options.Dir.
func (r RabbitMQ) Seen(dir string) string {
	if r.root == "" {
		return dir
	}
	return inside
}

// command makes a process of a program of the installation. That of a Debian of its own gets a
// mount namespace of its own: there it has /proc and, as inside, the directory, and whatever
// happens to it no mount is left behind.
func (r RabbitMQ) command(ctx context.Context, dir, program string, args []string) *exec.Cmd {
	if r.root == "" {
		return exec.CommandContext(ctx, program, args...)
	}
	const enter = `mount -t proc proc "$1/proc" && mount --bind "$2" "$1` + inside + `" || exit
root=$1
shift 2
exec chroot "$root" "$@"`
	all := append([]string{"--mount", "--", "sh", "-c", enter, "sh", r.root, dir, program}, args...)
	return exec.CommandContext(ctx, "unshare", all...)
}

// writeFiles makes the directory and the configuration in it.
func (r RabbitMQ) writeFiles(b *Broker, o Options) error {
	plugins, config := "[].\n", ""
	if o.Management {
		plugins = "[rabbitmq_management].\n"
		config = "collect_statistics_interval = 1000\n" +
			"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = " + port(b.HTTPAddr) + "\n"
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	for name, text := range map[string]string{
		"enabled_plugins": plugins, "rabbitmq.conf": config + o.Config, "env.conf": "",
	} {
		if err := os.WriteFile(filepath.Join(o.Dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
	}
	return nil
}

// port is that of an address that has one.
func port(addr string) string {
	_, port, _ := net.SplitHostPort(addr) // an address of freeAddr always has one
	return port
}
