package broker

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

func quorum(more amqp.Table) amqp.Table {
	args := amqp.Table{argQueueType: "quorum"}
	for k, v := range more {
		args[k] = v
	}
	return args
}

// count returns x-delivery-count of a delivery, -1 if it has none.
func count(t testing.TB, d *Delivery) int64 {
	t.Helper()
	var p amqp.Properties
	if err := p.Decode(d.Record.Props); err != nil {
		t.Fatal(err)
	}
	v, ok := p.Headers.Lookup(deliveryCount)
	if !ok {
		return -1
	}
	if v.Type != amqp.TypeInt64 {
		t.Errorf("x-delivery-count has type %c, want l", v.Type)
	}
	n, _ := v.Int()
	return n
}

func TestDeliveryLimitLetsGoOfWhatCameBackTooOften(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"requeue", "return"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.queue("dead", nil, "durable")
			q := r.queue("q", quorum(amqp.Table{argDeliveryLimit: int32(2), argDLX: "", argDLXKey: "dead"}), "durable")
			r.publish("", "q", "a", withHeaders(amqp.Table{"h": "v"}))
			for i := range 3 {
				d, _, ok, err := q.Get(false)
				if err != nil || !ok {
					t.Fatalf("delivery %d: %t, %v", i, ok, err)
				}
				if got := count(t, &d); got != int64(i) || d.Redelivered != (i > 0) {
					t.Errorf("delivery %d: got count %d, redelivered %t", i, got, d.Redelivered)
				}
				if how == "return" {
					q.Return([]uint64{d.Pos})
				} else {
					q.Requeue([]uint64{d.Pos})
				}
			}
			r.wantReady("q", 0)
			death := r.take("dead").headers["x-death"].([]any)[0].(amqp.Table)
			if death["reason"] != "delivery_limit" || death["queue"] != "q" {
				t.Errorf("got death %v, want delivery_limit in q", death)
			}
		})
	}
}

func TestDeliveryLimitIs20UnlessSetAndMinusOneIsNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   amqp.Table
		policy policy.Definition
		want   int64
	}{
		{quorum(nil), nil, 20},
		{quorum(amqp.Table{argDeliveryLimit: int32(-1)}), nil, unset},
		{quorum(amqp.Table{argDeliveryLimit: int32(3)}), nil, 3},
		{quorum(amqp.Table{argDeliveryLimit: int32(30)}), policy.Definition{"delivery-limit": int64(5)}, 5},
		{quorum(nil), policy.Definition{"delivery-limit": int64(-1)}, unset},
		{quorum(amqp.Table{argDeliveryLimit: int32(3)}), policy.Definition{"delivery-limit": int64(-1)}, 3},
		{quorum(amqp.Table{argDeliveryLimit: int32(5000)}), nil, unset}, // more than is counted
		{amqp.Table{}, policy.Definition{"delivery-limit": int64(5)}, unset},
	} {
		if got := newQueueSettings(c.args, c.policy).deliveryLimit; got != c.want {
			t.Errorf("arguments %v, policy %v: got %d, want %d", c.args, c.policy, got, c.want)
		}
	}
}

func TestClassicQueueHasNoDeliveryLimitAndNoCount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil)
	r.publish("", "q", "a")
	for i := range 30 {
		d, _, ok, _ := q.Get(false)
		if !ok || count(t, &d) != -1 {
			t.Fatalf("delivery %d: %t, count %d", i, ok, count(t, &d))
		}
		q.Requeue([]uint64{d.Pos})
	}
}

// As RabbitMQ has it: a consumer sees the count from the second delivery on.
func TestConsumerOfAQuorumQueueSeesTheDeliveryCount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", quorum(nil), "durable")
	f, _ := r.consume("q", -1, ConsumerSpec{})
	r.publish("", "q", "a", withHeaders(amqp.Table{deliveryCount: "publisher's"}))
	for i := range 3 {
		got := f.take()
		if len(got) != 1 {
			t.Fatalf("delivery %d: got %d messages", i, len(got))
		}
		want := "publisher's"
		if i > 0 {
			want = strconv.Itoa(i)
		}
		if v := fmt.Sprint(got[0].headers[deliveryCount]); v != want {
			t.Errorf("delivery %d: got count %q, want %q", i, v, want)
		}
		q.Requeue([]uint64{got[0].pos})
	}
}

func TestDelayedRetryWaitsLongerEachTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		q := r.queue("q", quorum(amqp.Table{
			argDelayedRetry: "all", argDelayedRetryMin: int32(1000), argDelayedRetryMax: int32(2500),
		}), "durable")
		r.publish("", "q", "a")
		for _, wait := range []time.Duration{1000, 2000, 2500, 2500} {
			d, _, ok, _ := q.Get(false)
			if !ok {
				t.Fatal("nothing after the delay")
			}
			q.Requeue([]uint64{d.Pos})
			pass(wait*time.Millisecond - 5*time.Millisecond)
			r.wantReady("q", 0)
			pass(10 * time.Millisecond)
			r.wantReady("q", 1)
		}
	})
}

func TestDelayedRetryTypesTellRefusedFromReturned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode                    string
		refusedWaits, backWaits bool
	}{
		{"disabled", false, false}, {"all", true, true}, {"failed", true, false}, {"returned", false, true},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, r *rig) {
				q := r.queue("q", quorum(nil), "durable")
				q.apply(newQueueSettings(q.args, policy.Definition{
					"delayed-retry-type": c.mode, "delayed-retry-min": int64(1000),
				}))
				for _, step := range []struct {
					back  func([]uint64)
					waits bool
				}{{q.Requeue, c.refusedWaits}, {q.Return, c.backWaits}} {
					r.publish("", "q", "a")
					d, _, _, _ := q.Get(false)
					step.back([]uint64{d.Pos})
					synctest.Wait()
					want := 1
					if step.waits {
						want = 0
					}
					r.wantReady("q", want)
					pass(2 * time.Second)
					r.wantDrained("q", "a")
				}
			})
		})
	}
}

func TestWhatWaitsForARetryExpiresWhenItIsBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		q := r.queue("q", quorum(amqp.Table{argDelayedRetry: "all", argDelayedRetryMin: int32(5000)}), "durable")
		r.publish("", "q", "a", withExpiration("1000"))
		d, _, _, _ := q.Get(false)
		q.Requeue([]uint64{d.Pos})
		pass(4 * time.Second)
		if n := q.Unacknowledged(); n != 1 {
			t.Errorf("got %d waiting, want 1", n)
		}
		pass(2 * time.Second)
		r.wantDrained("q")
		if n := r.Stats().Expired; n != 1 {
			t.Errorf("got %d expired, want 1", n)
		}
	})
}
