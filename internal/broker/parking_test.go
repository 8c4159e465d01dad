package broker

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// loggedText is a log that can be read while it is written.
type loggedText struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *loggedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *loggedText) lines(with string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, with) {
			found = append(found, line)
		}
	}
	return found
}

// The operator is told of parked messages at once, but not of each.
func TestParkingIsLoggedAndCounted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *rig) {
		log := &loggedText{}
		r := &rig{t: t, dir: t.TempDir(), clock: &steppedClock{}, log: slog.New(slog.NewTextHandler(log, nil))}
		r.start()
		defer r.stop()
		r.delayedExchange("x", "direct")
		for i := range 100 {
			r.publish("x", "nowhere", fmt.Sprint(i), withDelay(1000+int64(i)))
		}
		pass(1500 * time.Millisecond)
		r.publish("x", "nowhere", "later", withDelay(parkingLogEvery.Milliseconds()))
		pass(parkingLogEvery + time.Second)
		if got := r.ParkedTotal(); got != 101 {
			t.Errorf("ParkedTotal() = %d, want 101", got)
		}
		lines := log.lines("no queue is bound for due messages: parked")
		if len(lines) != 2 {
			t.Fatalf("%d lines, want 2: %q", len(lines), lines)
		}
		for i, want := range []string{"messages=1\n", "messages=100\n"} {
			if !strings.Contains(lines[i], "level=WARN") || !strings.Contains(lines[i], "exchange=x key=nowhere "+want) {
				t.Errorf("line %d is %q, want one with %q", i, lines[i], want)
			}
		}
	})
}
