package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

var errNotInstalled = errors.New("not installed")

// rabbitProgram is where Debian's package rabbitmq-server has the start script that needs no
// service manager.
const rabbitProgram = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// startRabbitMQ runs RabbitMQ as it is out of the box, with everything it writes below dir. Its
// delayed exchange is a plugin that does not come with it.
func startRabbitMQ(ctx context.Context, dir string) (*process, error) {
	if _, err := os.Stat(rabbitProgram); err != nil {
		return nil, errNotInstalled
	}
	home := filepath.Join(dir, "rabbitmq")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	plugins := filepath.Join(home, "enabled_plugins")
	if err := os.WriteFile(plugins, []byte("[].\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write plugin list: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	distPort, err := freePort()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(rabbitProgram)
	cmd.Env = append(os.Environ(),
		"HOME="+home,
		fmt.Sprintf("RABBITMQ_NODENAME=compare%d@localhost", os.Getpid()),
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+port,
		"RABBITMQ_DIST_PORT="+distPort,
		"RABBITMQ_MNESIA_BASE="+filepath.Join(home, "mnesia"),
		"RABBITMQ_LOG_BASE="+filepath.Join(home, "log"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+plugins,
		"RABBITMQ_CONFIG_FILE="+filepath.Join(home, "rabbitmq"),
		"ERL_EPMD_ADDRESS=127.0.0.1",
	)
	return startProcess(ctx, "RabbitMQ", "127.0.0.1:"+port, cmd)
}
