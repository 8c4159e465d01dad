// Command gateway measures what "duepost relay --gateway" adds to a RabbitMQ: latency at a fixed
// rate, and CPU time of the gateway's process per message when it is saturated. Each message goes
// through it twice, from the publisher and to the consumer.
//
// It starts the newest RabbitMQ that is installed and the gateway, plays straight and through the
// gateway by turns, and prints every round and the median of all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/duepost/duepost/internal/testbroker"
)

// options are what the command line says.
type options struct {
	rounds  int
	rate    int
	seconds int
	burst   int
	size    int
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "how often each way is gone")
	flag.IntVar(&o.rate, "rate", 1000, "messages per second where latency is measured")
	flag.IntVar(&o.seconds, "seconds", 4, "how long it is measured in each round")
	flag.IntVar(&o.burst, "burst", 60_000, "messages of a saturated round")
	flag.IntVar(&o.size, "size", 256, "octets of a body")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// bench starts broker and gateway and plays.
func bench(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "duepost-bench-gateway-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	installed, err := testbroker.InstalledRabbitMQs()
	if err != nil {
		return err
	}
	if len(installed) == 0 {
		return errors.New("no RabbitMQ is installed")
	}
	b, err := installed[len(installed)-1].Start(ctx, testbroker.Options{Dir: dir + "/rabbitmq"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Kill()) }()
	g, err := startGateway(ctx, dir, b.URL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	fmt.Printf("%s, %d octets, by turns\n", b.Name, o.size)
	return play(o, b.URL(), g)
}

// ways are straight and through the gateway.
type ways[T any] struct{ direct, through []T }

// play plays all rounds and prints them.
func play(o options, direct string, g *gateway) error {
	var p50, p99 ways[time.Duration]
	var rate ways[float64]
	var cost []float64
	fmt.Println("round  way      p50 us  p99 us  msg/s saturated  gateway CPU us/msg")
	for round := range o.rounds {
		for _, through := range []bool{false, true} {
			url, name := direct, "direct"
			if through {
				url, name = g.url, "gateway"
			}
			lat, err := measureLatency(url, o)
			if err != nil {
				return err
			}
			before, err := g.cpu()
			if err != nil {
				return err
			}
			perSecond, err := measureBurst(url, o)
			if err != nil {
				return err
			}
			after, err := g.cpu()
			if err != nil {
				return err
			}
			spent := float64((after - before).Nanoseconds()) / 1e3 / float64(o.burst)
			fmt.Printf("%5d  %-7s  %6d  %6d  %15.0f  %18.2f\n", round+1, name,
				lat.p50.Microseconds(), lat.p99.Microseconds(), perSecond, spent)
			if through {
				p50.through, p99.through = append(p50.through, lat.p50), append(p99.through, lat.p99)
				rate.through, cost = append(rate.through, perSecond), append(cost, spent)
			} else {
				p50.direct, p99.direct = append(p50.direct, lat.p50), append(p99.direct, lat.p99)
				rate.direct = append(rate.direct, perSecond)
			}
		}
	}
	fmt.Printf("median: p50 %d us direct, %d through, %+d; p99 %d direct, %d through, %+d\n",
		median(p50.direct).Microseconds(), median(p50.through).Microseconds(),
		(median(p50.through) - median(p50.direct)).Microseconds(),
		median(p99.direct).Microseconds(), median(p99.through).Microseconds(),
		(median(p99.through) - median(p99.direct)).Microseconds())
	fmt.Printf("median: %.0f msg/s direct, %.0f through; gateway CPU %.2f us/msg\n",
		median(rate.direct), median(rate.through), median(cost))
	return nil
}

// median is the middle one; of two the higher.
func median[T float64 | time.Duration](all []T) T {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
