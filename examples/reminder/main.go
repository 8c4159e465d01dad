// Command reminder reminds people of their appointments: a while before each, unless it is cancelled
// or moved. Time runs a thousand times as fast: an hour takes 3.6 seconds.
//
//	go run . [--broker amqp://guest:guest@127.0.0.1:5672/]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/duepostest"
)

const (
	queue   = "reminders"
	hour    = time.Hour / 1000
	advance = hour // how long before an appointment its reminder comes
)

func main() {
	url := flag.String("broker", "", "a Duepost; one in this process if empty")
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

	// The key is the appointment: a second message with it takes the place of the first.
	now := time.Now()
	remind := func(appointment string, at time.Time) error {
		_, err := client.Publish(ctx, duepost.Message{
			RoutingKey: queue, Key: appointment, Body: []byte(appointment), At: at.Add(-advance),
		})
		return err
	}
	for appointment, after := range map[string]time.Duration{"dentist": 2 * hour, "haircut": 2 * hour, "lunch": 2 * hour} {
		if err := remind(appointment, now.Add(after)); err != nil {
			return err
		}
	}
	if err := client.Cancel(ctx, "", "haircut"); err != nil {
		return err
	}
	if err := remind("lunch", now.Add(3*hour)); err != nil { // moved
		return err
	}

	reminded := 0
	ctx, done := context.WithCancel(ctx)
	defer done()
	return client.Consume(ctx, duepost.Consumer{Queue: queue}, func(_ context.Context, d *duepost.Delivery) error {
		fmt.Fprintf(out, "%.0f h later: %s in an hour\n", float64(d.Due.Sub(now))/float64(hour), d.Body)
		if reminded++; reminded == 2 {
			done()
		}
		return nil
	})
}
