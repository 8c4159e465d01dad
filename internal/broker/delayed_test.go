package broker

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
	"github.com/google/go-cmp/cmp"
)

func TestDelayedIsDeliveredWhenDue(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "direct")
		r.queue("q", nil, "durable")
		r.bind("q", "x", "k")
		f, _ := r.consume("q", -1, ConsumerSpec{})
		for _, ms := range []int64{3000, 1000, 2000, 0, -5} {
			res := r.publish("x", "k", strconv.FormatInt(ms, 10), withDelay(ms))
			if !res.Routed || res.LSN == 0 {
				t.Errorf("delay %d: got %+v", ms, res)
			}
		}
		wantBodies(t, "at once", f.bodies(), "0", "-5")
		pass(999 * time.Millisecond)
		wantBodies(t, "early", f.bodies())
		pass(2 * time.Millisecond)
		wantBodies(t, "after a second", f.bodies(), "1000")
		pass(2 * time.Second)
		wantBodies(t, "after three", f.bodies(), "2000", "3000")
	})
}

func TestDelayedShowsNegatedDelayAndNoDeath(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "topic")
		r.queue("q", nil)
		r.bind("q", "x", "a.#")
		r.publish("x", "a.b", "m", withHeaders(amqp.Table{"x-delay": "1500", "z": int32(1)}), withExpiration("60000"))
		pass(1501 * time.Millisecond)
		got := r.take("q")
		if diff := cmp.Diff(amqp.Table{"x-delay": int64(-1500), "z": int32(1)}, got.headers); diff != "" {
			t.Errorf("headers (-want +got):\n%s", diff)
		}
		if got.exchange != "x" || got.key != "a.b" || string(got.props.Expiration) != "60000" || got.redelivered {
			t.Errorf("got %+v", got)
		}
	})
}

func TestDelayedInnerTypes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		for _, kind := range []string{"direct", "fanout", "topic", "headers"} {
			r.delayedExchange(kind, kind)
			r.queue(kind, nil)
			b := Binding{Source: kind, Destination: kind, RoutingKey: "k", Args: amqp.Table{"h": "v"}}
			if err := r.QueueBind(b); err != nil {
				t.Fatal(err)
			}
			r.publish(kind, "k", "m", withHeaders(amqp.Table{"x-delay": int32(10), "h": "v"}))
		}
		pass(11 * time.Millisecond)
		for _, kind := range []string{"direct", "fanout", "topic", "headers"} {
			r.wantDrained(kind, "m")
		}
	})
}

func TestDelayedUsesTheBindingsOfItsTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "direct")
		r.queue("before", nil)
		r.queue("after", nil)
		r.bind("before", "x", "k")
		r.publish("x", "k", "m", withDelay(1000))
		if err := r.QueueUnbind(Binding{Source: "x", Destination: "before", RoutingKey: "k"}); err != nil {
			t.Fatal(err)
		}
		r.bind("after", "x", "k")
		pass(1001 * time.Millisecond)
		r.wantDrained("before")
		r.wantDrained("after", "m")
	})
}

func TestWhatDoesNotWaitIsAsItWasSentBesideADelayedExchange(t *testing.T) {
	t.Parallel()
	for _, inTx := range []bool{false, true} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.delayedExchange("x", "fanout")
			r.queue("now", nil)
			r.queue("later", nil)
			r.bind("now", "amq.fanout", "")
			r.bindExchange("x", "amq.fanout", "")
			r.bind("later", "x", "")
			m := newMessage("amq.fanout", "", "m", withDelay(1000))
			if inTx {
				tx := r.p.NewTx()
				if err := tx.Publish(m); err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
			} else if _, err := r.p.Publish(m); err != nil {
				t.Fatal(err)
			}
			if got := r.take("now").headers["x-delay"]; got != int64(1000) {
				t.Errorf("in tx %v: got x-delay %v, want it as it was sent", inTx, got)
			}
			pass(2 * time.Second)
			if got := r.take("later").headers["x-delay"]; got != int64(-1000) {
				t.Errorf("in tx %v: got x-delay %v after the delay", inTx, got)
			}
		})
	}
}

func TestBadDelayIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.delayedExchange("x", "fanout")
	for _, v := range []any{"soon", true, amqp.Table{}, []any{}, nil, []byte("1")} {
		_, err := r.p.Publish(newMessage("x", "k", "m", withHeaders(amqp.Table{"x-delay": v})))
		wantError(t, err, amqp.PreconditionFailed, "header 'x-delay' has type")
	}
	_, err := r.p.Publish(newMessage("x", "k", "m", withDelay(100*365*24*3600*1000+1)))
	wantError(t, err, amqp.PreconditionFailed, "100 years")
	if got := r.vhost.Delayed("x").Count; got != 0 {
		t.Errorf("got %d pending", got)
	}
}

func TestUnroutableDelayedTakesAlternateExchangeElseIsParked(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("alternate", nil)
		r.bind("alternate", "amq.fanout", "")
		r.exchange("with", delayedType, amqp.Table{"x-delayed-type": "direct", "alternate-exchange": "amq.fanout"})
		r.delayedExchange("without", "direct")
		for _, x := range []string{"with", "without"} {
			if !r.publish(x, "k", x, withDelay(1000)).Routed {
				t.Errorf("%s: an accepted message is not routed", x)
			}
		}
		r.wantReady("alternate", 0)
		pass(1001 * time.Millisecond)
		r.wantDrained("alternate", "with")
		parked := map[string]int{"unroutable": 1}
		if diff := cmp.Diff(parked, r.vhost.Parked()); diff != "" {
			t.Errorf("parked (-want +got):\n%s", diff)
		}
		r.crash()
		if diff := cmp.Diff(parked, r.vhost.Parked()); diff != "" {
			t.Errorf("parked after a crash (-want +got):\n%s", diff)
		}
		if r.publish("without", "k", "now").Routed {
			t.Error("what is not delayed and goes nowhere is routed")
		}
	})
}

func TestParkingIsBoundedAndKeepsTheRestPending(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *rig) {
		r := &rig{t: t, dir: t.TempDir(), clock: &steppedClock{}, limits: Limits{MaxParked: 2}}
		r.start()
		defer r.stop()
		r.delayedExchange("x", "direct")
		for i := range 3 {
			r.publish("x", "k", fmt.Sprint(i), withDelay(1000+int64(i)))
		}
		pass(1500 * time.Millisecond)
		if got, left := r.vhost.Parked()[reasonUnroutable], r.vhost.Delayed("x").Count; got != 2 || left != 1 {
			t.Errorf("got %d parked, %d pending", got, left)
		}
		r.queue("q", nil)
		r.bind("q", "x", "k")
		pass(2 * time.Minute)
		r.wantDrained("q", "2")
	})
}

func TestDeletingDelayedExchangeDropsWhatWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("q", nil, "durable")
		declare := func() {
			r.delayedExchange("x", "fanout")
			r.bind("q", "x", "")
		}
		declare()
		r.publish("x", "k", "ghost", withDelay(1000))
		if err := r.ExchangeDelete("x", true); err == nil {
			t.Error("a bound exchange is not in use")
		}
		if err := r.QueueUnbind(Binding{Source: "x", Destination: "q"}); err != nil {
			t.Fatal(err)
		}
		if err := r.ExchangeDelete("x", true); err != nil { // what waits is no use
			t.Error(err)
		}
		if got, left := r.Stats().DelayedDropped, r.store.PendingTotal().Count; got != 1 || left != 0 {
			t.Errorf("got %d dropped, %d left, want 1 and 0", got, left)
		}
		declare()
		r.publish("x", "k", "real", withDelay(1000))
		r.crash()
		pass(2 * time.Second)
		r.wantDrained("q", "real")
		if got := r.store.PendingTotal().Count; got != 0 {
			t.Errorf("got %d pending", got)
		}
	})
}

func TestDelayedOverExchangeBindings(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("first", "fanout")
		r.delayedExchange("second", "topic")
		r.exchange("plain", "fanout", nil)
		r.exchange("alternating", "direct", amqp.Table{"alternate-exchange": "second"})
		r.queue("q", nil)
		r.queue("direct", nil)
		r.bindExchange("first", "plain", "")
		r.bindExchange("second", "first", "")
		r.bind("q", "second", "#")
		r.bind("direct", "plain", "")
		r.publish("plain", "k", "over three", withDelay(1000))
		r.wantDrained("direct", "over three") // no delay on this way
		r.publish("alternating", "k", "as alternate", withDelay(500))
		pass(501 * time.Millisecond)
		r.wantDrained("q", "as alternate")
		pass(500 * time.Millisecond)
		r.wantDrained("q", "over three") // waited once, not twice
	})
}

