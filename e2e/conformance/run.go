package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	brokerAddr  = "127.0.0.1:5672"
	readyWithin = 20 * time.Second
	stopWithin  = 30 * time.Second
	testsWithin = 15 * time.Minute
)

// run plays all tests that are not left out and judges what came of them.
func run(ctx context.Context, o options, dir string) error {
	text := leftOutText
	if o.rabbitmq != "" {
		text += leftOutOfRabbitMQText
	}
	left, err := parseLeftOut(text)
	if err != nil {
		return err
	}
	wanted, err := list(ctx, dir, o.run, left)
	if err != nil {
		return err
	}
	url := o.url
	stop := func() error { return nil }
	if url == "" {
		url = "amqp://guest:guest@" + brokerAddr + "/"
		if stop, err = serve(ctx, dir); err != nil {
			return err
		}
	}
	r := newResults(wanted)
	testsErr := runTests(ctx, o, dir, url, left, r)
	stopErr := stop()
	return r.judge(os.Stdout, left, testsErr, stopErr)
}

// list names the tests that must run, and checks that those left out exist.
func list(ctx context.Context, dir, pattern string, left []leftOut) ([]string, error) {
	if pattern == "" {
		pattern = "."
	}
	names := func(pattern string) (map[string]bool, error) {
		out, err := testCommand(ctx, dir, "-test.list", pattern).Output()
		if err != nil {
			return nil, fmt.Errorf("list tests: %w", err)
		}
		found := map[string]bool{}
		for _, word := range strings.Fields(string(out)) {
			// Examples without expected output are listed but never run.
			if strings.HasPrefix(word, "Test") {
				found[word] = true
			}
		}
		return found, nil
	}
	every, err := names(".")
	if err != nil {
		return nil, err
	}
	wanted, err := names(pattern)
	if err != nil {
		return nil, err
	}
	for _, l := range left {
		if !every[l.test] {
			return nil, fmt.Errorf("left-out.txt: there is no test %s in %s", l.test, client)
		}
		delete(wanted, l.test)
	}
	var ordered []string
	for name := range wanted {
		ordered = append(ordered, name)
	}
	return ordered, nil
}

func testCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, testBinary(dir), args...)
	cmd.Dir = sources(dir)
	return cmd
}

func runTests(ctx context.Context, o options, dir, url string, left []leftOut, r *results) error {
	var skip []string
	for _, l := range left {
		skip = append(skip, l.test)
	}
	cmd := testCommand(ctx, dir, "-test.v", "-test.timeout", testsWithin.String(),
		"-test.skip", "^("+strings.Join(skip, "|")+")$", "-test.run", o.run)
	cmd.Env = append(os.Environ(), "AMQP_URL="+url)
	out := io.Writer(r)
	if o.trace {
		out = io.MultiWriter(r, os.Stdout)
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second
	return cmd.Run()
}

// serve starts the broker with its defaults and returns what stops it.
func serve(ctx context.Context, dir string) (stop func() error, err error) {
	if conn, err := net.Dial("tcp", brokerAddr); err == nil {
		conn.Close()
		return nil, fmt.Errorf("start duepost: something listens on %s already", brokerAddr)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, brokerPath(dir), "serve", "--data-dir", filepath.Join(dir, "data"))
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start duepost: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	if err := awaitPort(ctx, exited); err != nil {
		cmd.Process.Kill()
		return nil, fmt.Errorf("start duepost: %w\n%s", err, log.Bytes())
	}
	return func() error {
		select {
		case err := <-exited:
			return fmt.Errorf("duepost ended during the tests: %v\n%s", err, log.Bytes())
		default:
		}
		cmd.Process.Signal(syscall.SIGTERM)
		if err := <-exited; err != nil {
			return fmt.Errorf("stop duepost: %w\n%s", err, log.Bytes())
		}
		return nil
	}, nil
}

// awaitPort waits until the broker takes connections.
func awaitPort(ctx context.Context, exited chan error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if conn, err := net.Dial("tcp", brokerAddr); err == nil {
			return conn.Close()
		}
		select {
		case err := <-exited:
			return fmt.Errorf("it ended: %v", err)
		case <-ctx.Done():
			return fmt.Errorf("it does not listen on %s: %w", brokerAddr, ctx.Err())
		case <-tick.C:
		}
	}
}
