package server

import (
	"log/slog"
	"sync"
	"time"

	"github.com/duepost/duepost/internal/wire"
)

// watch looks at a connection from time to time: sends heartbeats when nothing
// else was sent, cuts the connection off when nothing came for two intervals or
// when the client takes nothing. It compares counters, so traffic costs it
// nothing. [amqp 4.2.7]
type watch struct {
	c        *conn
	interval time.Duration // of heartbeats; 0 for none
	period   time.Duration // between looks

	mu      sync.Mutex // guards all below
	timer   *time.Timer
	stopped bool

	reads, writes, calls uint64 // counters as last seen to change
	readAt, writeAt      time.Time
	callAt               time.Time
}

// start begins to watch once limits are agreed on.
func (w *watch) start(c *conn) {
	timeout := c.server.cfg.WriteTimeout
	w.c = c
	w.interval = c.peer.heartbeat
	w.period = timeout / 2
	if w.interval > 0 {
		w.period = min(w.period, w.interval/4)
	}
	if limit := c.server.cfg.ConsumerTimeout; limit > 0 {
		w.period = min(w.period, max(limit/4, time.Millisecond))
	}
	now := time.Now()
	c.stamp(now, w.period)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readAt, w.writeAt, w.callAt = now, now, now
	w.timer = time.AfterFunc(w.period, w.look)
}

// stop ends the watch. It may be called before start and again.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *watch) look() {
	now := time.Now()
	w.c.stamp(now, w.period)
	silence, dead := w.lookOnce(now)
	if dead {
		w.c.note(eventHeartbeatMissed, slog.LevelWarn, "closing connection: missed heartbeats from client",
			slog.Duration("dur", silence))
		w.c.kill()
		return
	}
	w.c.lookAcks(now)
}

// lookOnce looks at both directions, and sets the timer for the next look unless
// the peer is given up.
func (w *watch) lookOnce(now time.Time) (silence time.Duration, dead bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return 0, false
	}
	w.lookWrites(now)
	silence = w.lookReads(now)
	if w.interval > 0 && silence >= 2*w.interval {
		return silence, true
	}
	w.timer.Reset(w.period)
	return silence, false
}

// lookReads returns how long nothing has come. A reader that waits for the broker,
// or for the client to take what it is owed, reads no heartbeats.
func (w *watch) lookReads(now time.Time) time.Duration {
	if reads := w.c.reads.Load(); reads != w.reads || !w.c.reading.Load() {
		w.reads, w.readAt = reads, now
	}
	return now.Sub(w.readAt)
}

// lookWrites sends a heartbeat if nothing was written for half an interval, and
// ends a write call that has been getting nowhere.
func (w *watch) lookWrites(now time.Time) {
	out := w.c.out
	if calls := out.calls.Load(); calls != w.calls || !out.writing.Load() {
		w.calls, w.callAt = calls, now
	} else if now.Sub(w.callAt) >= out.patience {
		out.cutCall(calls)
		w.callAt = now
	}
	if w.interval == 0 {
		return
	}
	if writes := out.written.Load(); writes != w.writes {
		w.writes, w.writeAt = writes, now
	} else if now.Sub(w.writeAt) >= w.interval/2 && out.pending.Load() == 0 {
		out.end(wire.AppendHeartbeat(out.begin()))
		w.writeAt = now
	}
}
