package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/duepost/duepost/internal/load"
)

// Gates, in milliseconds and factors.
const (
	highRate     = 1500 // messages a second from which the ladder must be beaten
	ladderFactor = 3.0  // fewer CPU time of the broker than the ladder
	lowRate      = 330
	floorFactor  = 1.5 // more than a message without a delay
	gateP50      = 3.0
	gateP99      = 25.0
	// borneP99 is the lateness above which the ladder does not bear a rate any more.
	borneP99 = 2000.0
	// burstP99 is of the short delays in a burst, which saturates the machine: not behind the others.
	burstP99 = 1000.0
)

// late is the lateness, and of messages without a delay the time to the consumer.
func (r row) late() load.Percentiles {
	for _, p := range []*load.Percentiles{r.Lateness, r.Latency} {
		if p != nil {
			return *p
		}
	}
	return load.Percentiles{}
}

// print writes the table and says which gates hold. The error is of those that do not.
func (b *bench) print(w io.Writer) error {
	var text strings.Builder
	text.WriteString("| way | msg/s | broker µs/msg | relay µs/msg | late p50 ms | p99 ms | longest ms | early | lost | twice |\n" +
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range b.rows {
		rate, relay, late := fmt.Sprint(r.Rate), "-", r.late()
		if r.Rate == 0 {
			rate = fmt.Sprintf("%.0f", r.PublishRate)
		}
		if r.HelperMicros > 0 {
			relay = fmt.Sprintf("%.0f", r.HelperMicros)
		}
		fmt.Fprintf(&text, "| %s | %s | %.0f | %s | %.1f | %.1f | %.0f | %d | %d | %d |\n", r.Way, rate,
			r.BrokerMicros, relay, late.P50, late.P99, late.Max, r.Early, r.Lost, r.Duplicates)
	}
	var missed []error
	for _, g := range b.gates() {
		verdict := "holds"
		if !g.holds {
			verdict = "MISSED"
			missed = append(missed, errors.New("missed: "+g.text))
		}
		fmt.Fprintf(&text, "\n- %s: %s", verdict, g.text)
	}
	text.WriteString("\n")
	if _, err := io.WriteString(w, text.String()); err != nil {
		return err
	}
	return errors.Join(missed...)
}

// gate is a claim about the results.
type gate struct {
	text  string
	holds bool
}

// gates are those for which there are results.
func (b *bench) gates() (all []gate) {
	ladder := b.borne()
	for _, r := range b.rows {
		if r.Early > 0 || r.Lost > 0 {
			all = append(all, gate{fmt.Sprintf("%s at %d/s: %d early, %d lost", r.Way, r.Rate, r.Early, r.Lost), false})
		}
		if r.Way != byRelay {
			continue
		}
		late := r.late()
		all = append(all, gate{fmt.Sprintf("%d/s: late p50 %.1f ms, p99 %.1f ms; at most %.0f and %.0f",
			r.Rate, late.P50, late.P99, gateP50, gateP99), late.P50 <= gateP50 && late.P99 <= gateP99})
		if r.Rate >= highRate && ladder != nil {
			times := ladder.BrokerMicros / r.BrokerMicros
			all = append(all, gate{fmt.Sprintf("%d/s: %.1f times less than the ladder at %d/s; at least %.0f",
				r.Rate, times, ladder.Rate, ladderFactor), times >= ladderFactor})
		}
		if floor := b.find(noDelay, r.Rate); r.Rate <= lowRate && floor != nil {
			times := r.BrokerMicros / floor.BrokerMicros
			all = append(all, gate{fmt.Sprintf("%d/s: %.2f times what a message without a delay costs; at most %.1f",
				r.Rate, times, floorFactor), times <= floorFactor})
		}
	}
	if b.burst != nil {
		late := row{Result: *b.burst}.late()
		all = append(all, gate{fmt.Sprintf("burst: those of one second late p99 %.1f ms; at most %.0f",
			late.P99, burstP99), late.P99 <= burstP99})
	}
	return all
}

// borne is the ladder at the highest rate that it bears, nil if it bears none.
func (b *bench) borne() (found *row) {
	for i := range b.rows {
		if r := &b.rows[i]; r.Way == byLadder && r.Lost == 0 && r.late().P99 <= borneP99 {
			found = r
		}
	}
	return found
}

func (b *bench) find(way string, rate int) *row {
	for i := range b.rows {
		if r := &b.rows[i]; r.Way == way && r.Rate == rate {
			return r
		}
	}
	return nil
}
