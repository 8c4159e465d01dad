package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/load"
)

func result(micros, p50, p99 float64) load.Result {
	return load.Result{BrokerMicros: micros, Lateness: &load.Percentiles{P50: p50, P99: p99, Max: 2 * p99}}
}

func TestGates(t *testing.T) {
	t.Parallel()
	floor := load.Result{BrokerMicros: 800, Latency: &load.Percentiles{P50: 1, P99: 4, Max: 9}}
	b := bench{rows: []row{
		{noDelay, 330, floor}, {byRelay, 330, result(1300, 2, 20)}, {byLadder, 330, result(2400, 100, 200)},
		{byLadder, 660, result(1800, 400, 1900)}, {byLadder, 1500, result(900, 9000, 20000)},
		{byRelay, 1500, result(590, 2.5, 30)},
	}}
	var out strings.Builder
	err := b.print(&out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if want := "| no delay | 330 | 800 | - | 1.0 | 4.0 | 9 | 0 | 0 | 0 |"; lines[2] != want {
		t.Errorf("row: got %q, want %q", lines[2], want)
	}
	gates := lines[slices.Index(lines, "")+1:]
	want := []string{
		"- holds: 330/s: late p50 2.0 ms, p99 20.0 ms; at most 3 and 25",
		"- MISSED: 330/s: 1.62 times what a message without a delay costs; at most 1.5",
		"- MISSED: 1500/s: late p50 2.5 ms, p99 30.0 ms; at most 3 and 25",
		"- holds: 1500/s: 3.1 times less than the ladder at 660/s; at least 3",
	}
	if !slices.Equal(gates, want) {
		t.Errorf("gates:\ngot  %q\nwant %q", gates, want)
	}
	if err == nil || strings.Count(err.Error(), "missed:") != 2 {
		t.Errorf("error: got %v, want the two that are missed", err)
	}

	late := result(590, 1, 1)
	late.Lost = 1
	b = bench{rows: []row{{byRelay, 1500, late}}, burst: &late}
	if err := b.print(io.Discard); err == nil || !strings.Contains(err.Error(), "0 early, 1 lost") {
		t.Errorf("one lost: got %v", err)
	}
}

func TestLadderKey(t *testing.T) {
	t.Parallel()
	got := ladderKey("q")(5 * time.Second)
	if want := strings.Repeat("0.", 25) + "1.0.1.q"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-rates", "10,20", "-ladder", "", "-burst", "0"}, io.Discard)
	if err != nil || !slices.Equal(o.rates, []int{10, 20}) || len(o.ladder) != 0 {
		t.Errorf("parse = %+v, %v", o, err)
	}
	for _, args := range [][]string{{"-rates", "fast"}, {"-ladder", "0"}, {"-delay-max", "1ms"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("parse of %q = nil error", args)
		}
	}
}
