package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/config"
	"github.com/duepost/duepost/internal/daemon"
)

// startBroker serves in this process and returns the environment that leads clients to it.
func startBroker(t *testing.T) map[string]string {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir, cfg.AMQPAddr, cfg.HTTPAddr = t.TempDir(), "127.0.0.1:0", ""
	d, err := daemon.Start(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return map[string]string{"DUEPOST_URL": "amqp://guest:guest@" + d.AMQPAddr().String() + "/"}
}

// mustRun runs a verb that must end with exit code 0 and returns what it printed.
func mustRun(t *testing.T, env map[string]string, stdin string, args ...string) string {
	t.Helper()
	got := runWith(t, env, stdin, args...)
	if got.code != exitDone {
		t.Fatalf("duepost %v: exit code %d\n%s", args, got.code, got.stderr)
	}
	return got.stdout
}

func TestPublishAndConsume(t *testing.T) {
	t.Parallel()
	env := startBroker(t)
	out := mustRun(t, env, "", "publish", "--to", "q", "hello")
	if want := "published 1 to queue \"q\", confirmed\n"; out != want {
		t.Errorf("publish printed %q, want %q", out, want)
	}
	mustRun(t, env, "from\x1bstdin", "publish", "--to", "q")
	mustRun(t, env, "", "publish", "--to", "q", "--count", "2500", "--no-persistent", "many")
	out = mustRun(t, env, "", "consume", "--queue", "q", "--count", "2502")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2502 || !strings.HasSuffix(lines[0], "  q  hello") ||
		!strings.HasSuffix(lines[1], `  q  "from\x1bstdin"`) || !strings.HasSuffix(lines[2501], "  q  many") {
		t.Errorf("%d lines: %q, %q ... %q", len(lines), lines[0], lines[1], lines[len(lines)-1])
	}
	got := runWith(t, env, "", "consume", "--queue", "q", "--count", "1", "--timeout", "50ms")
	if got.code != exitUnmet || !strings.Contains(got.stderr, "got 0 of 1 messages in 50ms") {
		t.Errorf("consume of an empty queue: exit code %d, %q", got.code, got.stderr)
	}
	if got := runWith(t, env, "", "consume", "--queue", "q", "--timeout", "50ms"); got.code != exitDone {
		t.Errorf("consume for a time: exit code %d, want 0", got.code)
	}
}

func TestPublishDelayed(t *testing.T) {
	t.Parallel()
	for _, due := range [][]string{{"--in", "300ms"}, {"--at", "2001-01-01T00:00:00Z"}} {
		t.Run(due[0], func(t *testing.T) {
			t.Parallel()
			env := startBroker(t)
			args := append([]string{"publish", "--to", "orders", "--header", "customer=a=b"}, due...)
			mustRun(t, env, "", append(args, "close 42")...)
			out := mustRun(t, env, "", "consume", "--queue", "orders", "--count", "1", "--json")
			var line printedLine
			if err := json.Unmarshal([]byte(out), &line); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if line.Body != "close 42" || line.Headers["customer"] != "a=b" || line.Exchange != conventionExchange {
				t.Errorf("consumed %+v", line)
			}
			if line.LateMillis == nil || *line.LateMillis < 0 {
				t.Errorf("late_ms is missing or negative: %s", out)
			}
		})
	}
}

// The consumer may come, and bind, after the message was published.
func TestPublishToDeclaredExchange(t *testing.T) {
	t.Parallel()
	env := startBroker(t)
	mustRun(t, env, "", "publish", "--exchange", "shop", "--declare", "topic", "--key", "order.eu", "--in", "500ms", "x")
	out := mustRun(t, env, "", "consume", "--bind", "shop:order.*", "--count", "1")
	if !strings.Contains(out, "shop:order.eu  x  (") || !strings.Contains(out, "ms after due)") {
		t.Errorf("consume printed %q", out)
	}
}

func TestPublishFaults(t *testing.T) {
	t.Parallel()
	env := startBroker(t)
	mustRun(t, env, "", "publish", "--exchange", "shop", "--declare", "topic", "x.y", "--key", "k", "--in", "1h")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"publish", "--exchange", "amq.direct", "--key", "nowhere", "x"}, "0 of 1 confirmed: 1 came back: 312 NO_ROUTE"},
		{[]string{"publish", "--exchange", "amq.direct", "--in", "5s", "x"}, `exchange "amq.direct" does not delay, so nothing was published`},
		{[]string{"publish", "--exchange", "none", "--in", "5s", "x"}, "NOT_FOUND - no exchange 'none'"},
		{[]string{"publish", "--exchange", "none", "x"}, "NOT_FOUND - no exchange 'none'"},
		{[]string{"publish", "--exchange", "shop", "--declare", "direct", "x"}, `an exchange "shop" of another kind may exist already`},
		{[]string{"publish", "--exchange", "shop", "--in", "40000d", "x"}, "PRECONDITION_FAILED"},
		{[]string{"consume", "--bind", "none:k"}, "NOT_FOUND - no exchange 'none'"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			got := runWith(t, env, "", tt.args...)
			if got.code != exitFailed || !strings.Contains(got.stderr, tt.want) {
				t.Errorf("exit code %d, stderr:\n%s\nwant 1 and %q", got.code, got.stderr, tt.want)
			}
		})
	}
}

