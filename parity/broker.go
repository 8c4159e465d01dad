package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Times that a broker may take.
const (
	startTimeout = 90 * time.Second
	stopTimeout  = 30 * time.Second
	tryEvery     = 50 * time.Millisecond
)

// broker is a broker in a process of its own.
type broker struct {
	name     string
	amqpAddr string
	httpAddr string
	cmd      *exec.Cmd
	output   *bytes.Buffer // read only after the process has ended
	ended    chan error
}

// newBroker finds two ports that nobody has.
func newBroker(name string) (*broker, error) {
	b := &broker{name: name, output: &bytes.Buffer{}, ended: make(chan error, 1)}
	for _, addr := range []*string{&b.amqpAddr, &b.httpAddr} {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		*addr = "127.0.0.1:" + port
	}
	return b, nil
}

// start runs cmd in a process group of its own, so that an interrupt of ours does not stop it
// behind our back, and waits until the management API answers.
func (b *broker) start(ctx context.Context, cmd *exec.Cmd) error {
	b.cmd = cmd
	cmd.Stdout, cmd.Stderr = b.output, b.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", b.name, err)
	}
	go func() { b.ended <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !b.ready(ctx) {
		select {
		case err := <-b.ended:
			return fmt.Errorf("start %s: it ended: %v\n%s", b.name, err, b.output)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("start %s: %w", b.name, ctx.Err()), b.stop())
		case <-time.After(tryEvery):
		}
	}
	return nil
}

// ready reports whether both ports answer.
func (b *broker) ready(ctx context.Context) bool {
	conn, err := net.Dial("tcp", b.amqpAddr)
	if err != nil {
		return false
	}
	conn.Close()
	answer, err := b.call(ctx, guest(), http.MethodGet, "/api/overview", nil)
	return err == nil && answer.status == http.StatusOK
}

// stop ends the broker in order, and by force if it does not obey.
func (b *broker) stop() error {
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", b.name, err)
	}
	select {
	case <-b.ended:
		return nil
	case <-time.After(stopTimeout):
		// The negative id is the group that start made.
		return fmt.Errorf("stop %s: no end after %v, killed: %w", b.name, stopTimeout,
			syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL))
	}
}

// build builds the program, unless one is given.
func build(ctx context.Context, program, dir string) (string, error) {
	if program != "" {
		return program, nil
	}
	program = filepath.Join(dir, "duepost")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/duepost/duepost/cmd/duepost")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build duepost: %w\n%s", err, out)
	}
	return program, nil
}

// startBoth starts the two at once. What was started is returned with an error too.
func startBoth(ctx context.Context, p peer, program string) (theirs, ours *broker, err error) {
	failed := make(chan error)
	go func() {
		var err error
		theirs, err = p.start(ctx)
		failed <- err
	}()
	ours, err = startDuepost(ctx, program, p.dir)
	return theirs, ours, errors.Join(err, <-failed)
}

// startDuepost serves a new directory below dir.
func startDuepost(ctx context.Context, program, dir string) (*broker, error) {
	b, err := newBroker("Duepost")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "serve", "--data-dir", filepath.Join(dir, "duepost"),
		"--amqp-addr", b.amqpAddr, "--http-addr", b.httpAddr, "--log-level", "warn")
	if err := b.start(ctx, cmd); err != nil {
		return nil, err
	}
	return b, nil
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
