// Package testbroker is about brokers in processes of their own: Duepost and real RabbitMQs, for
// programs and tests that look at them from outside.
//
// It starts a broker on ports that nobody has, with everything it writes below one directory, and
// stops it, kills it and starts it again there. It knows nothing of what is done with them.
package testbroker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Times that a broker may take.
const (
	startTimeout = 90 * time.Second
	stopTimeout  = 30 * time.Second
	tryEvery     = 50 * time.Millisecond
)

// Broker is a broker in a process of its own. Its methods are for one goroutine at a time.
type Broker struct {
	// Name is the product and, of RabbitMQ, its version.
	Name string
	// AMQPAddr is host and port. The user is guest, with the password guest.
	AMQPAddr string
	// HTTPAddr is host and port of the management API, empty without one.
	HTTPAddr string

	command func(ctx context.Context, program string, args ...string) *exec.Cmd
	serve   []string  // the program that is the broker, with its arguments
	control string    // the broker's own administration tool, empty without one
	cmd     *exec.Cmd // nil while there is no process
	output  *tail
	ended   chan error
}

// URL is where clients connect as guest.
func (b *Broker) URL() string { return "amqp://guest:guest@" + b.AMQPAddr + "/" }

// PID is that of the process, whose children do the work with RabbitMQ. It is 0 after the end.
func (b *Broker) PID() int {
	if b.cmd == nil {
		return 0
	}
	return b.cmd.Process.Pid
}

// Output is what the broker printed last.
func (b *Broker) Output() string { return b.output.String() }

// Start starts the broker again after Stop or Kill, on the same ports and the same directory, and
// waits until it serves. The process has a group of its own, so that an interrupt of ours does not
// stop it behind our back.
func (b *Broker) Start(ctx context.Context) error {
	b.output = &tail{}
	b.ended = make(chan error, 1)
	cmd := b.command(context.WithoutCancel(ctx), b.serve[0], b.serve[1:]...)
	cmd.Stdout, cmd.Stderr = b.output, b.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", b.Name, err)
	}
	b.cmd = cmd
	go func(ended chan<- error) { ended <- cmd.Wait() }(b.ended)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !b.serves(ctx) {
		select {
		case err := <-b.ended:
			b.cmd = nil
			return fmt.Errorf("start %s: it ended: %v\n%s", b.Name, err, b.output)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("start %s: %w\n%s", b.Name, ctx.Err(), b.output), b.Kill())
		case <-time.After(tryEvery):
		}
	}
	return nil
}

// serves reports whether all ports answer.
func (b *Broker) serves(ctx context.Context) bool {
	conn, err := net.Dial("tcp", b.AMQPAddr)
	if err != nil {
		return false
	}
	conn.Close()
	if b.HTTPAddr == "" {
		return true
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.HTTPAddr+"/api/overview", nil)
	if err != nil {
		return false
	}
	request.SetBasicAuth("guest", "guest")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// Stop ends the broker in order, and by force if it does not obey. Without a process it does
// nothing.
func (b *Broker) Stop() error {
	if b.cmd == nil {
		return nil
	}
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", b.Name, err)
	}
	select {
	case <-b.ended:
		b.cmd = nil
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("stop %s: no end after %v, killed", b.Name, stopTimeout), b.Kill())
	}
}

// Kill ends the broker as a crash would. Without a process it does nothing.
func (b *Broker) Kill() error {
	if b.cmd == nil {
		return nil
	}
	if err := b.signalGroup(syscall.SIGKILL); err != nil {
		return err
	}
	<-b.ended
	b.cmd = nil
	return nil
}

// Freeze lets the broker do nothing until Thaw, while its connections stay as they are: so looks a
// machine that hangs.
func (b *Broker) Freeze() error { return b.signalGroup(syscall.SIGSTOP) }

// Thaw lets the broker go on.
func (b *Broker) Thaw() error { return b.signalGroup(syscall.SIGCONT) }

// signalGroup signals all processes of the broker.
func (b *Broker) signalGroup(sig syscall.Signal) error {
	if b.cmd == nil {
		return fmt.Errorf("signal %s: it does not run", b.Name)
	}
	// The negative id is the group that Start made.
	if err := syscall.Kill(-b.cmd.Process.Pid, sig); err != nil {
		return fmt.Errorf("send %v to %s: %w", sig, b.Name, err)
	}
	return nil
}

// Control runs the broker's own administration tool, rabbitmqctl, and returns what it prints.
func (b *Broker) Control(ctx context.Context, args ...string) (string, error) {
	if b.control == "" {
		return "", fmt.Errorf("control %s: it has no tool of its own", b.Name)
	}
	out, err := b.command(ctx, b.control, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("control %s: %q: %w\n%s", b.Name, args, err, out)
	}
	return string(out), nil
}

// freeAddr asks the kernel for a port of the loopback interface that nobody has.
func freeAddr() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// tailBytes is how much of a broker's output is kept.
const tailBytes = 64 << 10

// tail keeps what a process printed last.
type tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

// Write keeps p and forgets what is too old.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if cut := len(t.b) - tailBytes; cut > 0 {
		t.b = append(t.b[:0], t.b[cut:]...)
	}
	return len(p), nil
}

// String is what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
