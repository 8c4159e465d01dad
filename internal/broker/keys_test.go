package broker

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

func withKey(key string, ms int64) option {
	return withHeaders(amqp.Table{"x-delay": ms, "x-delay-key": key})
}

func cancelOf(key string) option {
	return withHeaders(amqp.Table{"x-delay-key": key, "x-delay-cancel": true})
}

// wantCancel cancels and checks whether there was anything.
func (r *rig) wantCancel(exchange, key string, pending bool) {
	r.t.Helper()
	res := r.publish(exchange, "", "cancel", cancelOf(key))
	if !res.Routed || res.LSN == 0 || res.NotPending == pending {
		r.t.Errorf("cancel %q in %s: got %+v, want pending: %v", key, exchange, res, pending)
	}
}

// delayedQueue makes delayed exchanges of one queue.
func (r *rig) delayedQueue(queue string, exchanges ...string) {
	r.t.Helper()
	r.queue(queue, nil, "durable")
	for _, x := range exchanges {
		r.delayedExchange(x, "fanout")
		r.bind(queue, x, "")
	}
}

func TestKeyReplacesWhatWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedQueue("q", "x", "y")
		r.publish("x", "", "first", withKey("k", 1000))
		r.publish("x", "", "other key", withKey("K", 1000))
		r.publish("x", "", "no key", withDelay(1000))
		r.publish("y", "", "other exchange", withKey("k", 1000))
		r.publish("x", "", "second", withKey("k", 2000))
		r.crash()
		r.publish("x", "", "third", withKey("k", 3000))
		if got := r.vhost.Delayed("x").Count; got != 3 {
			t.Errorf("got %d pending in x, want 3", got)
		}
		r.crash()
		pass(1001 * time.Millisecond)
		r.wantDrained("q", "other key", "no key", "other exchange")
		pass(1 * time.Second)
		r.wantDrained("q")
		pass(1 * time.Second)
		d := r.take("q")
		if d.body != "third" || d.headers["x-delay-key"] != "k" || d.headers["x-delay"] != int64(-3000) {
			t.Errorf("got %+v", d)
		}
		r.publish("x", "", "sooner", withKey("k", 50_000))
		r.publish("x", "", "soon", withKey("k", 1000))
		pass(1001 * time.Millisecond)
		r.wantDrained("q", "soon")
		if got := r.store.PendingTotal().Count; got != 0 {
			t.Errorf("got %d pending", got)
		}
	})
}

func TestKeyCancelsWhatWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedQueue("q", "x", "y")
		r.wantCancel("x", "k", false)
		r.publish("x", "", "m", withKey("k", 1000))
		r.wantCancel("y", "k", false)
		r.wantCancel("x", "other", false)
		r.wantCancel("x", "k", true)
		r.wantCancel("x", "k", false)
		r.crash()
		r.wantCancel("x", "k", false)
		r.publish("x", "", "released", withKey("k", 1000))
		pass(1001 * time.Millisecond)
		r.wantDrained("q", "released")
		r.wantCancel("x", "k", false)
		if s := r.engine.Stats(); s.Cancelled != 0 || s.Pending.Count != 0 {
			t.Errorf("got %+v", s)
		}
	})
}

// TestKeyWithoutDelay: what waits gives way to a message that goes at once. One that was
// delayed before goes at once and leaves alone what waits.
func TestKeyWithoutDelay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedQueue("q", "x")
		r.publish("x", "", "later", withKey("k", 1000))
		r.publish("x", "", "served", withKey("k", -5))
		r.wantDrained("q", "served")
		r.publish("x", "", "now", withHeaders(amqp.Table{"x-delay-key": "k"}))
		pass(2 * time.Millisecond)
		r.wantDrained("q", "now")
		pass(2 * time.Second)
		r.wantDrained("q")
	})
}

func TestBadKeyIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.delayedExchange("x", "fanout")
	for text, h := range map[string]amqp.Table{
		"header 'x-delay-key' has type":                                  {"x-delay": int32(5), "x-delay-key": int32(1)},
		"header 'x-delay-key' has 0 bytes":                               {"x-delay": int32(5), "x-delay-key": ""},
		"header 'x-delay-key' has 256 bytes, allowed are 1 to 255":       {"x-delay-key": strings.Repeat("k", 256)},
		"header 'x-delay-cancel' has type":                               {"x-delay-cancel": "true", "x-delay-key": "k"},
		"header 'x-delay-cancel' is true and there is no header":         {"x-delay-cancel": true},
		"header 'x-delay' has type longstr and no integer in it: \"1m\"": {"x-delay-cancel": true, "x-delay-key": "k", "x-delay": "1m"},
	} {
		_, err := r.p.Publish(newMessage("x", "", "m", withHeaders(h)))
		wantError(t, err, amqp.PreconditionFailed, text)
		wantError(t, r.p.NewTx().Publish(newMessage("x", "", "m", withHeaders(h))), amqp.PreconditionFailed, text)
	}
	if _, err := r.p.Publish(newMessage("amq.fanout", "", "m", withHeaders(amqp.Table{"x-delay-key": int32(1)}))); err != nil {
		t.Errorf("without a delayed exchange it is a header like any other: %v", err)
	}
	if got := r.vhost.Delayed("x").Count; got != 0 {
		t.Errorf("got %d pending", got)
	}
}