func TestDelayedKeepsCCAndBCCUntilRelease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "direct")
		for _, name := range []string{"a", "b", "c"} {
			r.queue(name, nil, "durable")
			r.bind(name, "x", name)
		}
		r.publish("x", "a", "m", withHeaders(amqp.Table{"x-delay": int32(1000), "CC": []any{"b"}, "BCC": []any{"c"}}))
		r.restart()
		pass(1001 * time.Millisecond)
		for _, name := range []string{"a", "b", "c"} {
			got := r.take(name)
			if _, ok := got.headers["BCC"]; ok || got.headers["CC"] == nil || got.body != "m" {
				t.Errorf("%s: got %+v", name, got)
			}
		}
		r.crash()
		for _, name := range []string{"a", "b", "c"} {
			r.wantDrained(name)
		}
	})
}

func TestReleasedFollowsQueueRules(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "fanout")
		r.queue("logged", nil, "durable")
		r.queue("not", nil)
		for _, q := range []string{"logged", "not"} {
			r.bind(q, "x", "")
		}
		r.publish("x", "", "persistent", withDelay(1000))
		r.publish("x", "", "transient", withDelay(1000), transient)
		r.publish("x", "", "short", withDelay(1000), withExpiration("5000"))
		r.crash() // all of them wait as durably
		r.queue("not", nil)
		r.bind("not", "x", "")
		pass(1001 * time.Millisecond)
		r.wantDrained("not", "persistent", "transient", "short")
		r.wantReady("logged", 3)
		pass(4 * time.Second)
		r.wantReady("logged", 3) // expiration counts from arrival
		pass(1100 * time.Millisecond)
		r.wantReady("logged", 2)
		r.crash()
		r.wantDrained("logged", "persistent")
		if got := r.engine.Stats(); got.Dropped != 0 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestReleaseToFullQueueIsTriedAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "direct")
		r.queue("full", amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"}, "durable")
		r.queue("open", nil, "durable")
		r.bind("full", "x", "full")
		r.bind("open", "x", "open")
		r.publish("", "full", "first")
		r.publish("x", "full", "second", withDelay(1000))
		r.publish("x", "open", "other", withDelay(1000))
		pass(1500 * time.Millisecond)
		r.wantDrained("open", "other")
		r.wantDrained("full", "first")
		pass(time.Minute)
		r.wantDrained("full", "second")
	})
}

func TestPendingOfNonDurableExchangeGoesWithTheProcess(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		spec := ExchangeSpec{Name: "x", Type: delayedType, Args: amqp.Table{"x-delayed-type": "fanout"}}
		if err := r.ExchangeDeclare(spec); err != nil {
			t.Fatal(err)
		}
		r.publish("x", "", "m", withDelay(1000))
		r.crash()
		if got := r.store.PendingTotal().Count; got != 0 {
			t.Errorf("got %d pending", got)
		}
		if got := r.Stats().Orphans; got != 1 {
			t.Errorf("got %d orphans", got)
		}
	})
}

func TestOverdueGoOutInDueOrderAfterDowntime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "fanout")
		r.queue("q", nil, "durable")
		r.bind("q", "x", "")
		var want []string
		for i := range 200 {
			ms := (i * 37) % 200
			r.publish("x", "", fmt.Sprintf("%03d", ms), withDelay(int64(1000+ms)))
			want = append(want, fmt.Sprintf("%03d", i))
		}
		r.stop()
		time.Sleep(time.Hour)
		r.start()
		pass(time.Millisecond)
		slices.Sort(want)
		r.wantDrained("q", want...)
	})
}

// TestOverdueAfterACrashIsMarkedRedelivered: it may have been handed over before, by a release
// that the crash undid. After an orderly stop it was not.
func TestOverdueAfterACrashIsMarkedRedelivered(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "fanout")
		r.queue("q", nil, "durable")
		r.bind("q", "x", "")
		for _, tt := range []struct {
			stop func()
			want bool
		}{{r.stop, false}, {r.die, true}} {
			r.publish("x", "", "overdue", withDelay(1000))
			r.publish("x", "", "later", withDelay(5000))
			pass(100 * time.Millisecond) // durable
			tt.stop()
			pass(2 * time.Second)
			r.start()
			pass(time.Millisecond)
			for _, want := range []bool{tt.want, false} {
				d, _, ok, err := r.find("q").Get(true)
				if !ok || err != nil || d.Redelivered != want {
					t.Errorf("got %q, redelivered %v, %v, want %v", d.Record.Body, d.Redelivered, err, want)
				}
				pass(4 * time.Second)
			}
		}
	})
}

