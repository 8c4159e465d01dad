package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/duepost/duepost/internal/load"
)

// comparison gathers results by row and broker.
type comparison struct {
	brokers []*contender
	titles  []string // of rows, in the order they came first
	results map[string]map[*contender][]load.Result
}

func newComparison(brokers []*contender) *comparison {
	return &comparison{brokers: brokers, results: map[string]map[*contender][]load.Result{}}
}

func (c *comparison) add(r row, b *contender, res load.Result) {
	if c.results[r.title] == nil {
		c.titles = append(c.titles, r.title)
		c.results[r.title] = map[*contender][]load.Result{}
	}
	c.results[r.title][b] = append(c.results[r.title][b], res)
}

// print writes one line per row and broker. The ratio is of the rates, to the last broker's.
func (c *comparison) print(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| load | broker | msg/s | ratio | broker µs/msg | p50 ms | p99 ms | early | lost | RSS peak MiB |\n" +
		"| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, title := range c.titles {
		for _, broker := range c.brokers {
			results := c.results[title][broker]
			if len(results) == 0 {
				continue
			}
			b.WriteString(c.line(title, results))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *comparison) line(title string, results []load.Result) string {
	of := func(f func(load.Result) float64) float64 { return median(results, f) }
	ratio := "-"
	if peer := c.results[title][c.brokers[len(c.brokers)-1]]; len(c.brokers) > 1 && len(peer) > 0 {
		ratio = fmt.Sprintf("%.1f", of(mainRate)/median(peer, mainRate))
	}
	p50, p99 := "-", "-"
	if percentiles(results[0]) != nil {
		p50 = fmt.Sprintf("%.1f", of(func(r load.Result) float64 { return percentiles(r).P50 }))
		p99 = fmt.Sprintf("%.1f", of(func(r load.Result) float64 { return percentiles(r).P99 }))
	}
	return fmt.Sprintf("| %s | %s | %.0f | %s | %.1f | %s | %s | %d | %d | %.0f |\n",
		title, results[0].Broker, of(mainRate), ratio,
		of(func(r load.Result) float64 { return r.BrokerMicros }), p50, p99,
		worst(results, func(r load.Result) uint64 { return r.Early }),
		worst(results, func(r load.Result) uint64 { return r.Lost }),
		of(func(r load.Result) float64 { return r.RSSPeakMiB }))
}

// mainRate is the rate that a scenario is about.
func mainRate(r load.Result) float64 {
	if r.Scenario == load.Plain || r.Scenario == load.Consume {
		return r.ConsumeRate
	}
	return r.PublishRate
}

// percentiles are of the time that a scenario is about: lateness, else latency, else confirm;
// nil if it is about none.
func percentiles(r load.Result) *load.Percentiles {
	return cmp.Or(r.Lateness, r.Latency, r.Confirm)
}

func median(results []load.Result, f func(load.Result) float64) float64 {
	values := make([]float64, len(results))
	for i, r := range results {
		values[i] = f(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// worst is for counts of what must not happen: no median hides them.
func worst(results []load.Result, f func(load.Result) uint64) (n uint64) {
	for _, r := range results {
		n = max(n, f(r))
	}
	return n
}
