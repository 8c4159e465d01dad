// Command backlog shows what a queue that nobody consumes costs: it fills one with persistent
// messages, kills the broker, starts it again, and drains the queue. After each part it prints the
// rate and the broker's memory. It checks that every message comes back, in order.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	queue    = "backlog"
	window   = 5000 // unconfirmed
	prefetch = 5000
	patience = 5 * time.Minute // for a start
)

// bench is one run.
type bench struct {
	program, dir, addr string
	messages, size     int
	cmd                *exec.Cmd
}

func main() {
	b := bench{}
	flag.StringVar(&b.program, "duepost", "", "the program; built if empty")
	flag.StringVar(&b.dir, "dir", "", "an empty directory for everything; a temporary one if empty")
	flag.IntVar(&b.messages, "n", 10_000_000, "messages")
	flag.IntVar(&b.size, "size", 100, "bytes of a body, at least 8")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "backlog:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context) error {
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "backlog-")
		if err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
		defer os.RemoveAll(dir)
		b.dir = dir
	}
	if b.program == "" {
		b.program = filepath.Join(b.dir, "duepost")
		build := exec.CommandContext(ctx, "go", "build", "-o", b.program, "github.com/duepost/duepost/cmd/duepost")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build duepost: %w\n%s", err, out)
		}
	}
	defer b.kill()
	if _, err := b.start(ctx); err != nil {
		return err
	}
	if err := b.fill(ctx); err != nil {
		return fmt.Errorf("fill queue: %w", err)
	}
	b.kill()
	took, err := b.start(ctx)
	if err != nil {
		return err
	}
	b.report("open after kill -9", b.messages, took)
	if err := b.drain(ctx); err != nil {
		return fmt.Errorf("drain queue: %w", err)
	}
	return nil
}

// start starts the broker and waits until it serves clients.
func (b *bench) start(ctx context.Context) (time.Duration, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	b.addr = ln.Addr().String()
	ln.Close()
	b.cmd = exec.Command(b.program, "serve", "--data-dir", filepath.Join(b.dir, "data"),
		"--amqp-addr", b.addr, "--http-addr", "", "--log-level", "warn")
	b.cmd.Stderr = os.Stderr
	begin := time.Now()
	if err := b.cmd.Start(); err != nil {
		return 0, fmt.Errorf("start duepost: %w", err)
	}
	for {
		conn, err := b.dial()
		if err == nil {
			return time.Since(begin), conn.Close()
		}
		if ctx.Err() != nil || time.Since(begin) > patience {
			return 0, fmt.Errorf("start duepost: %w", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (b *bench) kill() {
	if b.cmd != nil {
		_ = b.cmd.Process.Kill()
		_ = b.cmd.Wait() // it was killed, and says so
		b.cmd = nil
	}
}

func (b *bench) dial() (*amqp.Connection, error) {
	return amqp.DialConfig("amqp://guest:guest@"+b.addr+"/", amqp.Config{
		Dial: amqp.DefaultDial(patience), // it takes connections before it has read its log
	})
}

func (b *bench) channel() (*amqp.Channel, error) {
	conn, err := b.dial()
	if err != nil {
		return nil, err
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	_, err = ch.QueueDeclare(queue, true, false, false, false, nil)
	return ch, err
}

// fill publishes numbered messages and prints what each million took.
func (b *bench) fill(ctx context.Context) error {
	ch, err := b.channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	var pending []*amqp.DeferredConfirmation
	body := make([]byte, max(b.size, 8))
	begin := time.Now()
	for i := range b.messages {
		binary.BigEndian.PutUint64(body, uint64(i))
		c, err := ch.PublishWithDeferredConfirm("", queue, false, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body})
		if err != nil {
			return err
		}
		if pending = append(pending, c); len(pending) == window || i == b.messages-1 {
			if err := confirmed(ctx, pending); err != nil {
				return err
			}
			pending = pending[:0]
		}
		if step := b.step(); (i+1)%step == 0 {
			b.report(fmt.Sprintf("%d published", i+1), step, time.Since(begin))
			begin = time.Now()
		}
	}
	return nil
}

func confirmed(ctx context.Context, list []*amqp.DeferredConfirmation) error {
	for _, c := range list {
		ok, err := c.WaitContext(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("message %d was refused", c.DeliveryTag)
		}
	}
	return nil
}

// drain consumes everything and checks that each message is the next.
func (b *bench) drain(ctx context.Context) error {
	ch, err := b.channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.ConsumeWithContext(ctx, queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	begin := time.Now()
	for i := range b.messages {
		d, ok := <-deliveries
		if !ok {
			return fmt.Errorf("deliveries ended after %d", i)
		}
		if got := binary.BigEndian.Uint64(d.Body); got != uint64(i) {
			return fmt.Errorf("message %d came as number %d", got, i)
		}
		if (i+1)%(prefetch/10) == 0 || i == b.messages-1 {
			if err := d.Ack(true); err != nil {
				return err
			}
		}
		if step := b.step(); (i+1)%step == 0 {
			b.report(fmt.Sprintf("%d consumed", i+1), step, time.Since(begin))
			begin = time.Now()
		}
	}
	return nil
}

// step is after how many messages a line is printed.
func (b *bench) step() int { return max(1, min(b.messages, 1_000_000)) }

func (b *bench) report(what string, n int, took time.Duration) {
	fmt.Printf("%-24s %8.2f s %10.0f msg/s   RSS %4d MiB, peak %4d MiB\n", what, took.Seconds(),
		float64(n)/took.Seconds(), b.memory("VmRSS"), b.memory("VmHWM"))
}

// memory reads a line of /proc/PID/status, in MiB; -1 where there is none.
func (b *bench) memory(name string) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.cmd.Process.Pid))
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[0] == name+":" {
			kib, _ := strconv.Atoi(fields[1])
			return kib >> 10
		}
	}
	return -1
}