// TestReleaseToAWaitingConsumer: the record that was read to route a message goes to a consumer
// with credit as it is, unless consumers get another form of it, and to nobody in place of
// another message that arrives meanwhile.
func TestReleaseToAWaitingConsumer(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string]amqp.Table{
		"as it was read":  {"x-delay": int64(1000)},
		"in another form": {"x-delay": int64(1000), "BCC": []any{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, r *rig) {
				r.delayedExchange("x", "direct")
				r.queue("q", nil, "durable")
				r.bind("q", "x", "k")
				f, _ := r.consume("q", -1, ConsumerSpec{NoAck: true})
				other := r.Session.NewPublisher()
				f.arrived = func(d *Delivery) {
					if string(d.Record.Body) != "released" {
						return
					}
					if _, err := other.Publish(newMessage("", "q", "meanwhile")); err != nil {
						t.Error(err)
					}
				}
				r.publish("x", "k", "released", withHeaders(headers))
				pass(2 * time.Second)
				if len(f.got) != 2 {
					t.Fatalf("got %d messages", len(f.got))
				}
				if got := f.got[0].headers; got["BCC"] != nil || got["x-delay"] != int64(-1000) {
					t.Errorf("headers seen: %v", got)
				}
				wantBodies(t, "q", f.bodies(), "released", "meanwhile")
			})
		})
	}
}

func TestTransientMessagesWaitDurably(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "fanout")
		r.queue("q", nil, "durable")
		r.bind("q", "x", "")
		r.publish("x", "", "m", withDelay(10_000), transient)
		pass(time.Second)
		r.crash()
		pass(10 * time.Second)
		r.wantReady("q", 1)
		r.crash() // in the queue it is transient
		r.wantReady("q", 0)
	})
}

func TestDelayedUsesPolicyAndAlternateExchangeOfItsTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "direct")
		r.queue("q", nil)
		r.bind("q", "amq.fanout", "")
		r.policy("p", "^x$", 0, policy.Definition{"alternate-exchange": "amq.direct"})
		r.publish("x", "nobody", "by the policy of then", withDelay(1000))
		r.policy("p", "^x$", 0, policy.Definition{"alternate-exchange": "amq.fanout", "delayed-unroutable": "drop"})
		pass(1001 * time.Millisecond)
		r.wantDrained("q", "by the policy of then")
		r.publish("x", "nobody", "dropped", withDelay(1000))
		r.policy("p", "^x$", 0, policy.Definition{"delayed-unroutable": "drop"})
		pass(1001 * time.Millisecond)
		if n := r.ParkedTotal(); n != 0 || r.Stats().DelayedDropped != 1 {
			t.Errorf("got %d parked, %d dropped", n, r.Stats().DelayedDropped)
		}
	})
}

// Who published it may have lost the right meanwhile, and may not have the one to publish to where
// it goes from there.
func TestRightsAreNotCheckedAgainAtRelease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("w", "topic")
		r.queue("q", nil)
		r.bindExchange("amq.fanout", "w", "#")
		r.bind("q", "amq.fanout", "")
		users, s := r.limited()
		as := func(p *amqp.Properties) {
			p.UserID = []byte("u")
			p.Set(amqp.FlagUserID)
		}
		p := s.NewPublisher()
		if _, err := p.Publish(newMessage("w", "a.b", "m", withDelay(1000), as)); err != nil {
			t.Fatal(err)
		}
		if _, err := users.DeletePermission("u", "/"); err != nil {
			t.Fatal(err)
		}
		_, err := p.Publish(newMessage("w", "a.b", "m", withDelay(1000), as))
		wantError(t, err, amqp.AccessRefused, "refused")
		pass(2 * time.Second)
		if got := r.take("q"); string(got.props.UserID) != "u" {
			t.Errorf("got user %q", got.props.UserID)
		}
	})
}
