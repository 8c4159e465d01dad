package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadyAtOnce measures the start on an empty directory. A busy machine may
// spoil one start, so one good start of several is enough.
func TestReadyAtOnce(t *testing.T) {
	t.Parallel()
	limit := 300 * time.Millisecond
	if raced() {
		limit *= 10
	}
	var best time.Duration
	for range 10 {
		b := newBroker(t)
		start := time.Now()
		b.start(t)
		took := time.Since(start)
		b.kill(t)
		if best == 0 || took < best {
			best = took
		}
		if best <= limit {
			break
		}
	}
	if best > limit {
		t.Errorf("ready after %s at best, want %s", best, limit)
	}
	t.Logf("ready after %s", best)
}

// TestServeRefuses starts brokers that cannot run: each ends by itself, not with
// exit code 0, and says what is wrong.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	running := startBroker(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	flags := func(b *broker, flag, value string) []string {
		args := append([]string(nil), b.args...)
		for i, arg := range args {
			switch arg {
			case flag:
				args[i+1] = value
			case "--amqp-addr", "--http-addr": // nobody else may have taken it meanwhile
				args[i+1] = "127.0.0.1:0"
			}
		}
		return args
	}
	amqpAddr := strings.TrimPrefix(running.url, "amqp://guest:guest@")
	cases := []struct {
		name string
		args []string
		says string
	}{
		{"directory in use", flags(newBroker(t), "--data-dir", running.dir), running.dir},
		{"port taken", flags(newBroker(t), "--amqp-addr", amqpAddr), amqpAddr},
		{"HTTP port taken", flags(newBroker(t), "--http-addr", amqpAddr), amqpAddr},
		{"directory is a file", flags(newBroker(t), "--data-dir", file), file},
		{"directory below a file", flags(newBroker(t), "--data-dir", filepath.Join(file, "x")), file},
		{"address is none", flags(newBroker(t), "--amqp-addr", "nowhere"), "nowhere"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), readyWithin)
			defer cancel()
			out, err := exec.CommandContext(ctx, os.Getenv(binaryVariable), c.args...).CombinedOutput()
			if ctx.Err() != nil || err == nil {
				t.Errorf("ended with %v, want an exit code other than 0", err)
			}
			if !strings.Contains(string(out), c.says) || strings.Contains(string(out), "goroutine ") {
				t.Errorf("does not name %q:\n%s", c.says, out)
			}
		})
	}
}
