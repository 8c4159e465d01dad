package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
	"github.com/google/go-cmp/cmp"
)

// deadTo are queue arguments that dead-letter to an exchange, by default with the own key.
func deadTo(exchange string, more ...any) amqp.Table {
	args := amqp.Table{"x-dead-letter-exchange": exchange}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return args
}

// take gets one message with its headers.
func (r *rig) take(queue string) received {
	r.t.Helper()
	d, _, ok, err := r.find(queue).Get(true)
	if err != nil || !ok {
		r.t.Fatalf("queue %s: got nothing, %v", queue, err)
	}
	return copyDelivery(&d)
}

// reject takes one message and rejects it.
func (r *rig) reject(queue string) {
	r.t.Helper()
	q := r.find(queue)
	d, _, ok, _ := q.Get(false)
	if !ok {
		r.t.Fatalf("queue %s is empty", queue)
	}
	q.Reject([]uint64{d.Pos})
}

func TestRejectedIsDeadLetteredWithHistory(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.exchange("dlx", "fanout", nil)
		r.queue("q", deadTo("dlx"), "durable")
		r.queue("dead", nil, "durable")
		r.bind("dead", "dlx", "")
		r.bind("q", "amq.direct", "k")
		r.publish("amq.direct", "k", "m", withHeaders(amqp.Table{"a": int32(1), "CC": []any{"more"}}))
		r.reject("q")
		got := r.take("dead")
		now := time.Unix(time.Now().Unix(), 0).UTC()
		want := amqp.Table{
			"a": int32(1), "CC": []any{"more"},
			"x-death": []any{amqp.Table{
				"count": int64(1), "reason": "rejected", "queue": "q", "time": now,
				"exchange": "amq.direct", "routing-keys": []any{"k", "more"},
			}},
			"x-first-death-reason": "rejected", "x-first-death-queue": "q", "x-first-death-exchange": "amq.direct",
			"x-last-death-reason": "rejected", "x-last-death-queue": "q", "x-last-death-exchange": "amq.direct",
		}
		if diff := cmp.Diff(want, got.headers); diff != "" {
			t.Errorf("headers (-want +got):\n%s", diff)
		}
		if got.exchange != "dlx" || got.key != "k" || got.body != "m" || got.redelivered {
			t.Errorf("got %+v", got)
		}
		if r.find("q").Messages()+r.find("q").Unacknowledged() != 0 {
			t.Error("the message is still in its queue")
		}
	})
}

func TestXDeathFieldsAreInRabbitMQsOrder(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("dead", nil)
		r.queue("q", deadTo("", "x-dead-letter-routing-key", "dead"))
		r.publish("", "q", "m", withExpiration("5"))
		pass(10 * time.Millisecond)
		got := r.take("dead")
		deaths, _ := got.props.Headers.Lookup("x-death")
		var fields []string
		for v := range deaths.Elements() {
			table, _ := v.Table()
			for key, v := range table.All() {
				fields = append(fields, fmt.Sprintf("%s:%c", key, v.Type))
			}
		}
		want := []string{"count:l", "reason:S", "queue:S", "time:T", "exchange:S", "routing-keys:A", "original-expiration:S"}
		if !slices.Equal(fields, want) {
			t.Errorf("got %v, want %v", fields, want)
		}
	})
}

func TestExpiredLosesExpirationAndKeepsItInHistory(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("dead", nil, "durable")
		r.queue("q", deadTo("", "x-dead-letter-routing-key", "dead"))
		r.publish("", "q", "m", withExpiration("1000"))
		pass(1001 * time.Millisecond)
		pass(time.Hour)
		r.restart()
		pass(time.Millisecond)
		got := r.take("dead")
		if got.props.Has(amqp.FlagExpiration) {
			t.Error("the expiration is still there")
		}
		death := got.headers["x-death"].([]any)[0].(amqp.Table)
		if death["original-expiration"] != "1000" || death["reason"] != "expired" || got.key != "dead" || got.exchange != "" {
			t.Errorf("got %v, key %q", death, got.key)
		}
	})
}

