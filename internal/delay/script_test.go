package delay

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/store"
)

var rewrite = flag.Bool("rewrite", false, "write the output of scripts into testdata")

// TestScripts plays the stories of testdata in virtual time. A line is a command, and the
// indented lines below it are what it must print; # begins a comment. Instants count from the
// start of the script by the wall clock. Go test -rewrite puts in what is printed.
//
//	publish NAME DELAY          add a message
//	cancel NAME                 print the outcome
//	advance DURATION            let time pass; print what the sink gets
//	step DURATION               set the clock, which the watcher reports
//	step-unseen DURATION        set the clock, which nobody reports
//	reject NAME N               the next N attempts are rejected
//	park NAME REASON, drop NAME the next attempt ends so
//	restart, kill [DURATION]    stop in order or at once, wait, open again
//	full, broken, well          how the disk is
//	stats                       print the counters
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("find scripts: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(text), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// play returns the script with the output it has now.
func play(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	rigTest(t, Config{RetryMin: 100 * time.Millisecond, RetryMax: time.Second}, func(t *testing.T, r *rig) {
		s := &script{r: r, start: r.clock.Now(), keys: map[string]store.Key{}}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "\t") {
				continue
			}
			out.WriteString(line)
			command, _, _ := strings.Cut(line, "#")
			if words := strings.Fields(command); len(words) > 0 {
				for _, printed := range s.do(words) {
					fmt.Fprintf(&out, "\t%s\n", printed)
				}
			}
		}
	})
	return out.String()
}

// script is one that is being played.
type script struct {
	r     *rig
	start time.Time
	keys  map[string]store.Key
}

// do carries out one command and returns what it prints.
func (s *script) do(words []string) []string {
	r := s.r
	word := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch words[0] {
	case "publish":
		key, lsn, err := r.engine.Add(&store.Message{Body: []byte(word(1)), TTL: -1}, r.clock.in(s.duration(word(2))))
		if err != nil {
			return []string{"refused: " + err.Error()}
		}
		s.keys[word(1)] = key
		r.durable(lsn)
	case "cancel":
		outcome, lsn, err := r.engine.Cancel(s.keys[word(1)])
		if err != nil {
			return []string{"refused: " + err.Error()}
		}
		r.durable(lsn)
		synctest.Wait()
		return []string{outcome.String()}
	case "advance":
		time.Sleep(s.duration(word(1)))
	case "step":
		r.clock.step(s.duration(word(1)))
		r.alarms.Recheck()
	case "step-unseen":
		r.clock.step(s.duration(word(1)))
	case "reject":
		n, err := strconv.Atoi(word(2))
		if err != nil {
			r.t.Fatalf("%v: %v", words, err)
		}
		for range n {
			r.sink.rule(word(1), Outcome{Verdict: Retry})
		}
	case "park":
		r.sink.rule(word(1), Outcome{Verdict: Parked, Reason: strings.Join(words[2:], " "), TTL: -1})
	case "drop":
		r.sink.rule(word(1), Outcome{Verdict: Dropped})
	case "restart":
		s.again((*rig).stop, word(1))
	case "kill":
		s.again((*rig).kill, word(1))
	case "full":
		r.store.fail(store.ErrFull, nil)
	case "broken":
		r.store.fail(nil, errors.New("disk is broken"))
	case "well":
		r.store.fail(nil, nil)
	case "stats":
		return []string{s.stats()}
	default:
		r.t.Fatalf("no such command: %v", words)
	}
	return s.handed()
}

func (s *script) again(down func(*rig), wait string) {
	down(s.r)
	if wait != "" {
		time.Sleep(s.duration(wait))
	}
	s.r.open()
	s.r.start()
}

// duration parses a duration; days are written as 24h.
func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.r.t.Fatal(err)
	}
	return d
}

// handed prints what the sink got.
func (s *script) handed() (lines []string) {
	for _, h := range s.r.sink.take() {
		line := fmt.Sprintf("%v %s %s", s.since(h.at), verdict(h.outcome.Verdict), h.name)
		switch {
		case h.outcome.Verdict == Retry:
			line += fmt.Sprintf(" until %v", s.since(h.outcome.RetryAt))
		case h.outcome.Reason != "":
			line += ": " + h.outcome.Reason
		}
		if late := h.at - h.key.Due; late != 0 {
			line += fmt.Sprintf(", %v late", time.Duration(late)*time.Millisecond)
		}
		lines = append(lines, line)
	}
	return lines
}

func (s *script) since(at int64) time.Duration {
	return time.Duration(at-s.start.UnixMilli()) * time.Millisecond
}

func (s *script) stats() string {
	e, a := s.r.engine.Stats(), s.r.alarms.Stats()
	line := fmt.Sprintf("pending %d added %d released %d parked %d retried %d dropped %d cancelled %d",
		e.Pending.Count, e.Added, e.Released, e.Parked, e.Retried, e.Dropped, e.Cancelled)
	line += fmt.Sprintf(" alarms %d steps +%d -%d", a.Set, a.StepsForward, a.StepsBack)
	if e.Held {
		line += " held"
	}
	if e.Failed {
		line += " failed"
	}
	return line
}

func verdict(v Verdict) string {
	return [...]string{Retry: "rejected", Moved: "moved", Parked: "parked", Copied: "copied", Dropped: "dropped"}[v]
}
