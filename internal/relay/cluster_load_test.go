//go:build relay

package relay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// dialAny connects to the first of the nodes that answers, beginning with one of them.
func dialAny(urls []string, first int) (*amqp.Connection, *amqp.Channel, error) {
	var err error
	for i := range urls {
		var conn *amqp.Connection
		if conn, err = dial(urls[(first+i)%len(urls)], "test"); err != nil {
			continue
		}
		ch, err := conn.Channel()
		if err == nil {
			return conn, ch, nil
		}
		conn.Close()
	}
	return nil, nil, err
}

// clusterLoader publishes delayed messages to exchange "x", whatever happens to nodes.
type clusterLoader struct {
	*testing.T
	urls    []string
	longest time.Duration
	// confirmed are the numbers of the messages that RabbitMQ has answered for, once run is over.
	confirmed []int
	unknown   int // messages whose answer never came
}

// Times of the publisher.
const (
	loadFor   = 75 * time.Second // spread over all faults
	loadEvery = 100 * time.Millisecond
	loadAlive = 5 * time.Second // after which a batch that is not answered is given up
)

// run publishes until n messages are confirmed. What was not answered is not sent again: whether it
// comes is not known.
func (l *clusterLoader) run(n int) {
	batch := max(1, n*int(loadEvery)/int(loadFor))
	tick := time.NewTicker(loadEvery)
	defer tick.Stop()
	for next, first := 0, 0; len(l.confirmed) < n; first++ {
		conn, ch, err := dialAny(l.urls, first)
		if err != nil {
			l.Logf("publisher: %v", err)
			<-tick.C
			continue
		}
		for err = ch.Confirm(false); err == nil && len(l.confirmed) < n; next += batch {
			<-tick.C
			err = l.batch(ch, next, batch)
		}
		if err != nil {
			l.Logf("publisher: %v", err)
		}
		conn.CloseDeadline(time.Now().Add(time.Second))
	}
}

// batch publishes some messages and waits for what becomes of them.
func (l *clusterLoader) batch(ch *amqp.Channel, first, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), loadAlive)
	defer cancel()
	var confirms []*amqp.DeferredConfirmation
	var fault error
	for i := first; i < first+n; i++ {
		delay := time.Second + rand.N(l.longest-time.Second)
		confirm, err := ch.PublishWithDeferredConfirm("x", "k", true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, Headers: amqp.Table{"x-delay": delay.Milliseconds()},
			Body: fmt.Appendf(make([]byte, 0, 256), "%d %d", i, time.Now().Add(delay.Truncate(time.Millisecond)).UnixMicro()),
		})
		if err != nil {
			fault = err
			break
		}
		confirms = append(confirms, confirm)
	}
	for i, one := range confirms {
		acked, err := one.WaitContext(ctx)
		if acked && err == nil {
			l.confirmed = append(l.confirmed, first+i)
			continue
		}
		l.unknown++
		if fault == nil {
			fault = fmt.Errorf("message %d: acked %v, %v", first+i, acked, err)
		}
	}
	return fault
}

// witness notes what comes to queue "q".
type witness struct {
	mu       sync.Mutex       // guards what follows
	ids      map[int][]string // of each number, in the order they came
	early    int
	late     []time.Duration // of the first that came of each number
	news     chan struct{}   // closed and replaced when something came
	returned int             // came again because the witness had lost its connection, or the queue its leader
}

func newWitness() *witness {
	return &witness{ids: map[int][]string{}, news: make(chan struct{})}
}

// watch consumes until ctx ends.
func (w *witness) watch(ctx context.Context, t *testing.T, urls []string) {
	for first := 2; ctx.Err() == nil; first++ {
		conn, ch, err := dialAny(urls, first)
		if err == nil {
			err = w.consume(ctx, ch)
			conn.CloseDeadline(time.Now().Add(time.Second))
		}
		if err != nil {
			t.Logf("consumer: %v", err)
			<-time.After(loadEvery)
		}
	}
}

func (w *witness) consume(ctx context.Context, ch *amqp.Channel) error {
	if err := ch.Qos(1000, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume("q", "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return fmt.Errorf("the consumer was ended")
			}
			if err := w.note(d); err != nil {
				return err
			}
			if err := d.Ack(false); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *witness) note(d amqp.Delivery) error {
	now := time.Now()
	var number int
	var due int64
	if _, err := fmt.Sscan(string(d.Body), &number, &due); err != nil {
		return fmt.Errorf("read body %q: %w", d.Body, err)
	}
	id, _ := d.Headers[headerID].(string)
	w.mu.Lock()
	defer w.mu.Unlock()
	late := now.Sub(time.UnixMicro(due))
	if late < 0 {
		w.early++
	}
	switch {
	case len(w.ids[number]) == 0:
		w.late = append(w.late, late)
	case d.Redelivered:
		w.returned++
		return nil
	}
	w.ids[number] = append(w.ids[number], id)
	close(w.news)
	w.news = make(chan struct{})
	return nil
}

// missing are those of the numbers that have not come.
func (w *witness) missing(numbers []int) (missing []int, news <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, number := range numbers {
		if len(w.ids[number]) == 0 {
			missing = append(missing, number)
		}
	}
	return missing, w.news
}

// complete returns a channel that is closed when all the numbers have come.
func (w *witness) complete(numbers []int) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		missing, news := w.missing(numbers)
		for len(missing) > 0 {
			<-news
			missing, news = w.missing(missing)
		}
		close(done)
	}()
	return done
}

// report says how it was, and what was wrong.
func (w *witness) report(t *testing.T, l *clusterLoader) {
	t.Helper()
	missing, _ := w.missing(l.confirmed)
	w.mu.Lock()
	defer w.mu.Unlock()
	twice, renamed := 0, 0
	for _, ids := range w.ids {
		twice += len(ids) - 1
		renamed += len(slices.Compact(slices.Sorted(slices.Values(ids)))) - 1
	}
	slices.Sort(w.late)
	at := func(permille int) time.Duration {
		return w.late[(len(w.late)-1)*permille/1000].Round(100 * time.Microsecond)
	}
	t.Logf("%d confirmed, %d without an answer; %d came, %d of them again, with another id %d, returned by queue %d",
		len(l.confirmed), l.unknown, len(w.ids), twice, renamed, w.returned)
	t.Logf("late: p50 %v, p90 %v, p99 %v, p99.9 %v, longest %v", at(500), at(900), at(990), at(999), at(1000))
	if len(missing) > 0 {
		t.Errorf("%d of %d confirmed messages never came, %d the first", len(missing), len(l.confirmed), missing[0])
	}
	if w.early > 0 {
		t.Errorf("%d came early", w.early)
	}
	if most := len(l.confirmed) / 5; twice > most {
		t.Errorf("%d came again, want at most %d", twice, most)
	}
}