func TestDeathsOfOneQueueAndReasonAreCountedAndMoveToTheFront(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("work", deadTo("", "x-dead-letter-routing-key", "wait"), "durable")
		r.queue("wait", deadTo("", "x-dead-letter-routing-key", "work", "x-message-ttl", int32(1000)), "durable")
		r.publish("", "work", "m")
		for range 3 {
			r.reject("work")
			pass(1001 * time.Millisecond)
		}
		got := r.take("work")
		type seen struct {
			Queue, Reason string
			Count         int64
		}
		var deaths []seen
		for _, d := range got.headers["x-death"].([]any) {
			d := d.(amqp.Table)
			deaths = append(deaths, seen{d["queue"].(string), d["reason"].(string), d["count"].(int64)})
		}
		want := []seen{{"wait", "expired", 3}, {"work", "rejected", 3}}
		if diff := cmp.Diff(want, deaths); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if h := got.headers; h["x-first-death-queue"] != "work" || h["x-last-death-queue"] != "wait" {
			t.Errorf("first %v, last %v", h["x-first-death-queue"], h["x-last-death-queue"])
		}
	})
}

func TestHistorySentByPublisherDoesNotCount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("dead", deadTo("", "x-dead-letter-routing-key", "last"), "durable")
	r.queue("last", nil, "durable")
	r.queue("q", deadTo("", "x-dead-letter-routing-key", "dead"), "durable")
	sent := amqp.Table{
		"x-death":             []any{amqp.Table{"count": int64(41), "queue": "q", "reason": "rejected"}},
		"x-first-death-queue": "made up", "x-last-death-queue": "made up", "a": true,
	}
	r.publish("", "q", "m", withHeaders(sent))
	d, _, _, _ := r.find("q").Get(false)
	if diff := cmp.Diff(sent, copyDelivery(&d).headers); diff != "" {
		t.Errorf("before it died the message is what was sent (-want +got):\n%s", diff)
	}
	r.find("q").Reject([]uint64{d.Pos})
	r.crash() // whose history it is survives
	r.reject("dead")
	got := r.take("last").headers
	deaths := got["x-death"].([]any)
	first := deaths[len(deaths)-1].(amqp.Table)
	if len(deaths) != 2 || first["count"] != int64(1) || got["x-first-death-queue"] != "q" || got["x-last-death-queue"] != "dead" || got["a"] != true {
		t.Errorf("got %v", got)
	}
}

func TestOverflowDropsHeadWithReasonMaxlen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("dead", nil)
	r.queue("q", deadTo("", "x-dead-letter-routing-key", "dead", "x-max-length", int32(2)), "durable")
	for _, body := range []string{"a", "b", "c", "d"} {
		r.publish("", "q", body)
	}
	got := r.take("dead")
	if death := got.headers["x-death"].([]any)[0].(amqp.Table); death["reason"] != "maxlen" || got.body != "a" {
		t.Errorf("got %q, %v", got.body, death)
	}
	r.wantDrained("dead", "b")
	r.wantDrained("q", "c", "d")
	r.queue("bytes", amqp.Table{"x-max-length-bytes": int32(10)})
	for _, body := range []string{"12345", "67890", "x"} {
		r.publish("", "bytes", body)
	}
	r.wantDrained("bytes", "67890", "x")
	r.queue("none", amqp.Table{"x-max-length": int32(0)})
	f, _ := r.consume("none", 1, ConsumerSpec{NoAck: true})
	r.publish("", "none", "delivered")
	r.publish("", "none", "dropped")
	wantBodies(t, "a queue of length 0", f.bodies(), "delivered")
	r.wantReady("none", 0)
}

func TestRejectPublishRefusesAndTheOthersTakeIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("dead", nil)
	r.queue("refusing", amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"})
	r.queue("telling", deadTo("", "x-dead-letter-routing-key", "dead", "x-max-length", int32(1), "x-overflow", "reject-publish-dlx"))
	r.queue("open", nil)
	for _, q := range []string{"refusing", "telling", "open"} {
		r.bind(q, "amq.fanout", "")
	}
	if res := r.publish("amq.fanout", "k", "a"); res.Rejected || !res.Routed {
		t.Errorf("got %+v", res)
	}
	if res := r.publish("amq.fanout", "k", "b"); !res.Rejected || !res.Routed {
		t.Errorf("got %+v", res)
	}
	r.wantDrained("refusing", "a")
	r.wantDrained("telling", "a")
	r.wantDrained("open", "a", "b")
	got := r.take("dead")
	if death := got.headers["x-death"].([]any)[0].(amqp.Table); got.body != "b" || death["reason"] != "maxlen" || death["queue"] != "telling" {
		t.Errorf("got %q, %v", got.body, death)
	}
	if res := r.publish("amq.fanout", "k", "c"); res.Rejected {
		t.Errorf("with room again: got %+v", res)
	}
}

