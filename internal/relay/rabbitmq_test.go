//go:build relay

package relay

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/relay/topology"
	"github.com/duepost/duepost/internal/testbroker"
)

// patience bounds every wait.
const patience = 60 * time.Second

// onEach runs a test on each RabbitMQ that is there, each time on one of its own.
func onEach(t *testing.T, f func(*testing.T, *testbroker.Broker)) {
	t.Helper()
	onEachWith(t, testbroker.Options{}, f)
}

func onEachWith(t *testing.T, o testbroker.Options, f func(*testing.T, *testbroker.Broker)) {
	t.Helper()
	onSome(t, "", o, f)
}

// onSome is onEachWith for one version only; empty for all.
func onSome(t *testing.T, version string, o testbroker.Options, f func(*testing.T, *testbroker.Broker)) {
	t.Helper()
	all, err := testbroker.InstalledRabbitMQs()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		testbroker.StartRabbitMQ(t, testbroker.Options{}) // says what is missing
	}
	for _, one := range all {
		if version != "" && one.Version != version {
			continue
		}
		t.Run(one.Version, func(t *testing.T) {
			t.Parallel()
			o := o
			o.Dir = t.TempDir()
			b, err := one.Start(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := b.Kill(); err != nil {
					t.Error(err)
				}
			}()
			f(t, b)
		})
	}
}

// startRelay runs a relay and waits until it works. The function ends it.
func startRelay(t *testing.T, url string) (r *Relay, stop func()) {
	t.Helper()
	return startRelayWith(t, Config{URLs: []string{url}})
}

func startRelayWith(t *testing.T, cfg Config) (r *Relay, stop func()) {
	t.Helper()
	return startRelayAt(t, cfg, time.Now)
}

func startRelayAt(t *testing.T, cfg Config, clock func() time.Time) (r *Relay, stop func()) {
	t.Helper()
	ready := make(chan struct{}, 1)
	cfg.Ready, cfg.Log = ready, slog.New(slog.NewTextHandler(t.Output(), nil))
	r = New(cfg)
	r.lookEvery, r.clock = time.Second, clock
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the relay does not end")
		}
	})
	t.Cleanup(stop)
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(patience):
		t.Fatal("the relay does not begin")
	}
	return r, stop
}

// client is a channel with confirms, and a delayed exchange "x" of type direct with a queue "q"
// bound by key "k".
type client struct {
	*testing.T
	conn *amqp.Connection
	ch   *amqp.Channel
}

