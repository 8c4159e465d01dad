package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/duepost/duepost/internal/requirement"
	"github.com/duepost/duepost/internal/testbroker"
)

// runOnRabbitMQ plays all tests on each RabbitMQ that was asked for.
func runOnRabbitMQ(ctx context.Context, o options, dir string) error {
	installed, err := testbroker.InstalledRabbitMQs()
	if err != nil {
		return err
	}
	var all []error
	played := 0
	for _, r := range installed {
		if o.rabbitmq != "all" && o.rabbitmq != r.Version {
			continue
		}
		played++
		fmt.Printf("RabbitMQ %s:\n", r.Version)
		if err := playOn(ctx, r, o, dir); err != nil {
			all = append(all, fmt.Errorf("RabbitMQ %s: %w", r.Version, err))
		}
	}
	if played == 0 {
		text := fmt.Sprintf("RabbitMQ %s is not installed", o.rabbitmq)
		if o.rabbitmq != "all" || requirement.Strict() {
			return errors.New(text)
		}
		fmt.Println("skipped: " + text)
	}
	return errors.Join(all...)
}

// playOn plays them on one, with "duepost relay --gateway" in front of it unless clients are to go
// straight.
func playOn(ctx context.Context, r testbroker.RabbitMQ, o options, dir string) error {
	b, err := r.Start(ctx, testbroker.Options{Dir: filepath.Join(dir, "rabbitmq-"+r.Version)})
	if err != nil {
		return err
	}
	o.url = b.URL()
	stop := func() error { return nil }
	if !o.direct {
		if o.url, stop, err = startGateway(dir, b.URL()); err != nil {
			return errors.Join(err, b.Kill())
		}
	}
	return errors.Join(run(ctx, o, dir), stop(), b.Kill())
}

var listens = regexp.MustCompile(`msg="gateway listens".* addr=(\S+)`)

// startGateway starts it in front of a broker.
func startGateway(dir, broker string) (url string, stop func() error, err error) {
	cmd := exec.Command(brokerPath(dir), "relay", "--rabbitmq", broker, "--management", "none", "--gateway", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, fmt.Errorf("start gateway: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start gateway: %w", err)
	}
	addr, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if found := listens.FindStringSubmatch(lines.Text()); found != nil {
				addr <- found[1]
			}
		}
		ended <- cmd.Wait()
	}()
	stop = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return fmt.Errorf("stop gateway: %w", errors.Join(err, <-ended))
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(stopWithin):
			return errors.Join(fmt.Errorf("stop gateway: no end after %v", stopWithin), cmd.Process.Kill(), <-ended)
		}
	}
	select {
	case a := <-addr:
		return "amqp://guest:guest@" + a + "/", stop, nil
	case err := <-ended:
		return "", nil, fmt.Errorf("start gateway: it ended: %v", err)
	case <-time.After(readyWithin):
		return "", nil, errors.Join(errors.New("start gateway: it does not listen"), stop())
	}
}
