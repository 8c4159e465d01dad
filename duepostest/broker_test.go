package duepostest_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/duepostest"
)

// maxStart is what users are promised, with room for a machine that does other work.
const maxStart = 50 * time.Millisecond

// Not parallel: it measures.
func TestStartIsFast(t *testing.T) {
	best := time.Hour
	for range 5 {
		began := time.Now()
		duepostest.Start(t)
		best = min(best, time.Since(began))
	}
	if best > maxStart {
		t.Errorf("start a broker: best of 5 is %v, want at most %v", best, maxStart)
	}
	t.Logf("best of 5: %v", best)
}

func TestAdvanceReleasesWhatIsDueByThen(t *testing.T) {
	t.Parallel()
	b := duepostest.Start(t)
	ch := channel(t, b)
	declareDelayed(t, ch)
	got, err := ch.Consume("q", "", true, false, false, false, nil)
	if err != nil {
		t.Fatalf("consume: %v", err)
	}
	publishDelayed(t, ch, "half an hour", 30*time.Minute)
	publishDelayed(t, ch, "an hour", time.Hour)

	b.Advance(31 * time.Minute)
	if d := <-got; string(d.Body) != "half an hour" {
		t.Errorf("after 31 minutes: got %q, want that of half an hour", d.Body)
	}
	b.Advance(31 * time.Minute)
	if d := <-got; string(d.Body) != "an hour" {
		t.Errorf("after 62 minutes: got %q, want that of an hour", d.Body)
	}
}

func TestWhatWasConfirmedSurvivesKillAndStop(t *testing.T) {
	t.Parallel()
	b := duepostest.Start(t)
	ch := channel(t, b)
	declareDelayed(t, ch)
	publishDelayed(t, ch, "kept", time.Hour)
	b.Kill()
	b.Restart()
	b.Stop()
	b.Restart()
	got, err := channel(t, b).Consume("q", "", true, false, false, false, nil)
	if err != nil {
		t.Fatalf("consume: %v", err)
	}
	b.Advance(time.Hour)
	if d := <-got; string(d.Body) != "kept" {
		t.Errorf("after kill, restart, stop, restart: got %q, want what was confirmed", d.Body)
	}
}

// channel opens a channel in confirm mode.
func channel(t *testing.T, b *duepostest.Broker) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(b.URL)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatalf("open channel: %v", err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatalf("select confirms: %v", err)
	}
	return ch
}

func declareDelayed(t *testing.T, ch *amqp.Channel) {
	t.Helper()
	args := amqp.Table{"x-delayed-type": "fanout"}
	if err := ch.ExchangeDeclare("x", "x-delayed-message", true, false, false, false, args); err != nil {
		t.Fatalf("declare exchange: %v", err)
	}
	if _, err := ch.QueueDeclare("q", true, false, false, false, nil); err != nil {
		t.Fatalf("declare queue: %v", err)
	}
	if err := ch.QueueBind("q", "", "x", false, nil); err != nil {
		t.Fatalf("bind queue: %v", err)
	}
}

func publishDelayed(t *testing.T, ch *amqp.Channel, body string, delay time.Duration) {
	t.Helper()
	confirm, err := ch.PublishWithDeferredConfirm("x", "", false, false, amqp.Publishing{
		Headers: amqp.Table{"x-delay": delay.Milliseconds()}, Body: []byte(body),
	})
	if err != nil {
		t.Fatalf("publish: %v", err)
	}
	if ok, err := confirm.WaitContext(t.Context()); !ok {
		t.Fatalf("publish: not confirmed: %v", err)
	}
}
