package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// screen writes the story line by line. Colour is used for little: what ends well, what ends
// badly, and what is only by the way.
type screen struct {
	start time.Time
	color bool

	mu  sync.Mutex // guards out
	out io.Writer
}

// The SGR codes in use.
const (
	plain  = ""
	dim    = "2"
	bold   = "1"
	green  = "32"
	yellow = "33"
	red    = "31"
)

// line writes one event with the seconds since the start.
func (s *screen) line(style, format string, a ...any) {
	at := fmt.Sprintf("%6.2f s  ", time.Since(s.start).Seconds())
	s.write(s.paint(dim, at) + s.paint(style, fmt.Sprintf(format, a...)) + "\n")
}

// text writes what has no time.
func (s *screen) text(style, format string, a ...any) {
	s.write(s.paint(style, fmt.Sprintf(format, a...)) + "\n")
}

func (s *screen) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// There is nobody to tell that the terminal is gone.
	_, _ = io.WriteString(s.out, text)
}

func (s *screen) paint(style, text string) string {
	if !s.color || style == plain {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// table writes the final figures.
func (s *screen) table(r Report) {
	s.text(bold, "\n%-24s %9s %9s %12s %12s %6s %9s",
		"", "messages", "received", "earliest", "latest", "lost", "repeated")
	s.row("due while up", r.Up)
	s.row(fmt.Sprintf("held up by %d ms down", r.Downtime.Milliseconds()), r.Down)
	s.text(dim, "earliest and latest: hand-over against due, in milliseconds\nallowed: %s\n", allowance(r))
	switch {
	case r.OnTime():
		s.text(green, "Nothing lost, nothing early, all on time.")
	case r.Up.Lost()+r.Down.Lost() > 0:
		s.text(red, "Lost: %d messages.", r.Up.Lost()+r.Down.Lost())
	default:
		s.text(red, "Not all was on time: %d later than allowed, the earliest %s ms against due.",
			r.Up.Overdue+r.Down.Overdue, signedMillis(min(r.Up.Earliest, r.Down.Earliest)))
	}
}

// allowance says what the judgement rests on.
func allowance(r Report) string {
	text := fmt.Sprintf("up to %d ms after due", r.Allowed().Milliseconds())
	if ms := r.Stall.Milliseconds(); ms > 0 {
		text += fmt.Sprintf(", %d ms of it because this machine kept the demo waiting", ms)
	}
	return text + ";\n         what the kill held up, that long after the broker is back"
}

func (s *screen) row(name string, r Row) {
	style := plain
	if !r.OnTime() {
		style = red
	}
	earliest, latest := "-", "-"
	if r.Received > 0 {
		earliest, latest = signedMillis(r.Earliest), signedMillis(r.Latest)
	}
	s.text(style, "%-24s %9d %9d %12s %12s %6d %9d",
		name, r.Placed, r.Received, earliest, latest, r.Lost(), r.Repeated)
}

func signedMillis(d time.Duration) string {
	return fmt.Sprintf("%+.1f", float64(d.Microseconds())/1000)
}

// seconds writes a delay as the story tells it.
func seconds(d time.Duration) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
}
