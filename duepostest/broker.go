// Package duepostest is about tests of programs that use a broker: it runs a whole Duepost in the
// process of the test, on a port of its own and with its disk in memory, in a few milliseconds.
//
//	func TestCloseUnpaid(t *testing.T) {
//		broker := duepostest.Start(t)
//		client, err := duepost.Connect(t.Context(), duepost.Options{URL: broker.URL})
//		...
//		broker.Advance(30 * time.Minute) // what waits for less is due now
//	}
//
// It knows how to start, stop and kill the broker and to move its clock. It does not know the
// SDK: any AMQP 0-9-1 client can connect.
package duepostest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/config"
	"github.com/duepost/duepost/internal/daemon"
)

// segmentBytes keeps the start fast and the broker small.
const segmentBytes = 1 << 20

// Broker is a broker in this process.
type Broker struct {
	// URL is where clients connect, as user guest. It stays the same over restarts.
	URL string

	fail   func(format string, a ...any) // ends the test or the program
	cfg    config.Config
	clock  clock
	disk   *disk
	daemon *daemon.Daemon
}

// Start runs an empty broker and stops it when the test ends. It ends the test if it cannot.
func Start(t testing.TB) *Broker {
	t.Helper()
	b, err := open(t.Fatalf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	return b
}

// Open runs an empty broker for a program that is no test, such as an example. Stop ends it.
func Open() (*Broker, error) {
	return open(func(format string, a ...any) {
		fmt.Fprintf(os.Stderr, format+"\n", a...)
		os.Exit(1)
	})
}

func open(fail func(string, ...any)) (*Broker, error) {
	cfg := config.Default()
	cfg.DataDir, cfg.AMQPAddr, cfg.HTTPAddr = "data", "127.0.0.1:0", "" // a directory on disk
	b := &Broker{fail: fail, cfg: cfg, disk: newDisk()}
	if err := b.start(); err != nil {
		return nil, err
	}
	b.cfg.AMQPAddr = b.daemon.AMQPAddr().String()
	b.URL = "amqp://guest:guest@" + b.cfg.AMQPAddr + "/"
	return b, nil
}

func (b *Broker) start() (err error) {
	on := daemon.Machine{Disk: b.disk, Clock: &b.clock, SegmentBytes: segmentBytes}
	b.daemon, err = daemon.StartOn(on, b.cfg, slog.New(slog.DiscardHandler))
	return err
}

// Advance moves the broker's clock ahead by d, so that delays, times to live and pauses between
// retries that end by then end now. The clock runs on from there. The broker works
// on what has become due after Advance has returned. Not to be called while the broker is stopped.
func (b *Broker) Advance(d time.Duration) {
	b.clock.ahead.Add(int64(d))
	b.daemon.ClockSet()
}

// Now is the time on the broker's clock. It can be a client's clock, too.
func (b *Broker) Now() time.Time { return b.clock.Now() }

// Stop ends the broker in order, as a restart of its machine would. What is durable is there
// after Restart. Stopping what is stopped does nothing.
func (b *Broker) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), b.cfg.StopTimeout)
	defer cancel()
	if err := b.daemon.Shutdown(ctx); err != nil {
		b.fail("stop broker: %v", err)
	}
}

// Kill ends the broker as kill -9 would: clients are cut off, and only what was confirmed is
// there after Restart.
func (b *Broker) Kill() { b.daemon.Kill() }

// Restart starts a broker that was stopped or killed, on the same port and with what it had.
func (b *Broker) Restart() {
	if err := b.start(); err != nil {
		b.fail("%v", err)
	}
}

// clock is the machine's clock, set ahead.
type clock struct{ ahead atomic.Int64 }

// Now returns the time.
func (c *clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }
