package broker

import (
	"math"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

// pluginLike makes a delayed exchange that does as the plugin's, and a queue bound to it by "k".
func (r *rig) pluginLike(name string, more amqp.Table) {
	r.t.Helper()
	args := amqp.Table{"x-delayed-compat": "plugin"}
	for k, v := range more {
		args[k] = v
	}
	r.delayedWith(name, args)
}

func TestPluginCompatIsSetByServerPolicyOrArgument(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		server           bool
		policy, argument string
		want             bool
	}{
		{"nothing", false, "", "", false},
		{"server", true, "", "", true},
		{"policy", false, "plugin", "", true},
		{"argument", false, "", "plugin", true},
		{"a strict policy on a compatible server", true, "strict", "", false},
		{"the argument before the policy", false, "plugin", "strict", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.stop()
			r.compat.Plugin = c.server
			r.start()
			if c.policy != "" {
				err := r.Broker.VHost("/").SetPolicy(policy.Policy{
					Name: "p", Pattern: "^x$", Definition: policy.Definition{"delayed-compat": c.policy},
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			args := amqp.Table{}
			if c.argument != "" {
				args["x-delayed-compat"] = c.argument
			}
			r.delayedWith("x", args)
			if got := !r.publish("x", "k", "m", withDelay(60_000)).Routed; got != c.want {
				t.Errorf("as the plugin: got %v, want %v", got, c.want)
			}
		})
	}
}

func TestPluginCompatPassesAnotherInnerType(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.pluginLike("x", nil)
	for _, inner := range []any{"fanout", "nonsense", int32(1), nil} {
		args := amqp.Table{"x-delayed-compat": "plugin", argDelayedType: inner}
		if inner == nil {
			delete(args, argDelayedType)
		}
		err := r.ExchangeDeclare(ExchangeSpec{Name: "x", Type: delayedType, Durable: true, Args: args})
		if err != nil {
			t.Errorf("inner type %v: got %v", inner, err)
		}
	}
	err := r.ExchangeDeclare(ExchangeSpec{Name: "x", Type: "direct", Durable: true})
	wantError(t, err, amqp.PreconditionFailed, "inequivalent arg 'type'")
	r.delayedExchange("strict", "direct")
	err = r.ExchangeDeclare(ExchangeSpec{Name: "strict", Type: delayedType, Durable: true,
		Args: amqp.Table{argDelayedType: "fanout"}})
	wantError(t, err, amqp.PreconditionFailed, "inequivalent arg 'x-delayed-type'")
}

func TestPluginCompatPassesOnWhatIsNoDelayOfThePlugins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.pluginLike("x", nil)
	for _, v := range []any{
		int64(math.MaxUint32) + 1, int64(math.MaxInt64), "soon", true, math.NaN(), amqp.Table{}, nil,
	} {
		r.publish("x", "k", "m", withHeaders(amqp.Table{"x-delay": v}))
		if got := r.take("q"); got.body != "m" || len(got.headers) != 1 {
			t.Errorf("x-delay %v: got %q with %v, want it at once as it was sent", v, got.body, got.headers)
		}
	}
	for _, h := range []amqp.Table{
		{"x-delay": int64(math.MaxUint32)}, {"x-opt-delivery-delay": int64(math.MaxUint32) + 1},
	} {
		r.publish("x", "k", "m", withHeaders(h))
	}
	r.wantReady("q", 0)
	if got := r.vhost.Delayed("x").Count; got != 2 {
		t.Errorf("got %d waiting, want 2", got)
	}
}

func TestPluginCompatReturnsDelayedAsUnroutable(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.pluginLike("x", nil)
		if r.publish("x", "k", "m", withDelay(1000)).Routed {
			t.Error("a delayed message counts as routed")
		}
		if !r.publish("x", "k", "now").Routed {
			t.Error("a message without delay does not count as routed")
		}
		if !r.publish("x", "k", "keyed", withHeaders(amqp.Table{"x-delay": int32(1000), "x-delay-key": "a"})).Routed {
			t.Error("a message with a key does not count as routed")
		}
		pass(2 * time.Second)
		r.wantDrained("q", "now", "m", "keyed")
	})
}

