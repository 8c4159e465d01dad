package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// prepare fetches, copies and compiles everything that a run needs, so that the
// run itself needs no network.
func prepare(ctx context.Context, dir string, withBroker bool) error {
	cached, err := download(ctx)
	if err != nil {
		return err
	}
	if err := copyTree(sources(dir), cached); err != nil {
		return fmt.Errorf("copy client: %w", err)
	}
	if err := openToAll(sources(dir)); err != nil {
		return err
	}
	err = goTool(ctx, sources(dir), "test", "-c", "-tags", "integration", "-o", testBinary(dir), ".")
	if err != nil {
		return fmt.Errorf("compile tests of the client: %w", err)
	}
	if !withBroker {
		return nil
	}
	return goTool(ctx, ".", "build", "-o", brokerPath(dir), "./cmd/duepost")
}

// download makes sure that the client is in the module cache and returns where.
func download(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", client)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w: %s", client, err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil || module.Dir == "" {
		return "", fmt.Errorf("download %s: directory not told: %s", client, out)
	}
	return module.Dir, nil
}

// copyTree copies a directory of the module cache and makes it writable.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, below), 0o755)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, below), content, 0o644)
	})
}

// openToAll changes the copy: some tests do their work, and close their
// connection, only if the broker calls itself RabbitMQ. Here they do it for any.
func openToAll(dir string) error {
	path := filepath.Join(dir, "integration_test.go")
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read client: %w", err)
	}
	const only, any = `== "RabbitMQ"`, `!= ""`
	if !bytes.Contains(text, []byte(only)) {
		return fmt.Errorf("read client: %s does not ask for RabbitMQ any more", path)
	}
	text = bytes.ReplaceAll(text, []byte(only), []byte(any))
	return os.WriteFile(path, text, 0o644)
}

func goTool(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %q: %w\n%s", args, err, out.Bytes())
	}
	return nil
}
