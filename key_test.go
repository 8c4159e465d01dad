package duepost_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/duepost/duepost"
)

// targets are the kinds of exchanges for which a message can be delayed. All lead to queue q.
func (r *rig) targets() []duepost.Message {
	r.t.Helper()
	r.declare(duepost.Topology{
		Exchanges: []duepost.Exchange{{Name: "plain", Kind: duepost.Topic}, {Name: "delayed", Delayed: true}},
		Queues:    []duepost.Queue{{Name: "q"}},
		Bindings: []duepost.Binding{
			{Exchange: "plain", Queue: "q", Key: "order.*"}, {Exchange: "delayed", Queue: "q", Key: "k"},
		},
	})
	return []duepost.Message{
		{RoutingKey: "q"}, {Exchange: "plain", RoutingKey: "order.placed"}, {Exchange: "delayed", RoutingKey: "k"},
	}
}

func TestEveryExchangeCanDelay(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, o duepost.Options) {
		r := newRig(t, o)
		targets := r.targets()
		got := r.deliveries("q")
		// A second client knows nothing of what the first one declared.
		for _, c := range []*duepost.Client{r.client, r.connect(o)} {
			for _, m := range targets {
				began := r.broker.Now()
				m.Delay = 30 * time.Millisecond
				if _, err := c.Publish(t.Context(), m); err != nil {
					t.Fatalf("publish to %q: %v", m.Exchange, err)
				}
				d := next(t, got)
				if d.Exchange != m.Exchange || d.RoutingKey != m.RoutingKey || d.Headers != nil {
					t.Errorf("got exchange %q, key %q, headers %v; want %q, %q, none",
						d.Exchange, d.RoutingKey, d.Headers, m.Exchange, m.RoutingKey)
				}
				if took := d.Received.Sub(began); took < m.Delay {
					t.Errorf("to %q: came after %v, want at least %v", m.Exchange, took, m.Delay)
				}
			}
		}
	})
}

func TestDelayForWhatIsNotThere(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, o duepost.Options) {
		r := newRig(t, o)
		for _, c := range []struct {
			m    duepost.Message
			want error
		}{
			{duepost.Message{RoutingKey: "nobody", Delay: time.Second}, duepost.ErrUnroutable},
			{duepost.Message{Exchange: "nowhere", Delay: time.Second}, duepost.ErrUnknownExchange},
			{duepost.Message{RoutingKey: "q", Delay: 120 * year}, duepost.ErrDelayTooLong},
		} {
			if _, err := r.client.Publish(t.Context(), c.m); !errors.Is(err, c.want) || !duepost.SafeToRetry(err) {
				t.Errorf("publish to %q %q with delay %v: got %v, want %v", c.m.Exchange, c.m.RoutingKey, c.m.Delay, err, c.want)
			}
		}
	})
}

const year = 365 * 24 * time.Hour

func TestKeyReplacesAndCancels(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	got := func(d *duepost.Delivery) string { return fmt.Sprintf("%s under %s", d.Body, d.Key) }
	targets := r.targets()
	all := r.deliveries("q")
	for _, m := range targets {
		m.Key, m.Delay, m.Body = "order 17", time.Hour, []byte("first")
		r.publish(m)
		m.Body = []byte("second")
		if _, err := r.client.Reschedule(t.Context(), m); err != nil {
			t.Fatalf("reschedule: %v", err)
		}
		r.broker.Advance(time.Hour)
		if got := got(next(t, all)); got != "second under order 17" {
			t.Errorf("to %q: got %s, want the second alone", m.Exchange, got)
		}

		r.publish(m)
		if err := r.client.Cancel(t.Context(), m.Exchange, m.Key); err != nil {
			t.Errorf("cancel on %q: %v", m.Exchange, err)
		}
		if err := r.client.Cancel(t.Context(), m.Exchange, m.Key); !errors.Is(err, duepost.ErrNotPending) {
			t.Errorf("cancel on %q again: got %v, want ErrNotPending", m.Exchange, err)
		}
		r.broker.Advance(time.Hour)
		m.Body, m.Key, m.Delay = []byte("after"), "", 0
		r.publish(m)
		if got := got(next(t, all)); got != "after under " {
			t.Errorf("to %q: got %s, want nothing of what was canceled", m.Exchange, got)
		}
	}
}

