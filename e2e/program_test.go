package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// schemeLimit is how long one program may play one scheme.
const schemeLimit = 2 * time.Minute

// atOnce is how many schemes of one language play at the same time: they wait
// most of the time, but two cores start no more than a few virtual machines
// while clocks are being watched.
const atOnce = 4

// rabbitFaults are the schemes that must end with an error on RabbitMQ, and what it says.
func rabbitFaults() map[string]string {
	return map[string]string{"head-of-line": "order of expiry"} // a short delay came after a long one
}

// required lists the schemes that every language plays.
func required() []string {
	return []string{
		"confirms", "delayed-exchange", "delayed-retry", "delayed-types", "head-of-line", "manual-ack",
		"order-close", "queue-ttl", "rejects", "returns", "routing", "staircase", "tiers",
	}
}

// program is a client in some language: the command to which the name of a
// scheme is appended.
type program struct {
	dir  string
	argv []string
}

func (p program) command(ctx context.Context, args ...string) *exec.Cmd {
	argv := slices.Concat(p.argv, args)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = p.dir
	return cmd
}

// schemes asks the program which schemes it plays.
func (p program) schemes(t *testing.T) []string {
	t.Helper()
	out, err := p.command(t.Context()).Output()
	if err != nil {
		t.Fatalf("list schemes of %q: %v\n%s", p.argv, err, out)
	}
	names := strings.Fields(string(out))
	for _, name := range required() {
		if !slices.Contains(names, name) {
			t.Errorf("%q lacks the scheme %s", p.argv, name)
		}
	}
	return names
}

// played is how one scheme ended.
type played struct {
	err    error
	output string
	took   time.Duration
}

// play runs every scheme of the program against a broker.
func play(t *testing.T, p program) {
	t.Helper()
	b := anyBroker(t)
	if b.product(t) == "RabbitMQ" {
		playOn(t, p, b.url, false, rabbitFaults())
		return
	}
	playOn(t, p, b.url, true, nil)
}

// playOn runs every scheme of the program against the broker at a URL, some of
// them at the same time, and reports each as a subtest. delays says whether it
// has delayed exchanges, faults what it is known to do wrong.
func playOn(t *testing.T, p program, url string, delays bool, faults map[string]string) {
	t.Helper()
	names := p.schemes(t)
	results := make(map[string]chan played, len(names))
	slack := cmp.Or(os.Getenv(slackVariable), "3000")
	slots := make(chan struct{}, atOnce)
	for _, name := range names {
		result := make(chan played, 1)
		results[name] = result
		if !delays && needsDelayedExchange(name) {
			continue
		}
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			result <- p.play(t.Context(), name, url, slack)
		}()
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			if !delays && needsDelayedExchange(name) {
				t.Skip("RabbitMQ has no delayed exchange without its plugin")
			}
			report(t, <-results[name], faults[name])
		})
	}
	t.Run("notices lateness", func(t *testing.T) {
		// What is not early is late where a message must come a second before it is due.
		r := p.play(t.Context(), "order-close", url, "-1000")
		if r.err == nil || !strings.Contains(r.output, "ORDER-300 came ") {
			t.Errorf("played with a bound that nothing keeps: %v\n%s", r.err, r.output)
		}
	})
}

// play plays one scheme; slack is how many milliseconds late a message may be.
func (p program) play(ctx context.Context, scheme, url, slack string) played {
	ctx, cancel := context.WithTimeout(ctx, schemeLimit)
	defer cancel()
	var out bytes.Buffer
	cmd := p.command(ctx, scheme)
	cmd.Env = append(os.Environ(), urlVariable+"="+url, slackVariable+"="+slack)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	start := time.Now()
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("still playing after %s: %w", schemeLimit, err)
	}
	return played{err, out.String(), time.Since(start)}
}

// report fails the test if the scheme ended otherwise than it must: well, or with a fault.
func report(t *testing.T, r played, fault string) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(r.output))
	for lines.Scan() {
		t.Log(lines.Text())
	}
	switch {
	case r.err != nil && fault == "":
		t.Errorf("ended after %s: %v", r.took.Round(time.Millisecond), r.err)
	case fault != "" && (r.err == nil || !strings.Contains(r.output, fault)):
		t.Errorf("it is known to end with %q, and ended with %v", fault, r.err)
	}
}

func needsDelayedExchange(scheme string) bool {
	return scheme == "staircase" || strings.HasPrefix(scheme, "delayed-") && scheme != "delayed-retry"
}