func newClient(t *testing.T, url string) *client {
	t.Helper()
	c := connect(t, url)
	if err := topology.DeclareExchange(c.conn, topology.Exchange{Name: "x", Type: "direct", Durable: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ch.QueueDeclare("q", true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
		t.Fatal(err)
	}
	if err := c.ch.QueueBind("q", "k", "x.duepost", false, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

func connect(t *testing.T, url string) *client {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return &client{t, conn, ch}
}

// publish returns once the message is confirmed.
func (c *client) publish(exchange, key string, p amqp.Publishing) {
	c.Helper()
	confirm, err := c.ch.PublishWithDeferredConfirm(exchange, key, true, false, p)
	if err != nil {
		c.Fatal(err)
	}
	if !confirm.Wait() {
		c.Fatal("not confirmed")
	}
}

// get waits for one message of a queue.
func (c *client) get(queue string) amqp.Delivery {
	c.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); <-time.After(5 * time.Millisecond) {
		d, ok, err := c.ch.Get(queue, true)
		if err != nil {
			c.Fatal(err)
		}
		if ok {
			return d
		}
	}
	c.Fatalf("nothing comes in queue %q", queue)
	return amqp.Delivery{}
}

// burst publishes n messages with delays between two, each confirmed, and returns when the last is.
// The body is a number, from first on, and the earliest instant of release.
func (c *client) burst(first, n int, from, to time.Duration) {
	c.Helper()
	var confirms []*amqp.DeferredConfirmation
	for i := range n {
		delay := from + rand.N(to-from)
		confirm, err := c.ch.PublishWithDeferredConfirm("x", "k", true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, Headers: amqp.Table{"x-delay": delay.Milliseconds()},
			Body: fmt.Appendf(nil, "%d %d", first+i, time.Now().Add(delay.Truncate(time.Millisecond)).UnixMicro()),
		})
		if err != nil {
			c.Fatal(err)
		}
		confirms = append(confirms, confirm)
	}
	for _, one := range confirms {
		if !one.Wait() {
			c.Fatal("not confirmed")
		}
	}
}

// tally is what came of a burst.
type tally struct {
	early, twice int
	missing      int
	latest       time.Duration
}

// collect consumes until all n numbers from first on have come, or limit is over. Others are passed
// over: RabbitMQ forgets some acknowledgements of a consumer that leaves right after them.
func collect(t *testing.T, url string, first, n int, limit time.Duration) tally {
	t.Helper()
	c := connect(t, url)
	defer c.conn.Close() // else it keeps taking what the next one waits for
	if err := c.ch.Qos(1000, 0, false); err != nil {
		t.Fatal(err)
	}
	deliveries, err := c.ch.Consume("q", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum, seen := tally{missing: n}, map[int]bool{}
	deadline := time.After(limit)
	for sum.missing > 0 {
		select {
		case d, ok := <-deliveries:
			if !ok {
				t.Fatal("the consumer was ended")
			}
			var i int
			var due int64
			if _, err := fmt.Sscan(string(d.Body), &i, &due); err != nil {
				t.Fatal(err)
			}
			if err := d.Ack(false); err != nil {
				t.Fatal(err)
			}
			if i < first || i >= first+n {
				continue
			}
			late := time.Since(time.UnixMicro(due))
			if late < 0 {
				sum.early++
			}
			sum.latest = max(sum.latest, late)
			if seen[i] {
				sum.twice++
			} else {
				sum.missing--
			}
			seen[i] = true
		case <-deadline:
			return sum
		}
	}
	return sum
}

// TestRestartLeavesNothingBehind: a RabbitMQ that stops and starts again while thousands wait, some
// of them in slots that pass meanwhile, delivers all of them, none early, and the overdue at once.
func TestRestartLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *testbroker.Broker) {
		startRelay(t, b.URL())
		c := newClient(t, b.URL())
		c.burst(0, 4000, time.Second, 25*time.Second)
		<-time.After(2 * time.Second)
		if err := b.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := b.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		sum := collect(t, b.URL(), 0, 4000, patience)
		t.Logf("%+v", sum)
		if sum.missing > 0 || sum.early > 0 {
			t.Errorf("%+v, want none missing and none early", sum)
		}
	})
}

// TestPassedSlotsComeFirst: no relay runs for longer than the delays.
func TestPassedSlotsComeFirst(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *testbroker.Broker) {
		r, stop := startRelay(t, b.URL())
		c := newClient(t, b.URL())
		c.burst(0, 500, 4*time.Second, 6*time.Second)
		c.burst(500, 500, 51*time.Second, 53*time.Second) // a level up
		for until := time.Now().Add(patience); r.Stats().Moved.Load() < 1000; {
			if time.Now().After(until) {
				t.Fatalf("%d of 1000 were moved to the wheel", r.Stats().Moved.Load())
			}
			<-time.After(10 * time.Millisecond)
		}
		stop()
		<-time.After(8 * time.Second)
		startRelay(t, b.URL())
		sum := collect(t, b.URL(), 0, 500, 5*time.Second)
		if sum.missing > 0 || sum.early > 0 {
			t.Errorf("overdue: %+v, want all at once", sum)
		}
		startRelay(t, b.URL()) // a second one beside it
		sum = collect(t, b.URL(), 500, 500, 50*time.Second)
		if sum.missing > 0 || sum.early > 0 || sum.latest > 5*time.Second {
			t.Errorf("a level up: %+v, want all on time", sum)
		}
	})
}