// An exchange that exists delays or not, whatever its other properties; asking changes nothing.
func TestPublishAsksWhetherAnExchangeDelays(t *testing.T) {
	t.Parallel()
	env := startBroker(t)
	conn, err := brokerURL{env["DUEPOST_URL"]}.dial("test")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	inner := map[string]any{"x-delayed-type": "topic"}
	if err := ch.ExchangeDeclare("due", delayedType, false, false, false, false, inner); err != nil {
		t.Fatal(err)
	}
	if err := ch.ExchangeDeclare("now", "topic", false, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	for exchange, want := range map[string]answer{"due": yes, "now": no, "amq.topic": no, "amq.fanout": no} {
		if got, err := delays(conn, exchange); got != want || err != nil {
			t.Errorf("delays(%s) = %v, %v, want %v", exchange, got, err, want)
		}
	}
	if got, err := delays(conn, "none"); got != unknown || !isCode(err, amqp.NotFound) {
		t.Errorf("delays(none) = %v, %v, want 404", got, err)
	}
	if ok, err := delays(conn, "none"); err == nil {
		t.Errorf("asking has declared it: %v", ok)
	}
	out := mustRun(t, env, "", "publish", "--exchange", "due", "--key", "k", "--in", "7d", "x")
	if !strings.Contains(out, "confirmed, due at ") || !strings.Contains(out, " (in 7d)") {
		t.Errorf("publish printed %q", out)
	}
}

// Publish and consume say the same of a due instant in the past: at once, and not years late.
func TestDueInThePast(t *testing.T) {
	t.Parallel()
	env := startBroker(t)
	out := mustRun(t, env, "", "publish", "--to", "orders", "--at", "2001-01-01T00:00:00Z", "--count", "2", "x")
	if !strings.Contains(out, "in the past: handed over at once") {
		t.Errorf("publish printed %q", out)
	}
	out = mustRun(t, env, "", "consume", "--queue", "orders", "--count", "1")
	if !regexp.MustCompile(`\(due in the past, \d{1,6} ms after it was published\)`).MatchString(out) {
		t.Errorf("consume printed %q", out)
	}
	out = mustRun(t, env, "", "consume", "--queue", "orders", "--count", "1", "--json")
	var line printedLine
	if err := json.Unmarshal([]byte(out), &line); err != nil || line.LateMillis == nil {
		t.Fatalf("%v: %s", err, out)
	}
	if *line.LateMillis > patience.Milliseconds() || !strings.HasPrefix(line.Due, "200") {
		t.Errorf("consume printed %s, want the due instant that was asked for, and lateness since it was published", out)
	}
}

// Whoever interrupts a long publish learns how far it came.
func TestInterruptedPublishSaysHowMany(t *testing.T) {
	t.Parallel()
	env := startBroker(t)
	mustRun(t, env, "", "publish", "--to", "q", "first")
	publish := runCommand(t, mustExecutable(t)+" publish --to q --count 100000000 x", asProgram+"=1",
		"DUEPOST_URL="+env["DUEPOST_URL"])
	mustRun(t, env, "", "consume", "--queue", "q", "--count", "2000")
	publish.interrupt()
	found := regexp.MustCompile(`interrupted: publish to queue "q": (\d+) of 100000000 confirmed\n`).
		FindStringSubmatch(publish.stderr.String())
	if found == nil {
		t.Fatalf("no count in:\n%s", publish.story())
	}
	if n, err := strconv.Atoi(found[1]); err != nil || n < 1000 {
		t.Errorf("%s confirmed, want the first window at least", found[1])
	}
}

// Nothing that exists is changed: a queue with other arguments is used as it is.
func TestPublishLeavesQueuesAlone(t *testing.T) {
	t.Parallel()
	env := startBroker(t)
	conn, err := brokerURL{env["DUEPOST_URL"]}.dial("test")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	args := map[string]any{"x-max-length": int32(10)}
	if _, err := ch.QueueDeclare("mine", false, false, false, false, args); err != nil {
		t.Fatal(err)
	}
	mustRun(t, env, "", "publish", "--to", "mine", "--in", "1ms", "x")
	mustRun(t, env, "", "consume", "--queue", "mine", "--count", "1")
	if _, err := ch.QueueDeclare("mine", false, false, false, false, args); err != nil {
		t.Errorf("the queue has changed: %v", err)
	}
}

func TestBench(t *testing.T) {
	t.Parallel()
	env := startBroker(t)
	for _, extra := range []string{"", "--transient"} {
		args := strings.Fields("bench publish consume plain delayed burst -p 2 -c 2 --queues 2 --warmup 50ms " +
			"--duration 200ms -n 3000 --delay-min 10ms --delay-max 300ms --burst-in 2s " + extra)
		out := mustRun(t, env, "", args...)
		d := json.NewDecoder(bytes.NewReader([]byte(out)))
		for _, scenario := range []string{"publish", "consume", "plain", "delayed", "burst"} {
			var line map[string]any
			if err := d.Decode(&line); err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			t.Log(line)
			if line["scenario"] != scenario || fmt.Sprint(line["lost"]) != "0" || fmt.Sprint(line["early"]) != "0" ||
				fmt.Sprint(line["duplicates"]) != "0" || line["messages"].(float64) == 0 {
				t.Errorf("scenario %s %s: %v, want nothing lost, early or twice", scenario, extra, line)
			}
		}
	}
}