func TestDeadLetterCycleIsDroppedUnlessRejected(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("self", deadTo("", "x-message-ttl", int32(100)))
		r.publish("", "self", "m")
		pass(time.Second)
		r.wantReady("self", 0)
		r.queue("a", deadTo("", "x-dead-letter-routing-key", "b", "x-message-ttl", int32(100)))
		r.queue("b", deadTo("", "x-dead-letter-routing-key", "a", "x-message-ttl", int32(100)))
		r.publish("", "a", "m")
		pass(time.Minute)
		r.wantReady("a", 0)
		r.wantReady("b", 0)
		if got := r.Stats(); got.DeadCycles != 2 || got.Expired != 3 {
			t.Errorf("got %d cycles, %d expired, want 2 and 3", got.DeadCycles, got.Expired)
		}
		r.queue("rejecting", deadTo("", "x-dead-letter-routing-key", "rejecting"))
		r.publish("", "rejecting", "m")
		for range 3 {
			r.reject("rejecting")
		}
		r.wantDrained("rejecting", "m")
	})
}

func TestDeadLetterKeysAndCC(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exchange("dlx", "direct", nil)
	for _, q := range []string{"by key", "by CC", "by new key"} {
		r.queue(q, nil)
		r.bind(q, "dlx", q)
	}
	r.queue("own", deadTo("dlx"))
	r.queue("new", deadTo("dlx", "x-dead-letter-routing-key", "by new key"))
	for _, q := range []string{"own", "new"} {
		r.bind(q, "amq.fanout", "")
	}
	r.publish("amq.fanout", "by key", "m", withHeaders(amqp.Table{"CC": []any{"by CC"}}))
	r.reject("own")
	r.wantDrained("by key", "m")
	r.wantDrained("by CC", "m")
	r.wantReady("by new key", 0)
	r.reject("new")
	got := r.take("by new key")
	if _, ok := got.headers["CC"]; ok || got.key != "by new key" {
		t.Errorf("got key %q, headers %v", got.key, got.headers)
	}
	r.wantReady("by CC", 0)
}

func TestDeadLetterToNowhereIsCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", deadTo("missing"))
	r.queue("p", deadTo("amq.direct"))
	r.publish("", "q", "m")
	r.reject("q")
	r.publish("", "p", "m")
	r.reject("p")
	if got := r.Stats(); got.DeadDropped != 2 || got.DeadLettered != 0 {
		t.Errorf("got %d dropped, %d dead-lettered", got.DeadDropped, got.DeadLettered)
	}
}

func TestDeadLettersDoNotOverfillAQueueThatRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("full", amqp.Table{"x-max-length": int32(2), "x-overflow": "reject-publish"})
	r.queue("q", deadTo("", "x-dead-letter-routing-key", "full", "x-max-length", int32(6)))
	for _, body := range []string{"a", "b", "c", "d", "e", "f"} {
		r.publish("", "q", body)
	}
	var held []uint64
	for range 6 {
		d, _, _, _ := r.find("q").Get(false)
		held = append(held, d.Pos)
	}
	r.find("q").Reject(held)
	r.wantDrained("full", "a", "b")
	if got := r.Stats(); got.DeadDropped != 4 || got.DeadLettered != 2 {
		t.Errorf("got %d dropped, %d dead-lettered", got.DeadDropped, got.DeadLettered)
	}
}

func TestDeadLetterToDelayedExchangeWaitsOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("later", "fanout")
		r.queue("q", deadTo("later"), "durable")
		r.queue("dead", deadTo("later"), "durable")
		r.bind("dead", "later", "")
		r.publish("", "q", "m", withDelay(2000)) // the default exchange does not wait
		r.wantReady("q", 1)
		r.reject("q")
		r.wantReady("dead", 0)
		if got := r.vhost.Delayed("later").Count; got != 1 {
			t.Errorf("got %d pending, want 1", got)
		}
		pass(2010 * time.Millisecond)
		r.wantReady("dead", 1)
		r.reject("dead") // its delay was served
		got := r.take("dead")
		deaths := got.headers["x-death"].([]any)
		if got.headers["x-delay"] != int64(-2000) || len(deaths) != 2 {
			t.Errorf("got %v", got.headers)
		}
	})
}

func TestDeadLettersSurviveCrashExactlyOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", deadTo("", "x-dead-letter-routing-key", "dead"), "durable")
	r.queue("dead", nil, "durable")
	bodies := numbered("m", 500)
	for _, body := range bodies {
		r.publish("", "q", body)
	}
	q := r.find("q")
	var held []uint64
	for range bodies {
		d, _, _, _ := q.Get(false)
		held = append(held, d.Pos)
	}
	q.Reject(held[:250])
	r.crash()
	r.wantDrained("dead", bodies[:250]...)
	r.wantDrained("q", bodies[250:]...)
}

func TestTransientDeadLetters(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", deadTo("amq.fanout"), "durable")
	r.queue("logged", nil, "durable")
	r.queue("not", nil)
	r.bind("logged", "amq.fanout", "")
	r.bind("not", "amq.fanout", "")
	r.publish("", "q", "transient", transient)
	r.publish("", "q", "persistent")
	r.reject("q")
	r.reject("q")
	r.wantDrained("not", "transient", "persistent")
	r.restart()
	r.wantDrained("logged", "persistent")
}

func TestDeadLetterExchangeAndKeyByPolicy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("dead", nil)
	r.queue("other", nil)
	r.queue("q", nil, "durable")
	r.queue("with argument", deadTo("", argDLXKey, "other"), "durable")
	r.policy("p", "^(q|with argument)$", 0, policy.Definition{"dead-letter-exchange": "", "dead-letter-routing-key": "dead"})
	for _, q := range []string{"q", "with argument"} {
		r.publish("", q, q)
		r.reject(q)
	}
	r.wantDrained("dead", "q")
	r.wantDrained("other", "with argument")
	if _, err := r.vhost.DeletePolicy("p"); err != nil {
		t.Fatal(err)
	}
	r.publish("", "q", "dropped")
	r.reject("q")
	r.wantReady("dead", 0)
}

func TestDeadLetterGoesByBCCThatNobodySees(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]int64{"published": 0, "delayed before": 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, r *rig) {
				r.exchange("dlx", "direct", nil)
				r.delayedExchange("x", "direct")
				for _, q := range []string{"k", "cc", "bcc"} {
					r.queue(q, deadTo("last"), "durable")
					r.bind(q, "dlx", q)
				}
				r.exchange("last", "direct", nil)
				r.queue("last", nil, "durable")
				r.bind("last", "last", "bcc")
				r.queue("q", deadTo("dlx"), "durable")
				r.queue("new key", deadTo("dlx", argDLXKey, "k"), "durable")
				r.bind("q", "x", "k")
				r.bind("new key", "x", "bcc")
				m := withHeaders(amqp.Table{"CC": []any{"cc"}, "BCC": []any{"bcc"}, "x-delay": delay})
				r.publish("x", "k", "m", m)
				pass(2 * time.Second)
				r.crash()
				f, c := r.consume("q", 1, ConsumerSpec{})
				if got := f.take(); len(got) != 1 || got[0].headers["BCC"] != nil {
					t.Fatalf("a consumer got %+v, want one message without BCC", got)
				} else {
					r.find("q").Reject([]uint64{got[0].pos})
				}
				c.Cancel()
				for _, q := range []string{"k", "cc", "bcc"} {
					d, _, ok, err := r.find(q).Get(false)
					if err != nil || !ok {
						t.Fatalf("%s got nothing, %v", q, err)
					}
					got := copyDelivery(&d)
					death := got.headers["x-death"].([]any)[0].(amqp.Table)
					want := []any{"k", "cc"}
					if diff := cmp.Diff(want, death["routing-keys"]); diff != "" || got.headers["BCC"] != nil {
						t.Errorf("%s: headers %v, keys (-want +got):\n%s", q, got.headers, diff)
					}
					if q == "k" {
						r.find(q).Reject([]uint64{d.Pos}) // the key stays with the message
					}
				}
				if got := r.take("last"); got.headers["BCC"] != nil {
					t.Errorf("got BCC %v after two deaths", got.headers["BCC"])
				}
				r.reject("new key") // which replaces all the others
				r.wantReady("k", 1)
				r.wantReady("bcc", 0)
				if got := r.take("k").headers; got["CC"] != nil || got["BCC"] != nil {
					t.Errorf("got %v with a new key", got)
				}
			})
		})
	}
}
