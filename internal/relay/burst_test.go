//go:build relay

package relay

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/testbroker"
)

// burstVariable is how many messages TestBurst sends at once: 10,000 if it is not set.
const burstVariable = "DUEPOST_RELAY_BURST"

// mostLate allows for machines that do much else beside.
const mostLate = 5 * time.Second

// TestBurst: many messages at once, one in ten with a delay of a second, the others with a minute.
// Those of a second do not wait behind the others.
func TestBurst(t *testing.T) {
	t.Parallel()
	n := 10_000
	if text := os.Getenv(burstVariable); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", burstVariable, err)
		}
	}
	onEach(t, func(t *testing.T, b *testbroker.Broker) {
		startRelay(t, b.URL())
		newClient(t, b.URL())
		short := make(chan []time.Duration, 1)
		go func() { short <- lateness(t, b.URL(), n/10) }()
		burst(connect(t, b.URL()), n, func(i int) time.Duration {
			if i%10 == 0 {
				return time.Second
			}
			return time.Minute
		})
		late := <-short
		t.Logf("%d of a second late: p50 %v, p99 %v, longest %v", len(late), late[len(late)/2], late[len(late)*99/100], late[len(late)-1])
		if late[0] < 0 || late[len(late)*99/100] > mostLate {
			t.Errorf("late from %v to %v at p99, want none early and at most %v", late[0], late[len(late)*99/100], mostLate)
		}
	})
}

// burst publishes n messages with confirms, 1000 on their way. The body is when one is due, at the earliest.
func burst(c *client, n int, delay func(i int) time.Duration) {
	c.Helper()
	var confirms []*amqp.DeferredConfirmation
	for i := range n {
		after := delay(i)
		confirm, err := c.ch.PublishWithDeferredConfirm("x", "k", true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, Headers: amqp.Table{"x-delay": after.Milliseconds()},
			Body: fmt.Appendf(make([]byte, 0, 256), "%d %d", i, time.Now().Add(after).UnixMicro()),
		})
		if err != nil {
			c.Fatal(err)
		}
		if confirms = append(confirms, confirm); len(confirms) < 1000 && i < n-1 {
			continue
		}
		for _, one := range confirms {
			if !one.Wait() {
				c.Fatal("not confirmed")
			}
		}
		confirms = confirms[:0]
	}
}

// lateness consumes n messages of a burst and returns how late each was, sorted.
func lateness(t *testing.T, url string, n int) (late []time.Duration) {
	c := connect(t, url)
	defer c.conn.Close()
	if err := c.ch.Qos(1000, 0, false); err != nil {
		t.Error(err)
	}
	deliveries, err := c.ch.Consume("q", "", false, false, false, false, nil)
	if err != nil {
		t.Error(err)
	}
	seen := map[int]bool{}
	for until := time.After(5 * patience); len(late) < n; {
		select {
		case d := <-deliveries:
			var i int
			var due int64
			if _, err := fmt.Sscan(string(d.Body), &i, &due); err != nil {
				t.Error(err)
			}
			if !seen[i] {
				late = append(late, time.Since(time.UnixMicro(due)))
			}
			seen[i] = true
			if err := d.Ack(false); err != nil {
				t.Error(err)
			}
		case <-until:
			t.Errorf("%d of %d came", len(late), n)
			return append(late, 0)
		}
	}
	slices.Sort(late)
	return late
}