// TestKeySurvivesRetry: a message that its queue refuses waits again, under its key.
func TestKeySurvivesRetry(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "fanout")
		r.queue("full", amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"}, "durable")
		r.bind("full", "x", "")
		r.publish("", "full", "first")
		r.publish("x", "", "cancelled", withKey("k", 1000))
		r.publish("x", "", "replaced", withKey("l", 1000))
		pass(1050 * time.Millisecond)
		if got := r.engine.Stats().Retried; got != 2 {
			t.Fatalf("%d were tried", got)
		}
		r.crash()
		pass(50 * time.Millisecond)
		r.wantCancel("x", "k", true)
		r.publish("x", "", "stands", withKey("l", 1000))
		r.wantDrained("full", "first")
		pass(time.Minute)
		r.wantDrained("full", "stands")
	})
}

// TestKeyOfDeletedExchange: another exchange of the same name has nothing to cancel.
func TestKeyOfDeletedExchange(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedQueue("q", "x")
		r.publish("x", "", "m", withKey("k", 1000))
		if err := r.ExchangeDelete("x", false); err != nil {
			t.Fatal(err)
		}
		r.delayedExchange("x", "fanout")
		r.wantCancel("x", "k", false)
	})
}

// TestKeyOverBindings: each delayed exchange on the way deals with the key; where there is
// none the message is one like others.
func TestKeyOverBindings(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedQueue("q", "x", "y")
		r.queue("plain", nil)
		r.bind("plain", "amq.fanout", "")
		r.bindExchange("x", "amq.fanout", "")
		r.bindExchange("y", "amq.fanout", "")
		r.publish("amq.fanout", "", "m", withKey("k", 1000))
		r.wantCancel("x", "k", true)
		r.wantCancel("amq.fanout", "k", true)
		r.wantCancel("amq.fanout", "k", false)
		pass(2 * time.Second)
		r.wantDrained("q")
		r.wantDrained("plain", "m", "cancel", "cancel")
	})
}

// TestKeyOfDeadLetter: who died did not publish here: nothing is replaced or cancelled.
func TestKeyOfDeadLetter(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedQueue("q", "x")
		dying := r.queue("dying", deadTo("x"))
		r.publish("x", "", "waits", withKey("k", 5000))
		for _, o := range []option{cancelOf("k"), withKey("k", 1000)} {
			r.publish("", "dying", "dead", o)
			d, _, _, err := dying.Get(false)
			if err != nil {
				t.Fatal(err)
			}
			dying.Reject([]uint64{d.Pos})
		}
		pass(1 * time.Millisecond)
		r.wantDrained("q", "dead")
		pass(1 * time.Second)
		r.wantDrained("q", "dead")
		pass(5 * time.Second)
		r.wantDrained("q", "waits")
	})
}

func TestTxKeys(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedQueue("q", "x")
		r.publish("x", "", "replaced", withKey("replaced", 1000))
		r.publish("x", "", "cancelled", withKey("cancelled", 1000))
		r.publish("x", "", "both", withKey("both", 1000))
		tx := r.p.NewTx()
		add := func(body string, o option) {
			m := newMessage("x", "", body, o)
			m.Mandatory = true
			if err := tx.Publish(m); err != nil {
				t.Fatal(err)
			}
			clear(m.Props)
		}
		add("rolled back", cancelOf("replaced"))
		tx.Rollback()
		add("new", withKey("replaced", 2000))
		add("found", cancelOf("cancelled"))
		add("not found", cancelOf("cancelled"))
		add("never there", cancelOf("?"))
		add("first", withKey("both", 2000))
		add("found", cancelOf("both"))
		add("not found any more", cancelOf("both"))
		add("again", withKey("both", 3000))
		add("last", withKey("both", 2000))
		if got := r.vhost.Delayed("x").Count; got != 3 {
			t.Errorf("before the commit: got %d pending", got)
		}
		returned, err := tx.Commit()
		if err != nil {
			t.Fatal(err)
		}
		var bodies []string
		for _, m := range returned {
			bodies = append(bodies, string(m.Body))
			if !m.NotPending {
				t.Errorf("%s: returned as if nobody took it", m.Body)
			}
		}
		wantBodies(t, "returned", bodies, "not found", "never there", "not found any more")
		if got := r.vhost.Delayed("x").Count; got != 2 {
			t.Errorf("got %d pending, want 2", got)
		}
		r.kill() // the commit has waited for the disk
		pass(1500 * time.Millisecond)
		r.wantDrained("q")
		pass(time.Second)
		r.wantDrained("q", "new", "last")
	})
}

