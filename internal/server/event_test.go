package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestEventsAreCountedAndLoggedSparingly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		e := events{log: slog.New(slog.NewTextHandler(&log, nil))}
		for range 100 {
			e.note(eventFrameError, slog.LevelWarn, "bad frame")
		}
		e.note(eventPanic, slog.LevelError, "oops")
		if n := strings.Count(log.String(), "bad frame"); n != linesPerSecond {
			t.Errorf("%d lines for a flood, want %d", n, linesPerSecond)
		}
		if !strings.Contains(log.String(), "oops") {
			t.Error("another event was not logged")
		}
		log.Reset()
		time.Sleep(time.Second)
		e.note(eventFrameError, slog.LevelWarn, "bad frame")
		if !strings.Contains(log.String(), "suppressed=90") {
			t.Errorf("log = %q, want the number of suppressed lines", log.String())
		}
		if n := e.counts[eventFrameError].Load(); n != 101 {
			t.Errorf("counted %d, want 101", n)
		}
	})
}
