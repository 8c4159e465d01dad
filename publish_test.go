package duepost_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/internal/proxy"
)

func TestPublishKeepsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	m := duepost.Message{
		RoutingKey: "q", Body: []byte("body"), MessageID: "id", CorrelationID: "c", ReplyTo: "r",
		ContentType: "text/plain", ContentEncoding: "identity", Type: "t", AppID: "app", Priority: 3,
		Timestamp: time.Unix(1_700_000_000, 0), Expiration: time.Hour, Transient: true,
		Headers: map[string]any{"n": int64(7), "list": []string{"a", "b"}, "map": map[string]any{"deep": true}},
	}
	receipt := r.publish(m)
	if want := (duepost.Receipt{MessageID: "id"}); receipt != want {
		t.Errorf("receipt: got %+v, want %+v", receipt, want)
	}
	want := m
	want.Headers = map[string]any{
		"n": int64(7), "list": []any{"a", "b"}, "map": amqp.Table{"deep": true},
	}
	d := next(t, r.deliveries("q"))
	if diff := cmp.Diff(want, d.Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if m.Headers["list"].([]string) == nil || len(m.Headers) != 3 {
		t.Errorf("headers of the caller were changed: %v", m.Headers)
	}
}

func TestPublishRefusesWhatNoBrokerCanTake(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	for name, m := range map[string]duepost.Message{
		"negative delay":      {RoutingKey: "q", Delay: -time.Second},
		"delay and instant":   {RoutingKey: "q", Delay: time.Second, At: time.Now()},
		"negative expiration": {RoutingKey: "q", Expiration: -1},
		"long routing key":    {RoutingKey: strings.Repeat("k", 256)},
		"long header name":    {RoutingKey: "q", Headers: map[string]any{strings.Repeat("h", 256): 1}},
		"own header":          {RoutingKey: "q", Headers: map[string]any{"x-duepost-due": 1}},
		"header of no type":   {RoutingKey: "q", Headers: map[string]any{"h": struct{}{}}},
		"deep header":         {RoutingKey: "q", Headers: map[string]any{"h": []any{map[string]any{"x": make(chan int)}}}},
		"300 years":           {RoutingKey: "q", At: time.Now().AddDate(300, 0, 0)},
	} {
		_, err := r.client.Publish(t.Context(), m)
		if !errors.Is(err, duepost.ErrInvalid) || !duepost.SafeToRetry(err) {
			t.Errorf("%s: got %v, want ErrInvalid, surely not sent", name, err)
		}
	}
	r.publish(duepost.Message{RoutingKey: "q"}) // the channel is as good as before
}

func TestOverdueGoesAtOnceAndSaysSo(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, o duepost.Options) {
		r := newRig(t, o)
		r.queue("q")
		at := r.broker.Now().Add(-time.Hour)
		receipt := r.publish(duepost.Message{RoutingKey: "q", At: at})
		if !receipt.Overdue || !receipt.Due.IsZero() {
			t.Errorf("receipt of an instant in the past: got %+v, want it overdue", receipt)
		}
		if d := next(t, r.deliveries("q")); d.Lateness() < time.Hour || d.Due.Unix() != at.Unix() {
			t.Errorf("due %v, lateness %v; want due %v and an hour late", d.Due, d.Lateness(), at)
		}
	})
}

func TestUnroutableIsAnErrorOfTheRightMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			m := duepost.Message{RoutingKey: "q"}
			if i%2 == 0 {
				m.RoutingKey = "nobody"
			}
			_, err := r.client.Publish(t.Context(), m)
			var returned *duepost.ReturnedError
			switch {
			case i%2 == 1 && err != nil:
				t.Errorf("to a queue: got %v, want it confirmed", err)
			case i%2 == 0 && !(errors.As(err, &returned) && returned.Code == 312 && errors.Is(err, duepost.ErrUnroutable)):
				t.Errorf("to nobody: got %v, want it returned", err)
			case i%2 == 0 && duepost.SafeToRetry(err):
				t.Errorf("to nobody: %v counts as not sent", err)
			}
		})
	}
	all.Wait()
	r.publish(duepost.Message{RoutingKey: "nobody", DropUnroutable: true})
}

func TestUnknownExchangeHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			m := duepost.Message{RoutingKey: "q"}
			if i%10 == 0 {
				m.Exchange = "nowhere"
			}
			_, err := r.client.Publish(t.Context(), m)
			if i%10 == 0 && !errors.Is(err, duepost.ErrUnknownExchange) || i%10 != 0 && err != nil {
				t.Errorf("publish to exchange %q: %v", m.Exchange, err)
			}
		})
	}
	all.Wait()
}

// An exchange that was there and is not any more ends the channel that all share.
func TestDeletedExchangeFailsItsOwnMessagesOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.declare(duepost.Topology{
		Exchanges: []duepost.Exchange{{Name: "gone", Kind: duepost.Fanout}},
		Queues:    []duepost.Queue{{Name: "q"}},
		Bindings:  []duepost.Binding{{Exchange: "gone", Queue: "q"}},
	})
	r.publish(duepost.Message{Exchange: "gone"})
	r.raw(func(ch *amqp.Channel) error { return ch.ExchangeDelete("gone", false, false) })

	ms := make([]duepost.Message, 100)
	for i := range ms {
		ms[i] = duepost.Message{RoutingKey: "q", MessageID: fmt.Sprint(i)}
	}
	ms[50] = duepost.Message{Exchange: "gone"}
	_, err := r.client.PublishBatch(t.Context(), ms)
	var batch *duepost.BatchError
	if !errors.As(err, &batch) {
		t.Fatalf("publish batch: got %v, want a BatchError", err)
	}
	for i, err := range batch.Errs {
		switch {
		case i == 50 && !errors.Is(err, duepost.ErrUnknownExchange):
			t.Errorf("message to the deleted exchange: got %v, want ErrUnknownExchange", err)
		case i > 50 && err != nil:
			t.Errorf("message %d, behind it: got %v, want it sent again and confirmed", i, err)
		case i < 50 && err != nil && !errors.Is(err, duepost.ErrUnconfirmed):
			t.Errorf("message %d, before it: got %v, want it confirmed or ErrUnconfirmed", i, err)
		}
	}
}

func TestFullQueueRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.declare(duepost.Topology{Queues: []duepost.Queue{
		{Name: "q", Args: map[string]any{"x-max-length": 1, "x-overflow": "reject-publish"}},
	}})
	r.publish(duepost.Message{RoutingKey: "q"})
	if _, err := r.client.Publish(t.Context(), duepost.Message{RoutingKey: "q"}); !errors.Is(err, duepost.ErrRefused) {
		t.Errorf("publish to a full queue: got %v, want ErrRefused", err)
	}
}

func TestBatchLargerThanTheWindow(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{MaxInFlight: 10})
	r.queue("q")
	ms := make([]duepost.Message, 250)
	for i := range ms {
		ms[i] = duepost.Message{RoutingKey: "q", MessageID: fmt.Sprint(i)}
	}
	ms[100].Delay = -1
	receipts, err := r.client.PublishBatch(t.Context(), ms)
	var batch *duepost.BatchError
	if !errors.As(err, &batch) || !errors.Is(err, duepost.ErrInvalid) || !duepost.SafeToRetry(err) {
		t.Fatalf("publish batch: got %v, want a BatchError with ErrInvalid", err)
	}
	got := r.deliveries("q")
	for i := range ms {
		if bad := i == 100; bad != (batch.Errs[i] != nil) || bad != (receipts[i].MessageID == "") {
			t.Fatalf("message %d: error %v, receipt %+v", i, batch.Errs[i], receipts[i])
		}
		if i == 100 {
			continue
		}
		if d := next(t, got); d.MessageID != fmt.Sprint(i) {
			t.Fatalf("got message %s, want %d: a batch keeps its order", d.MessageID, i)
		}
	}
}

func TestWaitsEndWithTheContext(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.broker.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := r.client.Publish(ctx, duepost.Message{RoutingKey: "q"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("publish without a broker: got %v, want the end of the context", err)
	}
}

func TestClosedClient(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	if err := r.client.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := r.client.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	ctx := t.Context()
	_, publish := r.client.Publish(ctx, duepost.Message{RoutingKey: "q"})
	_, batch := r.client.PublishBatch(ctx, make([]duepost.Message, 1))
	for name, err := range map[string]error{
		"publish": publish, "batch": batch,
		"cancel":  r.client.Cancel(ctx, "", "k"),
		"declare": r.client.Declare(ctx, duepost.Topology{Queues: []duepost.Queue{{Name: "q"}}}),
		"consume": r.client.Consume(ctx, duepost.Consumer{Queue: "q"}, ignore),
	} {
		if !errors.Is(err, duepost.ErrClosed) {
			t.Errorf("%s after close: got %v, want ErrClosed", name, err)
		}
	}
}

// Who waits for a place when the client closes does not wait for ever, and what is under way
// without an answer is told so.
func TestCloseEndsWaits(t *testing.T) {
	t.Parallel()
	r, p := newProxiedRig(t, duepost.Options{MaxInFlight: 1, DrainTimeout: 20 * time.Millisecond})
	r.queue("q")
	sent := make(chan bool, 1)
	p.Judge(func(_ proxy.Direction, f proxy.Frame) proxy.Verdict {
		switch {
		case f.Is(classBasic, methodPublish):
			sent <- true
		case f.Is(classBasic, methodAck):
			return proxy.Lose
		}
		return proxy.Pass
	})
	fates := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := r.client.Publish(context.Background(), duepost.Message{RoutingKey: "q"})
			fates <- err
		}()
	}
	next(t, sent)
	if err := r.client.Close(); !errors.Is(err, duepost.ErrUnconfirmed) {
		t.Errorf("close: got %v, want ErrUnconfirmed", err)
	}
	unconfirmed, closed := next(t, fates), next(t, fates)
	if errors.Is(unconfirmed, duepost.ErrClosed) {
		unconfirmed, closed = closed, unconfirmed
	}
	if !errors.Is(unconfirmed, duepost.ErrUnconfirmed) || duepost.SafeToRetry(unconfirmed) {
		t.Errorf("the one under way: got %v, want ErrUnconfirmed", unconfirmed)
	}
	if !errors.Is(closed, duepost.ErrClosed) || !duepost.SafeToRetry(closed) {
		t.Errorf("the one that waits for a place: got %v, want ErrClosed", closed)
	}
}

// raw does something with a channel of the bare client library.
func (r *rig) raw(f func(*amqp.Channel) error) {
	r.t.Helper()
	conn, err := amqp.Dial(r.broker.URL)
	if err != nil {
		r.t.Fatalf("connect: %v", err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		r.t.Fatalf("open channel: %v", err)
	}
	if err := f(ch); err != nil {
		r.t.Fatalf("by the bare client: %v", err)
	}
}

// deleteAll deletes exchanges that are there.
func (r *rig) deleteAll(exchanges ...string) {
	r.t.Helper()
	r.raw(func(ch *amqp.Channel) error {
		for _, name := range exchanges {
			if err := ch.ExchangeDelete(name, false, false); err != nil {
				return err
			}
		}
		return nil
	})
}
