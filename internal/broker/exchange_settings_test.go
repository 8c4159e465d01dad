package broker

import (
	"testing"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

// delayedWith makes a delayed exchange with more arguments and a queue bound to it by "k".
func (r *rig) delayedWith(name string, more amqp.Table) {
	r.t.Helper()
	args := amqp.Table{argDelayedType: "direct"}
	for k, v := range more {
		args[k] = v
	}
	r.exchange(name, delayedType, args)
	r.queue("q", nil, "durable")
	r.bind("q", name, "k")
}

func TestDelayedExchangeRefusesBeyondItsLimits(t *testing.T) {
	t.Parallel()
	for _, arg := range []amqp.Table{{"x-delayed-max-length": int32(2)}, {"x-delayed-max-length-bytes": int32(150)}} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.delayedWith("x", arg)
			refused := 0
			for range 5 {
				res := r.publish("x", "k", "m", withDelay(1000))
				if res.Rejected {
					refused++
				}
			}
			waiting := int(r.Broker.VHost("/").Delayed("x").Count)
			if waiting != 2 || refused != 3 || r.Stats().DelayedRefused != 3 {
				t.Errorf("%v: got %d waiting, %d refused, want 2 and 3", arg, waiting, refused)
			}
			if res := r.publish("x", "k", "now"); res.Rejected {
				t.Error("a message without delay was refused")
			}
			pass(2 * time.Second)
			if res := r.publish("x", "k", "m", withDelay(1000)); res.Rejected {
				t.Error("refused although nothing waits any more")
			}
		})
	}
}

func TestDelayedLimitByPolicyOnALiveExchange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.delayedWith("x", nil)
	r.publish("x", "k", "a", withDelay(100_000))
	err := r.Broker.VHost("/").SetPolicy(policy.Policy{
		Name: "p", Pattern: "^x$", Definition: policy.Definition{"delayed-max-length": int64(1)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res := r.publish("x", "k", "b", withDelay(100_000)); !res.Rejected {
		t.Error("taken beyond the policy's limit")
	}
}

// stopFor stops the rig, lets time pass and starts it.
func (r *rig) stopFor(d time.Duration) {
	r.stop()
	pass(d)
	r.start()
	pass(time.Millisecond)
}

func TestDelayedLatePolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode       string
		late, dead []string
	}{
		{"deliver", []string{"late", "in time"}, nil},
		{"drop", []string{"in time"}, nil},
		{"dead-letter", []string{"in time"}, []string{"late"}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, r *rig) {
				r.delayedWith("x", amqp.Table{
					"x-delayed-late": c.mode, "x-delayed-late-after": int32(60_000),
					"x-delayed-dead-letter-exchange": "amq.fanout",
				})
				r.queue("dead", nil, "durable")
				r.bind("dead", "amq.fanout", "")
				r.publish("x", "k", "late", withDelay(1000))
				r.publish("x", "k", "in time", withDelay(90_000))
				r.stopFor(100 * time.Second)
				r.wantDrained("q", c.late...)
				r.wantDrained("dead", c.dead...)
				want := uint64(0)
				if c.mode == "drop" {
					want = 1
				}
				if got := r.Stats().LateDropped; got != want {
					t.Errorf("got %d dropped, want %d", got, want)
				}
			})
		})
	}
}

func TestDelayedUnroutableIsDroppedWhereSet(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedWith("x", amqp.Table{"x-delayed-unroutable": "drop"})
		r.publish("x", "nobody", "m", withDelay(1000))
		pass(2 * time.Second)
		if n := r.ParkedTotal(); n != 0 || r.Stats().DelayedDropped != 1 {
			t.Errorf("got %d parked, %d dropped, want 0 and 1", n, r.Stats().DelayedDropped)
		}
	})
}

func TestDelayedArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, v := range map[string]any{
		"x-delayed-max-length": "5", "x-delayed-late": "never", "x-delayed-late-after": int32(-1),
		"x-delayed-unroutable": "lose", "x-delayed-compat": "both", "x-delayed-dead-letter-exchange": int32(1),
	} {
		err := r.ExchangeDeclare(ExchangeSpec{Name: "x", Type: delayedType, Args: amqp.Table{
			argDelayedType: "direct", name: v,
		}})
		wantError(t, err, amqp.PreconditionFailed, "invalid arg '"+name+"' for exchange 'x' in vhost '/'")
	}
}

func TestDelayedKeysMayBeSetByPolicyOrArgument(t *testing.T) {
	t.Parallel()
	for key, value := range map[string]any{
		"delayed-unroutable": "drop", "delayed-late": "drop", "delayed-compat": "plugin",
		"delayed-max-length": int64(0), "delayed-max-length-bytes": int64(0),
		"delayed-late-after": int64(5), "delayed-dead-letter-exchange": "amq.fanout",
	} {
		r := newRig(t)
		settings := func(name string) exchangeSettings { return *r.vhost.exchange(name).settings.Load() }
		r.delayedExchange("plain", "direct")
		r.delayedExchange("by policy", "direct")
		r.exchange("by argument", delayedType, amqp.Table{argDelayedType: "direct", "x-" + key: value})
		r.policy("p", "^by policy$", 0, policy.Definition{key: value})
		if settings("by policy") != settings("by argument") || settings("by policy") == settings("plain") {
			t.Errorf("%s: got %+v by policy, %+v by argument", key, settings("by policy"), settings("by argument"))
		}
		r.crash()
		if settings("by policy") != settings("by argument") || settings("by policy") == settings("plain") {
			t.Errorf("%s: after a crash got %+v by policy, %+v by argument", key, settings("by policy"), settings("by argument"))
		}
	}
}
