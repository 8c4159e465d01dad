package ladder_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/duepostest"
	"github.com/duepost/duepost/ladder"
)

// Two orders: one is paid before the second look, the other never.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	broker, err := duepostest.Open() // a program of yours has a broker elsewhere
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Stop()
	client, err := duepost.Connect(ctx, duepost.Options{URL: broker.URL, Now: broker.Now})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	steps := ladder.Steps{Deadline: 30 * time.Minute}
	fmt.Print("looks after")
	for delay := range steps.Delays() {
		fmt.Print(" ", delay)
	}
	fmt.Println()

	settled := map[string]bool{} // a table with a column status
	looked := make(chan bool)
	l, err := ladder.New(ctx, client, ladder.Options{
		Steps: steps,
		Check: func(_ context.Context, id string) (bool, error) { return settled[id], nil },
		Expire: func(_ context.Context, id string) error {
			settled[id] = true // UPDATE ... SET status = 'closed' WHERE id = ? AND status = 'unpaid'
			return nil
		},
		OnStep: func(s ladder.Step) {
			fmt.Printf("%s, step %d: %s\n", s.ID, s.N, s.Outcome)
			looked <- true
		},
		Consumer: duepost.Consumer{Queue: "unpaid"},
		Now:      broker.Now,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []string{"order 17", "order 18"} {
		if err := l.Begin(ctx, id); err != nil {
			log.Fatal(err)
		}
	}
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()

	broker.Advance(time.Minute)
	<-looked
	<-looked
	settled["order 17"] = true // paid
	broker.Advance(2 * time.Minute)
	<-looked
	<-looked
	for delay := range steps.Delays() {
		if delay > 2*time.Minute {
			broker.Advance(delay)
			<-looked
		}
	}
	cancel()
	fmt.Println(<-ended)
	// Unordered output:
	// looks after 1m0s 2m0s 4m0s 8m0s 15m0s
	// order 17, step 1: not yet
	// order 18, step 1: not yet
	// order 17, step 2: done
	// order 18, step 2: not yet
	// order 18, step 3: not yet
	// order 18, step 4: not yet
	// order 18, step 5: expired
	// <nil>
}
