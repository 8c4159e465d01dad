package server

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// event is something about a connection that an operator wants counted, and
// logged unless there are too many.
type event uint8

const (
	eventHandshakeTimeout event = iota
	eventWrongHeader
	eventAuthRefused
	eventRefused
	eventFrameError
	eventConnectionError
	eventChannelError
	eventHeartbeatMissed
	eventWriteStalled
	eventAbruptClose
	eventConsumerTimeout
	eventPanic
	eventAccept
	numEvents
)

// linesPerSecond is how many log lines each event may cause per second.
const linesPerSecond = 10

// events counts and logs. A flood of one event neither floods the log nor hides
// other events.
type events struct {
	log    *slog.Logger
	counts [numEvents]atomic.Uint64

	mu   sync.Mutex // guards gate
	gate [numEvents]struct {
		second  int64 // in which lines were written
		lines   int
		dropped int // since the last line
	}
}

// note counts the event and writes a log line, if the event may have one now.
func (e *events) note(ev event, level slog.Level, msg string, attrs ...slog.Attr) {
	e.counts[ev].Add(1)
	if !e.log.Enabled(context.Background(), level) {
		return // it must not use up the lines of what is written
	}
	dropped, ok := e.admit(ev, time.Now().Unix())
	if !ok {
		return
	}
	if dropped > 0 {
		attrs = append(attrs, slog.Int("suppressed", dropped))
	}
	e.log.LogAttrs(context.Background(), level, msg, attrs...)
}

func (e *events) admit(ev event, second int64) (dropped int, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := &e.gate[ev]
	if g.second != second {
		g.second, g.lines = second, 0
	}
	if g.lines == linesPerSecond {
		g.dropped++
		return 0, false
	}
	g.lines++
	dropped, g.dropped = g.dropped, 0
	return dropped, true
}
