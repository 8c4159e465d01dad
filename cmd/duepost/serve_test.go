package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// asProgram makes the test binary behave as the program itself, for tests that need a process.
const asProgram = "DUEPOST_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Unsetenv("COLUMNS") // the help has the width of the golden files
	os.Exit(m.Run())
}

// startServe runs duepost serve in a process of its own on free ports and a new directory.
func startServe(t *testing.T, args ...string) *running {
	t.Helper()
	return runCommand(t, mustExecutable(t)+" serve "+strings.Join(args, " "), asProgram+"=1",
		"DUEPOST_DATA_DIR="+t.TempDir(), "DUEPOST_AMQP_ADDR=127.0.0.1:0", "DUEPOST_HTTP_ADDR=127.0.0.1:0")
}

func TestServeStopsInOrder(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			serve := startServe(t)
			url := serve.await(regexp.MustCompile(`amqp://\S+`))
			t.Logf("ready after %v, the start of the process included", time.Since(began))
			conn, err := amqp.Dial(url)
			if err != nil {
				t.Fatal(err)
			}
			closed := conn.NotifyClose(make(chan *amqp.Error, 1))
			serve.signal(s)
			if err := <-closed; err == nil || err.Code != amqp.ConnectionForced {
				t.Errorf("the client was told %v, want 320 CONNECTION_FORCED", err)
			}
			serve.awaitEnd("is ready")
		})
	}
}

// The welcome's two commands work as they are printed.
func TestServeWelcome(t *testing.T) {
	t.Parallel()
	serve := startServe(t)
	serve.await(regexp.MustCompile(`--queue orders`))
	lines := regexp.MustCompile(`(?m)^  duepost (.*)$`).FindAllStringSubmatch(serve.printed(), -1)
	if len(lines) != 2 {
		t.Fatalf("want two commands in:\n%s", serve.printed())
	}
	mustRun(t, nil, "", strings.Fields(strings.Replace(lines[0][1], "5s", "1s", 1))...)
	out := mustRun(t, nil, "", append(strings.Fields(lines[1][1]), "--count", "1")...)
	if !regexp.MustCompile(`orders  hello  \(\d+ ms after due\)`).MatchString(out) {
		t.Errorf("consume printed %q", out)
	}
}

// A second signal ends the process at once, whatever the first has begun.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	serve := startServe(t, "--stop-timeout", "1h")
	url := serve.await(regexp.MustCompile(`amqp://\S+`))
	// A client that does not answer connection.close holds up the orderly stop.
	address := regexp.MustCompile(`127.0.0.1:\d+`).FindString(url)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	serve.signal(syscall.SIGTERM)
	serve.awaitRefused(address)
	serve.signal(syscall.SIGTERM)
	select {
	case err := <-serve.ended:
		serve.ended <- err
	case <-time.After(patience):
		t.Error("still running after the second signal")
	}
}

// awaitRefused waits until nobody listens at the address any more.
func (r *running) awaitRefused(address string) {
	r.t.Helper()
	for limit := time.Now().Add(patience); time.Now().Before(limit); {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		conn.Close()
	}
	r.t.Errorf("%s still accepts after %v", address, patience)
}

func TestServeRefusals(t *testing.T) {
	t.Parallel()
	env := startBroker(t)
	taken := regexp.MustCompile(`127.0.0.1:\d+`).FindString(env["DUEPOST_URL"])
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, nil)
	first := runCommand(t, mustExecutable(t)+" serve", asProgram+"=1",
		"DUEPOST_DATA_DIR="+dir, "DUEPOST_AMQP_ADDR=127.0.0.1:0", "DUEPOST_HTTP_ADDR=")
	first.await(regexp.MustCompile(`is ready`))
	for _, tt := range []struct {
		name, dir, addr string
		want            []string
	}{
		{"directory in use", dir, "127.0.0.1:0", []string{"data-dir " + dir, "in use by another process", "--data-dir"}},
		{"taken port", t.TempDir(), taken, []string{"amqp-addr " + taken, "address already in use", "--amqp-addr"}},
		{"unwritable directory", filepath.Join(file, "data"), "127.0.0.1:0", []string{"data-dir " + file, "not a directory"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(mustExecutable(t), "serve", "--data-dir", tt.dir, "--amqp-addr", tt.addr, "--http-addr", "")
			cmd.Env = append(os.Environ(), asProgram+"=1")
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != exitRefused {
				t.Errorf("ended with %v, want exit code %d", err, exitRefused)
			}
			t.Logf("%s", out)
			for _, want := range append(tt.want, "duepost: start broker:", "hint:") {
				if !strings.Contains(string(out), want) {
					t.Errorf("output lacks %q:\n%s", want, out)
				}
			}
		})
	}
}

func mustExecutable(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}
