package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// rabbitProgram is where Debian's package rabbitmq-server has the start script that needs no
// service manager.
const rabbitProgram = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// peer is a RabbitMQ that is installed here.
type peer struct {
	version string
	root    string // of a Debian of its own; empty for this machine's
	dir     string // for everything it writes, seen from outside root
}

// installed lists them. A variable that names no installation is a mistake.
func installed() (peers []peer, err error) {
	if _, err := os.Stat(rabbitProgram); err == nil {
		peers = append(peers, peer{version: "3.10"})
	}
	if root := os.Getenv(rabbit43Variable); root != "" {
		if _, err := os.Stat(filepath.Join(root, rabbitProgram)); err != nil {
			return nil, fmt.Errorf("%s: %w", rabbit43Variable, err)
		}
		peers = append(peers, peer{version: "4.3", root: root})
	}
	return peers, nil
}

// start runs RabbitMQ with its management plugin and as it is out of the box otherwise. Statistics
// are gathered each second instead of each five, so that nobody waits for them.
func (p peer) start(ctx context.Context) (*broker, error) {
	b, err := newBroker("RabbitMQ " + p.version)
	if err != nil {
		return nil, err
	}
	home, inside, err := p.home()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(b.amqpAddr)
	_, httpPort, _ := net.SplitHostPort(b.httpAddr)
	distPort, err := freePort()
	if err != nil {
		return nil, err
	}
	files := map[string]string{
		"enabled_plugins": "[rabbitmq_management].\n",
		"rabbitmq.conf": "management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = " + httpPort + "\n" +
			"collect_statistics_interval = 1000\n",
		"env.conf": "",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("write configuration: %w", err)
		}
	}
	cmd := exec.Command(rabbitProgram)
	if p.root != "" {
		cmd = exec.Command("chroot", p.root, rabbitProgram)
	}
	cmd.Env = append(os.Environ(),
		"HOME="+inside,
		fmt.Sprintf("RABBITMQ_NODENAME=parity%d@localhost", os.Getpid()),
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+port,
		"RABBITMQ_DIST_PORT="+distPort,
		"RABBITMQ_MNESIA_BASE="+inside+"/mnesia",
		"RABBITMQ_LOG_BASE="+inside+"/log",
		"RABBITMQ_ENABLED_PLUGINS_FILE="+inside+"/enabled_plugins",
		"RABBITMQ_CONFIG_FILE="+inside+"/rabbitmq.conf",
		"RABBITMQ_CONF_ENV_FILE="+inside+"/env.conf",
		"ERL_EPMD_ADDRESS=127.0.0.1",
	)
	if err := b.start(ctx, cmd); err != nil {
		return nil, err
	}
	return b, nil
}

// home makes the directory for what it writes; inside is its path as the broker sees it. The one
// in a Debian of its own stays there: it is a folder kept for such runs.
func (p peer) home() (home, inside string, err error) {
	if p.root == "" {
		home = filepath.Join(p.dir, "rabbitmq")
		return home, home, os.MkdirAll(home, 0o700)
	}
	if home, err = os.MkdirTemp(filepath.Join(p.root, "tmp"), "parity-"); err != nil {
		return "", "", fmt.Errorf("make directory: %w", err)
	}
	return home, "/tmp/" + filepath.Base(home), nil
}
