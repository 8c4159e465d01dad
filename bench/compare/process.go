package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"time"

	"github.com/duepost/duepost/internal/load"
)

// Times that a broker may take.
const (
	startTimeout = 90 * time.Second
	stopTimeout  = 30 * time.Second
	dialEvery    = 50 * time.Millisecond
)

// process is a broker in a process of its own.
type process struct {
	name   string
	delays bool // has delayed exchanges
	addr   string
	cmd    *exec.Cmd
	output *bytes.Buffer
	ended  chan error
}

// startProcess runs cmd in a process group of its own, so that an interrupt of ours does not
// stop it behind our back, and waits until addr accepts connections.
func startProcess(ctx context.Context, name, addr string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, addr: addr, cmd: cmd, output: &bytes.Buffer{}, ended: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { p.ended <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return p, conn.Close()
		}
		select {
		case err := <-p.ended:
			return nil, fmt.Errorf("start %s: it ended: %w\n%s", name, err, p.output)
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("start %s: %w", name, ctx.Err()), p.stop())
		case <-time.After(dialEvery):
		}
	}
}

// load puts one row's load on the broker.
func (p *process) load(ctx context.Context, r row) (load.Result, error) {
	o := r.options
	o.URL = "amqp://guest:guest@" + p.addr + "/"
	o.PID, o.Children = p.cmd.Process.Pid, true
	return load.Run(ctx, r.scenario, o)
}

// stop ends the broker in order, and by force if it does not obey.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTimeout):
		// The negative id is the group that startProcess made.
		return fmt.Errorf("stop %s: no end after %v, killed: %w", p.name, stopTimeout,
			syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL))
	}
}

// freePort asks the kernel for a port that nobody has.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, err
}
