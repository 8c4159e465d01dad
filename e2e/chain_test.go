package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// chainVariable sets how many messages go through the chain.
const chainVariable = "DUEPOST_E2E_CHAIN"

const (
	chainKills = 4
	// chainWithin bounds the way of all messages to the end after the last start.
	chainWithin = 2 * time.Minute
)

// chainQueues are passed in this order: out of the first by its time to live, out of
// the second because a consumer rejects.
func chainQueues() [3]string { return [3]string{"chain.1", "chain.2", "chain.3"} }

// TestChainOfDeadLettersLosesNothingAtKill sends messages through three queues by dead
// letters and kills the broker with SIGKILL in the midst. Each that was confirmed is in
// the last queue once, and no message is there twice.
func TestChainOfDeadLettersLosesNothingAtKill(t *testing.T) {
	t.Parallel()
	total := 10_000
	if text := os.Getenv(chainVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", chainVariable, err)
		}
		total = n
	}
	b := newBroker(t)
	b.start(t)
	declareChain(t, b)
	c := &chain{confirmed: make(map[string]bool, total)}
	for round := range chainKills {
		reached := c.expect(total * (round + 1) / (chainKills + 1))
		startChain(t, b, c, round, nil)
		<-reached
		<-time.After(rand.N(100 * time.Millisecond))
		b.kill(t)
		c.publishing.Wait()
		c.rejecting.Wait()
		b.start(t)
		t.Logf("after kill %d: %d confirmed, %v ready in the queues", round+1, c.count(), lengths(t, b))
	}
	startChain(t, b, c, chainKills, c.expect(total))
	c.publishing.Wait()
	c.judge(t, b)
	if err := b.stop(t); err != nil {
		t.Errorf("end after SIGTERM: %v", err)
	}
	c.rejecting.Wait()
}

// chain is what was confirmed, and who is at work.
type chain struct {
	publishing, rejecting sync.WaitGroup

	mu        sync.Mutex
	confirmed map[string]bool
	target    int
	reached   chan struct{} // closed when so many are confirmed
}

func (c *chain) expect(target int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.target, c.reached = target, make(chan struct{})
	c.tellLocked()
	return c.reached
}

func (c *chain) confirm(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.confirmed[id] = true
	c.tellLocked()
}

func (c *chain) tellLocked() {
	if c.target > 0 && len(c.confirmed) >= c.target {
		close(c.reached)
		c.target = 0
	}
}

func (c *chain) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.confirmed)
}

func declareChain(t *testing.T, b *broker) {
	t.Helper()
	conn := b.dial(t)
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	queues := chainQueues()
	for i, args := range []amqp.Table{
		{"x-message-ttl": 100, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": queues[1]},
		{"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": queues[2]},
		nil,
	} {
		if _, err := ch.QueueDeclare(queues[i], true, false, false, false, args); err != nil {
			t.Fatal(err)
		}
	}
	conn.Close()
}

// startChain rejects what is in the second queue until the broker is gone, and publishes into the
// first one until then or until enough is confirmed.
func startChain(t *testing.T, b *broker, c *chain, round int, enough <-chan struct{}) {
	t.Helper()
	ch := chainChannel(t, b)
	if err := ch.Qos(500, 0, false); err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume(chainQueues()[1], "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.rejecting.Go(func() {
		for d := range deliveries {
			_ = d.Reject(false) // fails when the broker is gone: then the channel ends
		}
	})
	for i := range 2 {
		ch := chainChannel(t, b)
		if err := ch.Confirm(false); err != nil {
			t.Fatal(err)
		}
		c.publishing.Go(func() { c.publish(t.Context(), ch, fmt.Sprintf("%d.%d", round, i), enough) })
	}
}

func chainChannel(t *testing.T, b *broker) *amqp.Channel {
	t.Helper()
	ch, err := b.dial(t).Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// publish sends messages until enough are confirmed or the channel ends.
func (c *chain) publish(ctx context.Context, ch *amqp.Channel, name string, enough <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	go func() {
		select {
		case <-closed:
			cancel() // ends the waits for confirms that will not come
		case <-ctx.Done():
		}
	}()
	window := make(chan struct{}, inFlight)
	var waits sync.WaitGroup
	defer waits.Wait()
	for n := 0; ; n++ {
		select {
		case window <- struct{}{}:
		case <-enough:
			return
		case <-ctx.Done():
			return
		}
		id := fmt.Sprintf("%s.%d", name, n)
		confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", chainQueues()[0], false, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: id, Body: make([]byte, rand.N(400))})
		if err != nil {
			return
		}
		waits.Go(func() {
			if acked, err := confirm.WaitContext(ctx); err == nil && acked {
				c.confirm(id)
			}
			<-window
		})
	}
}

// judge takes everything out of the last queue.
func (c *chain) judge(t *testing.T, b *broker) {
	t.Helper()
	ch := chainChannel(t, b)
	if err := ch.Qos(1000, 0, false); err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume(chainQueues()[2], "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	arrived := make(map[string]bool)
	missing := c.count()
	late := time.After(chainWithin)
	for missing > 0 {
		select {
		case d := <-deliveries:
			if arrived[d.MessageId] {
				t.Fatalf("%s is in the last queue twice", d.MessageId)
			}
			arrived[d.MessageId] = true
			if c.has(d.MessageId) {
				missing--
			}
			checkDeaths(t, &d)
			if err := d.Ack(false); err != nil {
				t.Fatal(err)
			}
		case <-late:
			t.Fatalf("%d confirmed messages did not come, %v are ready in the queues", missing, lengths(t, b))
		}
	}
	t.Logf("%d confirmed, %d came", c.count(), len(arrived))
}

func (c *chain) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.confirmed[id]
}

// checkDeaths says what is wrong with the history of a message that went the whole way.
func checkDeaths(t *testing.T, d *amqp.Delivery) {
	t.Helper()
	deaths, _ := d.Headers["x-death"].([]any)
	queues := chainQueues()
	for i, want := range []string{"rejected " + queues[1], "expired " + queues[0]} {
		got := "nothing"
		if i < len(deaths) {
			death, _ := deaths[i].(amqp.Table)
			got = fmt.Sprint(death["reason"], " ", death["queue"])
			if death["count"] != int64(1) {
				got += fmt.Sprint(" ", death["count"], " times")
			}
		}
		if got != want {
			t.Errorf("%s: death %d is %q, want %q", d.MessageId, i, got, want)
		}
	}
}

// lengths are how many messages are ready in each queue.
func lengths(t *testing.T, b *broker) (n [3]int) {
	t.Helper()
	ch := chainChannel(t, b)
	for i, name := range chainQueues() {
		q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		n[i] = q.Messages
	}
	return n
}
