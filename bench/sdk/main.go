// Command sdk measures what the SDK costs on top of the client library amqp091-go: CPU time and
// allocations of the client's process per message, publishing with confirms and consuming with
// acknowledgements. The broker is Duepost in a process of its own.
//
// Both do the same work by turns in one process; the medians are compared. Where a bare client
// would have to do something to be safe, it does: confirms, mandatory, a handler that settles.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/duepost/duepost/internal/testbroker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	messages := flag.Int("messages", 20_000, "messages of one round")
	rounds := flag.Int("rounds", 5, "rounds of each")
	flag.Parse()
	if err := run(ctx, *messages, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "sdk:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, messages, rounds int) (err error) {
	dir, err := os.MkdirTemp("", "duepost-bench-sdk-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	program, err := testbroker.BuildDuepost(ctx, "", dir)
	if err != nil {
		return err
	}
	broker, err := testbroker.StartDuepost(ctx, program, testbroker.Options{
		Dir: dir, Args: []string{"--http-addr", ""},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Stop()) }()

	bare, err := newBare(broker.URL())
	if err != nil {
		return err
	}
	defer bare.close()
	sdk, err := newSDK(ctx, broker.URL())
	if err != nil {
		return err
	}
	defer sdk.close()
	fmt.Printf("%d messages of %d bytes a round, medians of %d rounds\n\n", messages, bodyBytes, rounds)
	fmt.Printf("%-42s %14s %14s %10s\n", "", "bare", "SDK", "SDK/bare")
	for _, work := range []struct {
		name     string
		do       func(client, context.Context, int) error
		messages int
	}{
		{"publish, 100 goroutines", client.publish, messages},
		{"consume, one handler at a time", client.consume, messages},
	} {
		var cost [2][]sample
		for range rounds + 1 {
			for i, c := range []client{bare, sdk} {
				s, err := measure(work.messages, func() error { return work.do(c, ctx, work.messages) })
				if err != nil {
					return fmt.Errorf("%s: %w", work.name, err)
				}
				cost[i] = append(cost[i], s)
			}
		}
		print(work.name, cost)
	}
	return nil
}

// print prints the medians, without the first round, which warms up.
func print(name string, cost [2][]sample) {
	for _, row := range []struct {
		what string
		of   func(sample) float64
	}{
		{"µs of CPU", func(s sample) float64 { return s.cpu }},
		{"allocations", func(s sample) float64 { return s.allocations }},
		{"bytes allocated", func(s sample) float64 { return s.bytes }},
		{"messages per second", func(s sample) float64 { return s.rate }},
	} {
		var m [2]float64
		for i := range m {
			var all []float64
			for _, s := range cost[i][1:] {
				all = append(all, row.of(s))
			}
			slices.Sort(all)
			m[i] = all[len(all)/2]
		}
		fmt.Printf("%-42s %14.1f %14.1f %10.2f\n", name+": "+row.what, m[0], m[1], m[1]/m[0])
	}
}

// sample is what one message cost in one round.
type sample struct{ cpu, allocations, bytes, rate float64 }

func measure(messages int, do func() error) (sample, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used, err := cpuTime()
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return sample{}, err
	}
	took := time.Since(began)
	now, err := cpuTime()
	if err != nil {
		return sample{}, err
	}
	runtime.ReadMemStats(&after)
	n := float64(messages)
	return sample{
		cpu:         float64((now - used).Nanoseconds()) / 1000 / n,
		allocations: float64(after.Mallocs-before.Mallocs) / n,
		bytes:       float64(after.TotalAlloc-before.TotalAlloc) / n,
		rate:        n / took.Seconds(),
	}, nil
}

// cpuTime is what this process has used so far.
func cpuTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