// An instant in the past with a key is due at once and takes the place of what waited.
func TestOverdueKeyReplaces(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	r.publish(duepost.Message{RoutingKey: "q", Key: "k", Delay: time.Hour})
	receipt := r.publish(duepost.Message{RoutingKey: "q", Key: "k", At: r.broker.Now().Add(-time.Second), Body: []byte("now")})
	if d := next(t, r.deliveries("q")); string(d.Body) != "now" || !receipt.Overdue {
		t.Errorf("got %q, receipt %+v", d.Body, receipt)
	}
	if err := r.client.Cancel(t.Context(), "", "k"); !errors.Is(err, duepost.ErrNotPending) {
		t.Errorf("cancel: got %v, want ErrNotPending", err)
	}
}

func TestCancelsAtTheSameTimeGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	r.queue("q")
	for i := range 50 {
		r.publish(duepost.Message{RoutingKey: "q", Key: fmt.Sprint(i), Delay: time.Hour})
	}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			err := r.client.Cancel(t.Context(), "", fmt.Sprint(i))
			if i < 50 && err != nil || i >= 50 && !errors.Is(err, duepost.ErrNotPending) {
				t.Errorf("cancel key %d of 50: got %v", i, err)
			}
		})
	}
	all.Wait()
}

func TestKeysWhereTheBrokerHasNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{Mode: duepost.ModeWaitQueues})
	r.queue("q")
	m := duepost.Message{RoutingKey: "q", Key: "k", Delay: time.Second}
	_, publish := r.client.Publish(t.Context(), m)
	_, reschedule := r.client.Reschedule(t.Context(), m)
	for name, err := range map[string]error{
		"publish": publish, "reschedule": reschedule, "cancel": r.client.Cancel(t.Context(), "", "k"),
	} {
		if !errors.Is(err, duepost.ErrNotSupported) {
			t.Errorf("%s: got %v, want ErrNotSupported", name, err)
		}
	}
	m.Key = ""
	if _, err := r.client.Reschedule(t.Context(), m); !errors.Is(err, duepost.ErrInvalid) {
		t.Errorf("reschedule without a key: got %v, want ErrInvalid", err)
	}
	m.Expiration = time.Second
	if _, err := r.client.Publish(t.Context(), m); !errors.Is(err, duepost.ErrNotSupported) {
		t.Errorf("expiration in a wait queue: got %v, want ErrNotSupported", err)
	}
}

func TestModeIsFoundAndCanBeForced(t *testing.T) {
	t.Parallel()
	r := newRig(t, duepost.Options{})
	if b := r.client.Broker(); b.Product != "Duepost" || b.Version == "" || b.Mode != duepost.ModeNative || !b.Keys {
		t.Errorf("found %+v", b)
	}
	if b := r.connect(duepost.Options{Mode: duepost.ModeWaitQueues}).Broker(); b.Mode != duepost.ModeWaitQueues || b.Keys {
		t.Errorf("forced: %+v", b)
	}
}

// What is declared to delay messages can be deleted by somebody while the client believes that
// it is there.
func TestDeletedWayIsMadeAgain(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, o duepost.Options) {
		r := newRig(t, o)
		targets := r.targets()
		got := r.deliveries("q")
		for range 2 {
			for _, m := range targets {
				m.Delay = 10 * time.Millisecond
				r.publish(m)
				next(t, got)
			}
			r.deleteAll("plain.delayed", "duepost.delayed", "duepost.wait.10ms", "duepost.due")
		}
	})
}
