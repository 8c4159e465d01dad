package duepost_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/duepostest"
)

// start runs a broker for an example and connects to it. A program of yours only connects:
//
//	client, err := duepost.Connect(ctx, duepost.Options{URL: os.Getenv("AMQP_URL")})
func start(ctx context.Context, queues ...string) (client *duepost.Client, broker *duepostest.Broker, stop func()) {
	broker, err := duepostest.Open()
	if err != nil {
		log.Fatal(err)
	}
	client, err = duepost.Connect(ctx, duepost.Options{URL: broker.URL, Now: broker.Now})
	if err != nil {
		log.Fatal(err)
	}
	var t duepost.Topology
	for _, name := range queues {
		t.Queues = append(t.Queues, duepost.Queue{Name: name})
	}
	if err := client.Declare(ctx, t); err != nil {
		log.Fatal(err)
	}
	return client, broker, func() { client.Close(); broker.Stop() }
}

// An order that nobody pays is closed after half an hour.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client, broker, stop := start(ctx, "close-unpaid")
	defer stop()

	receipt, err := client.Publish(ctx, duepost.Message{
		RoutingKey: "close-unpaid", Body: []byte("order 17"), Delay: 30 * time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("waits for", receipt.Due.Sub(broker.Now()).Round(time.Minute))

	broker.Advance(30 * time.Minute) // half an hour passes
	err = client.Consume(ctx, duepost.Consumer{Queue: "close-unpaid"},
		func(_ context.Context, d *duepost.Delivery) error {
			fmt.Printf("close %s if it is not paid\n", d.Body)
			cancel() // one is enough for an example
			return nil
		})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// waits for 30m0s
	// close order 17 if it is not paid
}

// A message with a key can be moved and taken back while it waits, where the broker can do that.
func ExampleClient_Cancel() {
	ctx := context.Background()
	client, _, stop := start(ctx, "reminders")
	defer stop()
	if !client.Broker().Keys {
		log.Fatal("this broker has no keys")
	}
	reminder := duepost.Message{RoutingKey: "reminders", Key: "user 5", Delay: time.Hour}
	if _, err := client.Publish(ctx, reminder); err != nil {
		log.Fatal(err)
	}
	reminder.Delay = 2 * time.Hour
	if _, err := client.Reschedule(ctx, reminder); err != nil { // instead of the first
		log.Fatal(err)
	}
	fmt.Println("cancel:", client.Cancel(ctx, "", "user 5"))
	err := client.Cancel(ctx, "", "user 5")
	fmt.Println("and again:", errors.Is(err, duepost.ErrNotPending))
	// Output:
	// cancel: <nil>
	// and again: true
}

// A handler that fails gets the message again later; what it cannot use is parked.
func ExampleClient_Consume() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client, _, stop := start(ctx, "charge")
	defer stop()
	for _, body := range []string{`{"cents": "many"}`, `{"cents": 100}`} {
		if _, err := client.Publish(ctx, duepost.Message{RoutingKey: "charge", Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}
	type charge struct{ Cents int }
	err := client.Consume(ctx, duepost.Consumer{
		Queue: "charge",
		Retry: duepost.Retry{Attempts: 3, Backoff: duepost.Backoff{First: 10 * time.Millisecond}},
	}, duepost.JSON(func(_ context.Context, d *duepost.Delivery, c charge) error {
		fmt.Printf("attempt %d: charge %d cents\n", d.Attempt, c.Cents)
		if d.Attempt == 1 {
			return errors.New("bank is busy")
		}
		cancel()
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}

	parked, cancel := context.WithCancel(context.Background())
	defer cancel()
	_ = client.Consume(parked, duepost.Consumer{Queue: "charge.parked"}, func(_ context.Context, d *duepost.Delivery) error {
		p, _ := d.Parked()
		fmt.Printf("parked after %d attempt: %s\n", p.Attempts, d.Body)
		cancel()
		return nil
	})
	// Output:
	// attempt 1: charge 100 cents
	// attempt 2: charge 100 cents
	// parked after 1 attempt: {"cents": "many"}
}

// Errors tell whether to publish again.
func ExampleSafeToRetry() {
	ctx := context.Background()
	client, _, stop := start(ctx)
	defer stop()
	_, err := client.Publish(ctx, duepost.Message{RoutingKey: "nobody's queue"})
	switch {
	case err == nil:
		fmt.Println("the broker has it")
	case duepost.SafeToRetry(err):
		fmt.Println("it was surely not sent")
	case errors.Is(err, duepost.ErrUnconfirmed):
		fmt.Println("the broker has it or not: publish again, handlers are idempotent")
	case errors.Is(err, duepost.ErrUnroutable):
		fmt.Println("no queue takes it")
	}
	// Output:
	// no queue takes it
}

// Many messages go out without waiting for each.
func ExampleClient_PublishBatch() {
	ctx := context.Background()
	client, _, stop := start(ctx, "mails")
	defer stop()
	batch := []duepost.Message{{RoutingKey: "mails"}, {RoutingKey: "nobody's queue"}, {RoutingKey: "mails"}}
	_, err := client.PublishBatch(ctx, batch)
	var failed *duepost.BatchError
	if errors.As(err, &failed) {
		for i, err := range failed.Errs {
			if err != nil {
				fmt.Println("message", i, "is unroutable:", errors.Is(err, duepost.ErrUnroutable))
			}
		}
	}
	// Output:
	// message 1 is unroutable: true
}
