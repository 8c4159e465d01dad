package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/duepost/duepost/internal/testbroker"
)

// gateway is the process that is measured.
type gateway struct {
	url   string
	cmd   *exec.Cmd
	ended chan error
}

var listens = regexp.MustCompile(`msg="gateway listens".* addr=(\S+)`)

// startGateway starts it in front of a broker.
func startGateway(ctx context.Context, dir, broker string) (*gateway, error) {
	program, err := testbroker.BuildDuepost(ctx, "", dir)
	if err != nil {
		return nil, err
	}
	g := &gateway{ended: make(chan error, 1)}
	g.cmd = exec.Command(program, "relay", "--rabbitmq", broker, "--gateway", "127.0.0.1:0", "--gateway-only")
	stderr, err := g.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start gateway: %w", err)
	}
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start gateway: %w", err)
	}
	addr := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if found := listens.FindStringSubmatch(lines.Text()); found != nil {
				addr <- found[1]
			}
		}
		g.ended <- g.cmd.Wait()
	}()
	select {
	case a := <-addr:
		g.url = "amqp://guest:guest@" + a + "/"
		return g, nil
	case err := <-g.ended:
		return nil, fmt.Errorf("start gateway: it ended: %v", err)
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), g.stop())
	}
}

// stop ends it in order.
func (g *gateway) stop() error {
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop gateway: %w", err)
	}
	return <-g.ended
}

// cpu is the time that the process has spent, to the nanosecond where the kernel tells it.
func (g *gateway) cpu() (time.Duration, error) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", g.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	var sum time.Duration
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", g.cmd.Process.Pid, task.Name()))
		if err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		var ns int64
		if _, err := fmt.Fscan(strings.NewReader(string(text)), &ns); err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}