// TestWhatConsumersSee is the strict semantics of one delayed exchange.
func TestWhatConsumersSee(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *testbroker.Broker) {
		startRelay(t, b.URL())
		c := newClient(t, b.URL())
		for _, name := range []string{"also", "lost"} {
			if _, err := c.ch.QueueDeclare(name, true, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.ch.QueueBind("also", "cc", "x.duepost", false, nil); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		c.publish("x", "k", amqp.Publishing{
			Headers:     amqp.Table{"x-delay": int32(1500), "CC": []any{"cc"}, "mine": int16(7), "x-duepost-id": "forged"},
			ContentType: "text/plain", CorrelationId: "c", ReplyTo: "r", MessageId: "m", Type: "t", AppId: "a",
			Priority: 3, DeliveryMode: 2, Expiration: "700", UserId: "guest", Body: []byte("late"),
		})
		c.publish("x", "k", amqp.Publishing{Body: []byte("plain")})
		c.publish("x", "k", amqp.Publishing{Headers: amqp.Table{"x-delay": int64(-5)}, Body: []byte("served")})
		if got := string(c.get("q").Body); got != "plain" {
			t.Errorf("first came %q, want what has no delay", got)
		}
		if d := c.get("q"); string(d.Body) != "served" || d.Headers["x-delay"] != int64(-5) || time.Since(begun) > time.Second {
			t.Errorf("second came %q after %v, want what was served, as it was", d.Body, time.Since(begun))
		}
		d := c.get("also")
		if took := time.Since(begun); took < 1500*time.Millisecond {
			t.Errorf("early: after %v", took)
		}
		if d.Headers["x-delay"] != int64(-1500) || d.Headers["mine"] != int16(7) || d.ContentType != "text/plain" ||
			d.CorrelationId != "c" || d.ReplyTo != "r" || d.MessageId != "m" || d.Type != "t" || d.AppId != "a" ||
			d.Priority != 3 || d.DeliveryMode != 2 || d.Expiration != "700" || d.UserId != "guest" || d.RoutingKey != "k" {
			t.Errorf("it is changed: %+v", d)
		}
		for name := range d.Headers {
			if strings.Contains(name, "death") || strings.Contains(name, "count") || strings.HasPrefix(name, ownPrefix) && name != headerID {
				t.Errorf("header %q is seen", name)
			}
		}
		if id, _ := d.Headers[headerID].(string); id == "" || id == "forged" {
			t.Errorf("id is %q", id)
		}
		c.checkParked()
	})
}

// checkParked publishes what cannot be delivered and looks for it among the parked.
func (c *client) checkParked() {
	c.Helper()
	c.publish("x", "k", amqp.Publishing{Headers: amqp.Table{"x-delay": "soon"}})
	if reason, _ := c.get("duepost.parked").Headers[headerReason].(string); !strings.Contains(reason, "'x-delay' has type longstr") {
		c.Errorf("bad delay: parked with reason %q", reason)
	}
	c.publish("x", "nobody", amqp.Publishing{Headers: amqp.Table{"x-delay": 100}})
	d := c.get("duepost.parked")
	if reason, _ := d.Headers[headerReason].(string); !strings.Contains(reason, "unroutable") || d.Headers[headerKey] != "nobody" {
		c.Errorf("unroutable: parked with %v", d.Headers)
	}
	x := topology.Exchange{Name: "with", Type: "topic", Durable: true, Alternate: "amq.fanout"}
	if err := topology.DeclareExchange(c.conn, x); err != nil {
		c.Fatal(err)
	}
	if err := c.ch.QueueBind("lost", "", "amq.fanout", false, nil); err != nil {
		c.Fatal(err)
	}
	c.publish("with", "nobody", amqp.Publishing{Headers: amqp.Table{"x-delay": 100}, Body: []byte("alternate")})
	if got := string(c.get("lost").Body); got != "alternate" {
		c.Errorf("alternate exchange got %q", got)
	}
	c.publish("with", "k", amqp.Publishing{Headers: amqp.Table{"x-delay": 1500}})
	if err := topology.DeleteExchange(c.conn, "with"); err != nil {
		c.Fatal(err)
	}
	if reason, _ := c.get("duepost.parked").Headers[headerReason].(string); reason == "" {
		c.Error("exchange deleted: parked without a reason")
	}
}

// TestExpiredInTheIntake: while no relay runs, the expiration of a message ends before its delay
// does. It is delivered all the same, for the expiration counts from its arrival in a queue of a
// consumer.
func TestExpiredInTheIntake(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *testbroker.Broker) {
		c := newClient(t, b.URL())
		c.publish("x", "k", amqp.Publishing{Headers: amqp.Table{"x-delay": 2000, "mine": "yes"}, Expiration: "200", Priority: 2})
		<-time.After(time.Second)
		startRelay(t, b.URL())
		d := c.get("q")
		if d.Expiration != "200" || d.Headers["mine"] != "yes" || d.Priority != 2 || d.Headers["x-delay"] != int64(-2000) {
			t.Errorf("it is changed: %+v", d)
		}
		for name := range d.Headers {
			if strings.Contains(name, "death") {
				t.Errorf("header %q is seen", name)
			}
		}
	})
}
