package main

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/load"
	"github.com/duepost/duepost/internal/testbroker"
)

func TestTable(t *testing.T) {
	t.Parallel()
	ours, theirs := &contender{Broker: &testbroker.Broker{Name: "Duepost"}}, &contender{Broker: &testbroker.Broker{Name: "RabbitMQ"}}
	c := newComparison([]*contender{ours, theirs})
	all := rows(load.Defaults())
	plain, delayed := all[0], all[4]
	for i, rate := range []float64{70000, 90000, 80000} {
		c.add(plain, ours, load.Result{Scenario: load.Plain, Broker: "Duepost 1", ConsumeRate: rate,
			BrokerMicros: 6, Latency: &load.Percentiles{P50: 2, P99: 9}, RSSPeakMiB: 100, Lost: uint64(i % 2)})
		c.add(plain, theirs, load.Result{Scenario: load.Plain, Broker: "RabbitMQ 3", ConsumeRate: 8000,
			BrokerMicros: 120})
	}
	c.add(delayed, ours, load.Result{Scenario: load.Delayed, Broker: "Duepost 1", PublishRate: 75000,
		Lateness: &load.Percentiles{P50: 1, P99: 3}, Early: 4})
	var out strings.Builder
	if err := c.print(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")[2:]
	want := []string{
		"| plain, persistent, 4+4 | Duepost 1 | 80000 | 10.0 | 6.0 | 2.0 | 9.0 | 0 | 1 | 100 |",
		"| plain, persistent, 4+4 | RabbitMQ 3 | 8000 | 1.0 | 120.0 | - | - | 0 | 0 | 0 |",
		"| delayed, 1 to 20 s, 1+1 | Duepost 1 | 75000 | - | 0.0 | 1.0 | 3.0 | 4 | 0 | 0 |",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("table, -want +got:\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-runs", "1", "-messages", "1000", "-only", "duepost"}, io.Discard)
	if err != nil || o.runs != 1 || o.load.Messages != 1000 || o.only != "duepost" {
		t.Errorf("parse = %+v, %v", o, err)
	}
	if _, err := parse([]string{"-messages", "0"}, io.Discard); err == nil {
		t.Error("parse of -messages 0 = nil error")
	}
}
