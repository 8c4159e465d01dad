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
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/config"
	"github.com/duepost/duepost/internal/daemon"
)

// segmentBytes keeps the start fast and the broker small.
const segmentBytes = 1 << 20

// Broker is a broker that runs until the test ends.
type Broker struct {
	// URL is where clients connect, as user guest. It stays the same over restarts.
	URL string

	t      testing.TB
	cfg    config.Config
	clock  clock
	disk   *disk
	daemon *daemon.Daemon
}

// Start runs an empty broker and stops it when the test ends. It ends the test if
// it cannot.
func Start(t testing.TB) *Broker {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir, cfg.AMQPAddr, cfg.HTTPAddr = "data", "127.0.0.1:0", "" // a directory on disk
	b := &Broker{t: t, cfg: cfg, disk: newDisk()}
	b.start()
	b.cfg.AMQPAddr = b.daemon.AMQPAddr().String()
	b.URL = "amqp://guest:guest@" + b.cfg.AMQPAddr + "/"
	t.Cleanup(b.Stop)
	return b
}

func (b *Broker) start() {
	b.t.Helper()
	on := daemon.Machine{Disk: b.disk, Clock: &b.clock, SegmentBytes: segmentBytes}
	d, err := daemon.StartOn(on, b.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		b.t.Fatalf("start broker: %v", err)
	}
	b.daemon = d
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
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), b.cfg.StopTimeout)
	defer cancel()
	if err := b.daemon.Shutdown(ctx); err != nil {
		b.t.Errorf("stop broker: %v", err)
	}
}

// Kill ends the broker as kill -9 would: clients are cut off, and only what was confirmed is
// there after Restart.
func (b *Broker) Kill() { b.daemon.Kill() }

// Restart starts a broker that was stopped or killed, on the same port and with what it had.
func (b *Broker) Restart() {
	b.t.Helper()
	b.start()
}

// clock is the machine's clock, set ahead.
type clock struct{ ahead atomic.Int64 }

// Now returns the time.
func (c *clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }
