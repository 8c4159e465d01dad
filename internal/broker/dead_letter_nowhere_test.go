package broker

import (
	"log/slog"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
	"github.com/google/go-cmp/cmp"
)

// parkedLetters takes out what is parked as a dead letter.
func (r *rig) parkedLetters() []received {
	r.t.Helper()
	q := r.vhost.parked[reasonDeadLetter]
	if q == nil {
		return nil
	}
	var letters []received
	for {
		d, _, ok, err := q.Get(true)
		if err != nil {
			r.t.Fatal(err)
		}
		if !ok {
			return letters
		}
		letters = append(letters, copyDelivery(&d))
	}
}

func TestUnroutableDeadLetterIsParkedWhereSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, dlx, by string
	}{
		{"missing exchange, argument", "missing", "argument"},
		{"missing exchange, policy", "missing", "policy"},
		{"no binding, argument", "amq.direct", "argument"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, r *rig) {
				args := deadTo(c.dlx, "x-message-ttl", int32(1000))
				if c.by == "argument" {
					args[argDLXUnroutable] = "park"
				}
				r.queue("q", args, "durable")
				if c.by == "policy" {
					err := r.vhost.SetPolicy(policy.Policy{Name: "p", Pattern: "^q$",
						Definition: policy.Definition{"dead-letter-unroutable": "park"}})
					if err != nil {
						t.Fatal(err)
					}
				}
				r.publish("", "q", "expired")
				r.publish("", "q", "transient", transient)
				pass(2 * time.Second)
				r.publish("", "q", "rejected")
				r.reject("q")
				r.crash()
				if diff := cmp.Diff(map[string]int{"dead-letter": 3}, r.vhost.Parked()); diff != "" {
					t.Fatalf("parked (-want +got):\n%s", diff)
				}
				got := r.parkedLetters()
				for i, want := range []string{"expired", "transient", "rejected"} {
					deaths, _ := got[i].headers["x-death"].([]any)
					if got[i].body != want || got[i].exchange != c.dlx || len(deaths) != 1 {
						t.Errorf("got %q to exchange %q with %v", got[i].body, got[i].exchange, got[i].headers)
					}
				}
			})
		})
	}
}

func TestUnroutableDeadLettersAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", deadTo("missing", argDLXUnroutable, "park"), "durable")
	r.queue("drops", deadTo("missing", argDLXUnroutable, "drop"), "durable")
	for _, q := range []string{"q", "drops"} {
		r.publish("", q, "m")
		r.reject(q)
	}
	if got := r.Stats(); got.DeadParked != 1 || got.DeadDropped != 1 || got.DeadLettered != 0 {
		t.Errorf("got %d parked, %d dropped, %d dead-lettered, want 1, 1 and 0",
			got.DeadParked, got.DeadDropped, got.DeadLettered)
	}
}

func TestDeadLettersStayWhenParkingIsFull(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.stop()
		r.limits.MaxParked = 2
		r.start()
		r.queue("q", deadTo("missing", argDLXUnroutable, "park", "x-message-ttl", int32(1000)), "durable")
		for range 3 {
			r.publish("", "q", "m")
		}
		pass(3 * time.Second)
		if got := r.find("q").Unacknowledged(); got != 1 || r.vhost.Parked()["dead-letter"] != 2 {
			t.Errorf("got %d that stay and %v parked, want 1 and 2", got, r.vhost.Parked())
		}
		r.parkedLetters()
		pass(2 * time.Second)
		if got := r.find("q").Unacknowledged(); got != 0 {
			t.Errorf("got %d that stay although there is room", got)
		}
		if got := r.Stats().Expired; got != 3 {
			t.Errorf("got %d expired, want 3: a second attempt is no second death", got)
		}
	})
}

// atLeastOnce are queue arguments of a source whose dead letters go to a queue.
func atLeastOnce(target string, more ...any) amqp.Table {
	return deadTo("", append(more, argDLXKey, target, argDLXStrategy, "at-least-once")...)
}

func TestAtLeastOnceDeadLetterWaitsForAFullTarget(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{"classic", "quorum"} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.queue("dead", amqp.Table{"x-max-length": int32(2), "x-overflow": "reject-publish"}, "durable")
			r.queue("q", atLeastOnce("dead", "x-queue-type", queueType, "x-message-ttl", int32(1000)), "durable")
			for _, body := range []string{"a", "b", "c", "d"} {
				r.publish("", "q", body)
			}
			pass(2 * time.Second)
			if got := r.Stats(); got.DeadDropped != 0 || got.DeadLettered != 2 {
				t.Errorf("%s: got %d dropped, %d dead-lettered, want 0 and 2", queueType, got.DeadDropped, got.DeadLettered)
			}
			r.crash() // the source has what the target has not
			pass(2 * time.Second)
			r.wantDrained("dead", "a", "b")
			pass(2 * time.Second)
			r.wantDrained("dead", "c", "d")
			if q := r.find("q"); q.Messages()+q.Unacknowledged() != 0 {
				t.Errorf("%s: something is left in the source", queueType)
			}
		})
	}
}

func TestAtLeastOnceDeadLetterWaitsForItsExchange(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("q", deadTo("dlx", argDLXStrategy, "at-least-once"), "durable")
		r.publish("", "q", "m")
		r.reject("q")
		pass(5 * time.Second)
		r.exchange("dlx", "fanout", nil)
		pass(5 * time.Second)
		r.queue("dead", nil, "durable")
		r.bind("dead", "dlx", "")
		pass(2 * time.Second)
		got := r.take("dead")
		if deaths := got.headers["x-death"].([]any); deaths[0].(amqp.Table)["count"] != int64(1) {
			t.Errorf("got %v, want one death", deaths)
		}
	})
}

func TestAtLeastOnceDeadLetterReachesAllTargetsOrNone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("full", amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"}, "durable")
		r.queue("open", nil, "durable")
		r.bind("full", "amq.fanout", "")
		r.bind("open", "amq.fanout", "")
		r.publish("", "full", "first")
		r.queue("q", deadTo("amq.fanout", argDLXStrategy, "at-least-once"), "durable")
		r.publish("", "q", "m")
		r.reject("q")
		pass(3 * time.Second)
		r.wantReady("open", 0)
		r.wantDrained("full", "first")
		pass(2 * time.Second)
		r.wantDrained("open", "m")
		r.wantDrained("full", "m")
	})
}

func TestAtLeastOnceIsForDurableQueuesAndKeepsTheirLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	full := amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish"}
	r.queue("dead", full, "durable")
	r.queue("transient", atLeastOnce("dead"))
	r.queue("limited", atLeastOnce("dead", "x-max-length", int32(1)), "durable")
	r.publish("", "transient", "m")
	r.reject("transient")
	r.publish("", "limited", "a")
	r.publish("", "limited", "b")
	for _, name := range []string{"transient", "limited"} {
		if got := r.find(name).Unacknowledged(); got != 0 {
			t.Errorf("%s: got %d that stay", name, got)
		}
	}
	if got := r.Stats().DeadDropped; got != 2 {
		t.Errorf("got %d dropped, want 2", got)
	}
}

func TestDeadLetterToAMissingExchangeIsLoggedOncePerQueue(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"drop", "park"} {
		r := newRig(t)
		r.stop()
		log := &loggedText{}
		r.log = slog.New(slog.NewTextHandler(log, nil))
		r.start()
		r.queue("a", deadTo("missing", argDLXUnroutable, how), "durable")
		r.queue("b", deadTo("missing", argDLXUnroutable, how), "durable")
		for _, q := range []string{"a", "a", "b"} {
			r.publish("", q, "m")
			r.reject(q)
		}
		r.stop()
		for _, q := range []string{"a", "b"} {
			if lines := log.lines(" queue=" + q + " exchange=missing"); len(lines) != 1 {
				t.Errorf("%s: got %d lines about queue %s, want 1: %q", how, len(lines), q, lines)
			}
		}
	}
}

func TestClientSentXDeathIsContinuedWhereSet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.stop()
	r.compat.ClientDeaths = true
	r.start()
	r.queue("q", deadTo("", argDLXKey, "dead"), "durable")
	r.queue("dead", nil, "durable")
	r.publish("", "q", "m", withHeaders(amqp.Table{
		"x-death": []any{amqp.Table{"count": int64(41), "queue": "q", "reason": "rejected"}},
	}))
	r.reject("q")
	got := r.take("dead").headers
	first := got["x-death"].([]any)[0].(amqp.Table)
	if first["count"] != int64(42) || got["x-first-death-queue"] != "q" || got["x-last-death-queue"] != "q" {
		t.Errorf("got %v", got)
	}
	r.publish("", "q", "m", withHeaders(amqp.Table{"x-death": "nonsense"}))
	r.reject("q")
	if deaths, _ := r.take("dead").headers["x-death"].([]any); len(deaths) != 1 {
		t.Errorf("got %v, want what was no history replaced", deaths)
	}
}

func TestDeadLetterCycleIsCountedAndLoggedOncePerQueue(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *rig) {
		log := &loggedText{}
		r := &rig{t: t, dir: t.TempDir(), clock: &steppedClock{}, log: slog.New(slog.NewTextHandler(log, nil))}
		r.start()
		defer r.stop()
		r.queue("self", deadTo("", "x-message-ttl", int32(100)), "durable")
		for range 3 {
			r.publish("", "self", "m")
			pass(time.Second)
		}
		lines := log.lines("they would go round for ever")
		if got := r.Stats().DeadCycles; got != 3 || len(lines) != 1 {
			t.Errorf("got %d cycles and %d lines, want 3 and 1: %q", got, len(lines), lines)
		}
	})
}
