package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// roundsVariable sets how often the broker is killed; nightly runs want more.
const roundsVariable = "DUEPOST_E2E_ROUNDS"

const (
	crashQueue    = "crash.work"
	crashDue      = "crash.due"
	crashExchange = "crash.delayed"
	// inFlight bounds the messages that one publisher has not seen confirmed.
	inFlight = 200
	// cancelledAtLeast is how long a message waits that is cancelled at once: so long that it
	// cannot be due before.
	cancelledAtLeast = 5 * time.Second
	// drainWithin bounds the time that all messages take to come after the last start.
	drainWithin = time.Minute
)

// TestKill kills the broker with SIGKILL under load, again and again, while the log
// is cleaned and what is delayed goes to runs. What was confirmed is there after the
// restart, what was acknowledged or cancelled does not come back, nothing comes early,
// and the topology stands.
func TestKill(t *testing.T) {
	t.Parallel()
	rounds := 3
	if text := os.Getenv(roundsVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", roundsVariable, err)
		}
		rounds = n
	}
	b := newBroker(t)
	b.args = append(b.args, "--log-file-bytes=262144")
	l := newLedger()
	runs := 0
	for round := range rounds {
		b.start(t)
		if round == 0 {
			declareCrash(t, b)
		}
		load := startLoad(t, b, l, round)
		<-time.After(700*time.Millisecond + rand.N(900*time.Millisecond))
		told := time.Now()
		b.kill(t)
		gone := time.Now()
		load.Wait()
		l.crash(told, gone)
		runs += len(filesOf(t, b, "run-*"))
		if first := filesOf(t, b, "log-*")[0]; round > 0 && strings.HasSuffix(first, "log-0000000001") {
			t.Errorf("%s is still there: nothing was cleaned", first)
		}
		t.Logf("round %d: %s", round, l.counts())
	}
	if runs == 0 {
		t.Error("no run was written: the test says nothing of them")
	}
	drain(t, b, l)
}

// filesOf returns the files of a broker's directory, in the order of their names.
func filesOf(t *testing.T, b *broker, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(b.dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestOrderlyStop stops the broker with SIGTERM under load: clients are told,
// the exit code is 0, and nothing that was said is forgotten.
func TestOrderlyStop(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	l := newLedger()
	b.start(t)
	declareCrash(t, b)
	told := b.dial(t).NotifyClose(make(chan *amqp.Error, 1))
	load := startLoad(t, b, l, 0)
	<-time.After(time.Second)
	signalled := time.Now()
	if err := b.stop(t); err != nil {
		t.Errorf("end after SIGTERM: %v", err)
	}
	select {
	case err := <-told:
		if err == nil || err.Code != amqp.ConnectionForced {
			t.Errorf("an idle client was told %v, want code %d", err, amqp.ConnectionForced)
		}
	case <-time.After(5 * time.Second):
		t.Error("an idle client was not told")
	}
	gone := time.Now()
	load.Wait()
	l.crash(signalled, gone)
	t.Log(l.counts())
	drain(t, b, l)
}

// drain starts the broker once more and takes everything out of it.
func drain(t *testing.T, b *broker, l *ledger) {
	t.Helper()
	b.start(t)
	conn := b.dial(t)
	consumeAll(t, conn, l, &sync.WaitGroup{})
	if err := l.awaitAll(drainWithin); err != nil {
		t.Error(err)
	}
	l.awaitCancelled()
	for _, fault := range l.verdict() {
		t.Error(fault)
	}
	t.Log(l.counts())
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.settled) == 0 || len(l.confirmed) == 0 || len(l.gone) == 0 {
		t.Error("nothing was confirmed, acknowledged or cancelled before the stop: the test says nothing")
	}
}

func declareCrash(t *testing.T, b *broker) {
	t.Helper()
	conn := b.dial(t)
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{crashQueue, crashDue} {
		if _, err := ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	err = ch.ExchangeDeclare(crashExchange, "x-delayed-message", true, false, false, false,
		amqp.Table{"x-delayed-type": "direct"})
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind(crashDue, "due", crashExchange, false, nil); err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// startLoad publishes and consumes until the broker is gone; the group ends when
// everyone has noticed that.
func startLoad(t *testing.T, b *broker, l *ledger, round int) *sync.WaitGroup {
	t.Helper()
	load := &sync.WaitGroup{}
	consumeAll(t, b.dial(t), l, load)
	for i := range 2 {
		conn := b.dial(t)
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		if err := ch.Confirm(false); err != nil {
			t.Fatal(err)
		}
		load.Go(func() { publishUntilGone(t.Context(), ch, l, fmt.Sprintf("%d.%d", round, i)) })
	}
	return load
}

// publishUntilGone publishes persistent messages, every other one delayed, of which it
// cancels some, and enters each confirm into the ledger. It ends when the channel does.
func publishUntilGone(ctx context.Context, ch *amqp.Channel, l *ledger, name string) {
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
	var waits sync.WaitGroup
	defer waits.Wait()
	window := make(chan struct{}, inFlight)
	for n := 0; ; n++ {
		id := fmt.Sprintf("%s.%d", name, n)
		exchange, key, delay := "", crashQueue, time.Duration(0)
		msg := amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: id, Body: make([]byte, rand.N(600))}
		if n%2 == 1 {
			exchange, key = crashExchange, "due"
			delay = time.Duration(1+rand.N(4000)) * time.Millisecond
			msg.Headers = amqp.Table{"x-delay": delay.Milliseconds()}
		}
		cancelled := n%20 == 19
		if cancelled {
			delay += cancelledAtLeast
			msg.Headers = amqp.Table{"x-delay": delay.Milliseconds(), "x-delay-key": id}
		}
		select {
		case window <- struct{}{}:
		case <-ctx.Done():
			return
		}
		l.publish(id, time.Now().Add(delay))
		c, err := ch.PublishWithDeferredConfirmWithContext(ctx, exchange, key, false, false, msg)
		if err != nil {
			return
		}
		waits.Go(func() {
			defer func() { <-window }()
			acked, err := c.WaitContext(ctx)
			if err != nil || !acked {
				return
			}
			if !cancelled {
				l.confirm(id)
				return
			}
			c, err := ch.PublishWithDeferredConfirmWithContext(ctx, crashExchange, "due", false, false, amqp.Publishing{
				DeliveryMode: amqp.Persistent, Headers: amqp.Table{"x-delay-key": id, "x-delay-cancel": true},
			})
			if err != nil {
				return
			}
			if acked, err := c.WaitContext(ctx); err == nil && acked {
				l.cancel(id)
			}
		})
	}
}

// consumeAll acknowledges whatever comes, into the ledger, for as long as the
// connection lives.
func consumeAll(t *testing.T, conn *amqp.Connection, l *ledger, group *sync.WaitGroup) {
	t.Helper()
	for _, queue := range []string{crashQueue, crashDue} {
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		if err := ch.Qos(100, 0, false); err != nil {
			t.Fatal(err)
		}
		deliveries, err := ch.Consume(queue, queue, false, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for d := range deliveries {
				now := time.Now()
				l.deliver(d.MessageId, now)
				if d.Ack(false) == nil {
					l.ack(d.MessageId, now)
				}
			}
		})
	}
}
