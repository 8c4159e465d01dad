// Command redpacket gives red packets: friends open them, and what nobody has opened after 24 hours
// goes back to who gave it. Time runs 40,000 times as fast: 24 hours take about 2 seconds.
//
//	go run . [--broker amqp://guest:guest@127.0.0.1:5672/]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/duepostest"
)

const (
	queue = "red-packets"
	life  = 24 * time.Hour / 40_000
)

// packets is what would be a table: cents left in each packet, and in the purse of the giver.
type packets struct {
	mu    sync.Mutex // guards what follows
	left  map[int]int
	purse int
}

// take takes cents out of a packet, or what is left, and says how many.
func (p *packets) take(id, cents int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	cents = min(cents, p.left[id])
	p.left[id] -= cents
	return cents
}

// giveBack moves what is left of a packet into the purse. A second time it finds nothing.
func (p *packets) giveBack(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.purse += p.left[id]
	p.left[id] = 0
}

func main() {
	url := flag.String("broker", "", "a Duepost or a RabbitMQ; a broker in this process if empty")
	flag.Parse()
	if err := run(context.Background(), *url, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, out io.Writer) error {
	if url == "" {
		broker, err := duepostest.Open()
		if err != nil {
			return err
		}
		defer broker.Stop()
		url = broker.URL
	}
	client, err := duepost.Connect(ctx, duepost.Options{URL: url})
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Declare(ctx, duepost.Topology{Queues: []duepost.Queue{{Name: queue}}}); err != nil {
		return err
	}

	p := &packets{left: map[int]int{1: 1000, 2: 1000}}
	for id := range p.left {
		_, err := client.Publish(ctx, duepost.Message{RoutingKey: queue, Body: strconv.AppendInt(nil, int64(id), 10), Delay: life})
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "a friend opens packet 1 and finds %d\n", p.take(1, 300))
	fmt.Fprintf(out, "friends open packet 2 and find %d and %d\n", p.take(2, 600), p.take(2, 600))

	ctx, done := context.WithCancel(ctx)
	defer done()
	handled := 0
	err = client.Consume(ctx, duepost.Consumer{Queue: queue}, func(_ context.Context, d *duepost.Delivery) error {
		id, err := strconv.Atoi(string(d.Body))
		if err != nil {
			return duepost.Park("the body is no number: " + err.Error())
		}
		p.giveBack(id)
		if handled++; handled == 2 {
			done()
		}
		return nil
	})
	fmt.Fprintf(out, "after 24 hours %d go back\n", p.purse)
	return err
}
