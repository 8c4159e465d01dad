package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// startDuepost builds the program, unless one is given, and serves a new directory below dir.
func startDuepost(ctx context.Context, program, dir string) (*process, error) {
	if program == "" {
		program = filepath.Join(dir, "duepost")
		build := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/duepost/duepost/cmd/duepost")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build duepost: %w\n%s", err, out)
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	addr := "127.0.0.1:" + port
	p, err := startProcess(ctx, "Duepost", addr, exec.Command(program, "serve",
		"--data-dir", filepath.Join(dir, "data"), "--amqp-addr", addr, "--http-addr", "", "--log-level", "warn"))
	if err != nil {
		return nil, err
	}
	p.delays = true
	return p, nil
}
