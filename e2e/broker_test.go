package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	urlVariable   = "DUEPOST_E2E_URL"
	slackVariable = "DUEPOST_E2E_SLACK_MS"
)

// readyWithin bounds the start of a broker on a busy machine.
const readyWithin = 20 * time.Second

// broker is a "duepost serve" process that can be killed and started again on
// the same directory and ports, or the broker that DUEPOST_E2E_URL names.
type broker struct {
	url     string
	httpURL string
	dir     string
	args    []string
	cmd     *exec.Cmd
	exited  chan error
	log     *tail
}

// tail keeps what a process printed last.
type tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

const tailBytes = 64 << 10

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	if cut := len(l.b) - tailBytes; cut > 0 {
		l.b = append(l.b[:0], l.b[cut:]...)
	}
	return len(p), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(bytes.Clone(l.b))
}

// anyBroker returns the broker of DUEPOST_E2E_URL if there is one, else a new
// one that ends with the test.
func anyBroker(t *testing.T) *broker {
	t.Helper()
	noteSources(t)
	if url := os.Getenv(urlVariable); url != "" {
		return &broker{url: url}
	}
	return startBroker(t)
}

// startBroker starts a new broker that ends with the test.
func startBroker(t *testing.T) *broker {
	t.Helper()
	b := newBroker(t)
	b.start(t)
	return b
}

// newBroker prepares a broker on an empty directory and free ports.
func newBroker(t *testing.T) *broker {
	t.Helper()
	noteSources(t)
	if os.Getenv(urlVariable) != "" {
		t.Skipf("needs a process of its own, and %s names a broker that runs", urlVariable)
	}
	amqpAddr, httpAddr := freeAddr(t), freeAddr(t)
	b := &broker{
		url:     "amqp://guest:guest@" + amqpAddr,
		httpURL: "http://" + httpAddr,
		dir:     t.TempDir(),
	}
	b.args = []string{"serve", "--data-dir", b.dir, "--amqp-addr", amqpAddr, "--http-addr", httpAddr}
	t.Cleanup(func() {
		if b.cmd != nil {
			b.kill(t)
		}
		if t.Failed() && b.log != nil {
			t.Logf("what duepost printed last:\n%s", b.log)
		}
	})
	return b
}

// freeAddr is a loopback address whose port was free a moment ago.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start runs the process and waits until it says that it is ready.
func (b *broker) start(t *testing.T) {
	t.Helper()
	b.log = cmp.Or(b.log, &tail{})
	b.cmd = exec.Command(os.Getenv(binaryVariable), b.args...)
	b.cmd.Stdout, b.cmd.Stderr = b.log, b.log
	// A data race ends the broker at once, and with it the test.
	b.cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1")
	if err := b.cmd.Start(); err != nil {
		t.Fatalf("start duepost: %v", err)
	}
	b.exited = make(chan error, 1)
	go func(cmd *exec.Cmd, exited chan<- error) { exited <- cmd.Wait() }(b.cmd, b.exited)
	b.awaitReady(t)
}

func (b *broker) awaitReady(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(readyWithin)
	client := &http.Client{Timeout: time.Second}
	var last error
	for {
		select {
		case err := <-b.exited:
			b.cmd = nil
			t.Fatalf("duepost ended before it was ready: %v\n%s", err, b.log)
		case <-late:
			t.Fatalf("duepost is not ready after %s: %v", readyWithin, last)
		case <-tick.C:
		}
		resp, err := client.Get(b.httpURL + "/healthz")
		if last = err; err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
		last = fmt.Errorf("/healthz says %s", resp.Status)
	}
}

// kill ends the process as a crash would and waits until it is gone.
func (b *broker) kill(t *testing.T) {
	t.Helper()
	if err := b.cmd.Process.Kill(); err != nil {
		t.Errorf("kill duepost: %v", err)
	}
	<-b.exited
	b.cmd = nil
}

// stop asks the process to end and returns how it did.
func (b *broker) stop(t *testing.T) error {
	t.Helper()
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("signal duepost: %v", err)
	}
	select {
	case err := <-b.exited:
		b.cmd = nil
		return err
	case <-time.After(30 * time.Second):
		return fmt.Errorf("duepost did not end within 30 s of SIGTERM")
	}
}

// dial connects, and closes the connection when the test ends.
func (b *broker) dial(t *testing.T) *amqp.Connection {
	t.Helper()
	conn, err := amqp.Dial(b.url)
	if err != nil {
		t.Fatalf("connect to %s: %v", b.url, err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// product is what the broker calls itself.
func (b *broker) product(t *testing.T) string {
	t.Helper()
	name, _ := b.dial(t).Properties["product"].(string)
	return name
}