// TestKeysInRuns: what the store has moved out of its log is found there.
func TestKeysInRuns(t *testing.T) {
	t.Parallel()
	r := &rig{t: t, dir: t.TempDir(), clock: &steppedClock{}}
	r.options = store.Options{SegmentBytes: 8 << 10, FreshBytes: 8 << 10, RunBytes: 16 << 10, RunBlockBytes: 1 << 10}
	r.start()
	defer r.stop()
	r.delayedExchange("x", "fanout")
	const n = 600
	for i := range n {
		r.publish("x", "", "m", withKey(fmt.Sprint("key ", i), int64(1e9+i)))
	}
	if r.store.Stats().Runs == 0 {
		t.Fatal("there are no runs")
	}
	for i := range n {
		key := fmt.Sprint("key ", i)
		switch i % 3 {
		case 0:
			r.wantCancel("x", key, true)
			r.wantCancel("x", key, false)
		case 1:
			r.publish("x", "", "m", withKey(key, int64(2e9+i)))
		}
	}
	if got := r.vhost.Delayed("x").Count; got != n*2/3 {
		t.Errorf("got %d pending, want %d", got, n*2/3)
	}
	r.crash()
	for i := range n {
		r.wantCancel("x", fmt.Sprint("key ", i), i%3 != 0)
	}
	if got := r.vhost.Delayed("x").Count; got != 0 {
		t.Errorf("got %d pending", got)
	}
}

// TestPublishersWithOneKeyTakeTurns, and nobody else waits for them.
func TestPublishersWithOneKeyTakeTurns(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "fanout")
		hash := keyHash(r.vhost.exchange("x").id, []byte("k"))
		r.turns.take(hash)
		for _, commit := range []bool{false, true} {
			p := r.connect("guest").NewPublisher()
			go func() {
				m, tx := newMessage("x", "", "m", withKey("k", 1000)), p.NewTx()
				if !commit {
					if _, err := p.Publish(m); err != nil {
						t.Error(err)
					}
					return
				}
				if err := tx.Publish(m); err != nil {
					t.Error(err)
				}
				if _, err := tx.Commit(); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		r.publish("x", "", "m", withKey("other", 1000))
		if got := r.vhost.Delayed("x").Count; got != 1 {
			t.Errorf("out of turn: got %d pending", got)
		}
		r.turns.give(hash)
		synctest.Wait()
		if got := r.engine.Stats(); got.Added != 3 || got.Cancelled != 1 {
			t.Errorf("%d added, %d cancelled", got.Added, got.Cancelled)
		}
	})
}

// TestConcurrentPublishesWithOneKey: one of them stands, the one that was logged last.
func TestConcurrentPublishesWithOneKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.delayedExchange("x", "fanout")
	var wg sync.WaitGroup
	for n := range 4 {
		p := r.connect("guest").NewPublisher()
		wg.Go(func() {
			for i := range 100 {
				if n == 0 {
					tx := p.NewTx()
					for _, key := range []string{"k", "other"} {
						if err := tx.Publish(newMessage("x", "", fmt.Sprint(n, " ", i), withKey(key, 1e9))); err != nil {
							t.Error(err)
						}
					}
					if _, err := tx.Commit(); err != nil {
						t.Error(err)
					}
					continue
				}
				if _, err := p.Publish(newMessage("x", "", fmt.Sprint(n, " ", i), withKey("k", 1e9))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	list, err := r.store.List(store.ListOptions{}, nil)
	if err != nil || len(list) != 2 {
		t.Fatalf("got %d pending, %v; want one for each key", len(list), err)
	}
	s := r.engine.Stats()
	if last := max(list[0].Key.Seq, list[1].Key.Seq); last != s.Added {
		t.Errorf("of %d messages number %d is the last that stands", s.Added, last)
	}
	if s.Added != 500 || s.Cancelled != 498 {
		t.Errorf("%d added, %d cancelled, two left", s.Added, s.Cancelled)
	}
}

// TestCancelAgainstTheDueInstant: each message is either released, and nothing was there
// to cancel, or it is not.
func TestCancelAgainstTheDueInstant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.delayedQueue("q", "x")
	f, _ := r.consume("q", -1, ConsumerSpec{NoAck: true})
	const n = 1000
	for i := range n {
		r.publish("x", "", fmt.Sprint(i), withKey(fmt.Sprint(i), int64(1+i/50)))
	}
	released := map[string]bool{}
	for i := range n {
		res := r.publish("x", "", "cancel", cancelOf(fmt.Sprint(i)))
		released[fmt.Sprint(i)] = res.NotPending
	}
	want := 0
	for _, is := range released {
		if is {
			want++
		}
	}
	var got []string
	for len(got) < want {
		got = append(got, f.bodies()...)
		runtime.Gosched()
	}
	for _, body := range append(got, f.bodies()...) {
		if !released[body] {
			t.Errorf("%s was cancelled and released", body)
		}
		delete(released, body)
	}
	for body, is := range released {
		if is {
			t.Errorf("%s was neither cancelled nor released", body)
		}
	}
}