func TestPluginCompatGivesTheAlternateExchangeACopyAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("alternate", nil)
		r.bind("alternate", "amq.fanout", "")
		r.pluginLike("x", amqp.Table{"alternate-exchange": "amq.fanout"})
		if !r.publish("x", "k", "m", withDelay(1000)).Routed {
			t.Error("what the alternate exchange takes does not count as routed")
		}
		if got := r.take("alternate"); got.body != "m" || got.headers["x-delay"] != int64(1000) {
			t.Errorf("got %q with %v, want an undelayed copy", got.body, got.headers)
		}
		pass(2 * time.Second)
		r.wantDrained("q", "m")
		r.wantReady("alternate", 0)
	})
}

func TestPluginCompatStoresBeforeCommitAndRollbackDoesNotUndo(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"commit", "rollback"} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.pluginLike("x", nil)
			r.bind("q", "amq.direct", "k")
			tx := r.p.NewTx()
			m := newMessage("x", "k", "delayed", withDelay(1000))
			m.Mandatory = true
			for _, m := range []*Message{m, newMessage("amq.direct", "k", "other")} {
				if err := tx.Publish(m); err != nil {
					t.Fatal(err)
				}
			}
			if got := r.vhost.Delayed("x").Count; got != 1 {
				t.Errorf("%s: got %d waiting before it, want 1", end, got)
			}
			want := []string{"delayed"}
			if end == "commit" {
				returned, err := tx.Commit()
				if err != nil || len(returned) != 1 {
					t.Errorf("got %d returned and %v, want 1", len(returned), err)
				}
				want = []string{"other", "delayed"}
			} else {
				tx.Rollback()
			}
			pass(2 * time.Second)
			r.wantDrained("q", want...)
		})
	}
}

func TestPluginCompatHandsGhostsToTheNextExchangeOfThatName(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.pluginLike("x", nil)
		r.publish("x", "k", "early", withDelay(1000))
		r.publish("x", "k", "late", withDelay(60_000))
		if err := r.ExchangeDelete("x", false); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		if got := r.Stats().DelayedDropped; got != 1 {
			t.Errorf("got %d dropped, want the one that was due when there was no exchange", got)
		}
		r.crash()
		r.pluginLike("x", nil)
		r.publish("x", "k", "new", withDelay(120_000))
		if got := r.vhost.Delayed("x").Count; got != 2 {
			t.Errorf("got %d waiting, want the ghost and the new one", got)
		}
		pass(3 * time.Minute)
		r.wantDrained("q", "late", "new")
	})
}

func TestPluginCompatDropsWhatNobodyTakes(t *testing.T) {
	t.Parallel()
	for mode, parked := range map[string]int{"": 0, "park": 1} {
		inBubble(t, func(t *testing.T, r *rig) {
			args := amqp.Table{}
			if mode != "" {
				args["x-delayed-unroutable"] = mode
			}
			r.pluginLike("x", args)
			r.publish("x", "nobody", "m", withDelay(1000))
			pass(2 * time.Second)
			if n := r.ParkedTotal(); n != parked || r.Stats().DelayedDropped != uint64(1-parked) {
				t.Errorf("%q: got %d parked, %d dropped", mode, n, r.Stats().DelayedDropped)
			}
		})
	}
}

func TestPluginCompatPassesFullQueues(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.pluginLike("x", nil)
		r.queue("full", amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"}, "durable")
		r.bind("full", "x", "k")
		r.bind("full", "x", "alone")
		r.publish("", "full", "first")
		r.publish("x", "k", "both", withDelay(1000))
		r.publish("x", "alone", "alone", withDelay(1000))
		pass(2 * time.Second)
		r.wantDrained("q", "both")
		r.wantDrained("full", "first")
		if got := r.Stats().DelayedDropped; got != 1 || r.vhost.Delayed("x").Count != 0 {
			t.Errorf("got %d dropped, want 1, and %d waiting", got, r.vhost.Delayed("x").Count)
		}
	})
}
