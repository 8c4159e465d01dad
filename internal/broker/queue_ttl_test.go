package broker

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

// inBubble runs a test with a rig in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		test(t, r)
		r.stop()
	})
}

// pass lets virtual time pass and what falls due in it happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func ttl(ms int64) amqp.Table { return amqp.Table{"x-message-ttl": ms} }

// wantReady checks how many messages are ready.
func (r *rig) wantReady(queue string, want int) {
	r.t.Helper()
	if got := r.find(queue).Messages(); got != want {
		r.t.Errorf("queue %s: got %d ready, want %d", queue, got, want)
	}
}

func TestQueueTTLExpiresOnTimeWithoutConsumers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("q", ttl(1000), "durable")
		r.publish("", "q", "a")
		pass(600 * time.Millisecond)
		r.publish("", "q", "b")
		pass(399 * time.Millisecond)
		r.wantReady("q", 2)
		pass(2 * time.Millisecond)
		r.wantReady("q", 1)
		pass(600 * time.Millisecond)
		r.wantReady("q", 0)
		if got := r.Stats().Expired; got != 2 {
			t.Errorf("got %d expired, want 2", got)
		}
	})
}

func TestTTLEndsNoFractionOfAMillisecondEarly(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("q", ttl(1000))
		pass(700 * time.Microsecond)
		r.publish("", "q", "a")
		pass(time.Second - 100*time.Microsecond)
		r.wantReady("q", 1)
		pass(time.Millisecond)
		r.wantReady("q", 0)
	})
}

func TestMessageTTLExpiresAnywhereInTheQueue(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("q", nil)
		r.publish("", "q", "for ever")
		r.publish("", "q", "long", withExpiration("60000"))
		for range 1000 {
			r.publish("", "q", "short", withExpiration("1000"))
		}
		pass(999 * time.Millisecond)
		r.wantReady("q", 1002)
		pass(2 * time.Millisecond)
		r.wantReady("q", 2)
		pass(time.Minute)
		r.wantDrained("q", "for ever")
	})
}

func TestLowestTTLWins(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("q", ttl(2000))
		r.publish("", "q", "queue's", withExpiration("5000"))
		r.publish("", "q", "its own", withExpiration("1000"))
		pass(1500 * time.Millisecond)
		r.wantReady("q", 1)
		pass(time.Second)
		r.wantReady("q", 0)
	})
}

func TestManyTTLsEachOnTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("q", nil)
		rng := rand.New(rand.NewPCG(1, 2))
		var ends []int
		for range 3000 {
			ms := 1 + rng.IntN(5000)
			ends = append(ends, ms)
			r.publish("", "q", "m", transient, withExpiration(strconv.Itoa(ms)))
		}
		slices.Sort(ends)
		for at := 500; at <= 5000; at += 500 {
			pass(500 * time.Millisecond)
			left, _ := slices.BinarySearch(ends, at+1)
			r.wantReady("q", len(ends)-left)
		}
	})
}

func TestZeroTTLIsDeliveredAtOnceOrExpires(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    amqp.Table
		options []option
	}{
		"of the queue":   {ttl(0), nil},
		"of the message": {nil, []option{withExpiration("0")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			q := r.queue("q", c.args)
			r.publish("", "q", "to nobody", c.options...)
			r.wantReady("q", 0)
			f, _ := r.consume("q", 1, ConsumerSpec{})
			r.publish("", "q", "to one with credit", c.options...)
			r.publish("", "q", "to one without", c.options...)
			got := f.take()
			if len(got) != 1 || got[0].body != "to one with credit" {
				t.Fatalf("got %+v", got)
			}
			r.wantReady("q", 0)
			q.Requeue([]uint64{got[0].pos}) // its time is over
			r.wantReady("q", 0)
			if got := r.Stats().Expired; got != 3 {
				t.Errorf("got %d expired, want 3", got)
			}
		})
	}
}

func TestUnacknowledgedDoNotExpireUntilRequeued(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("uniform", ttl(1000))
		r.queue("mixed", nil)
		for _, name := range []string{"uniform", "mixed"} {
			q := r.find(name)
			r.publish("", name, "a", withExpiration("1000"))
			r.publish("", name, "b", withExpiration("1000"))
			d, _, _, _ := q.Get(false)
			pass(500 * time.Millisecond)
			q.Requeue([]uint64{d.Pos}) // keeps its end
			d, _, _, _ = q.Get(false)
			if string(d.Record.Body) != "a" || !d.Redelivered {
				t.Errorf("%s: got %q", name, d.Record.Body)
			}
			pass(time.Second)
			if q.Unacknowledged() != 1 || q.Messages() != 0 {
				t.Errorf("%s: got %d held, %d ready", name, q.Unacknowledged(), q.Messages())
			}
			q.Requeue([]uint64{d.Pos})
			if q.Unacknowledged() != 0 || q.Messages() != 0 {
				t.Errorf("%s: after requeue got %d held, %d ready", name, q.Unacknowledged(), q.Messages())
			}
		}
	})
}

// steppedClock is the machine's clock with a step that can be changed.
type steppedClock struct{ step atomic.Int64 }

func (c *steppedClock) Now() time.Time { return time.Now().Round(0).Add(time.Duration(c.step.Load())) }

func TestExpiredIsNeverDeliveredEvenIfNobodyNoticed(t *testing.T) {
	t.Parallel()
	clock := &steppedClock{}
	r := &rig{t: t, dir: t.TempDir(), clock: clock}
	r.start()
	t.Cleanup(r.stop)
	r.queue("q", ttl(60_000))
	r.queue("p", nil)
	r.publish("", "q", "a")
	r.publish("", "p", "a", withExpiration("60000"))
	clock.step.Store(int64(time.Hour)) // no alarm goes off by itself before the next look
	for _, name := range []string{"q", "p"} {
		if got := r.get(name); got != "" {
			t.Errorf("got the expired %q", got)
		}
	}
	r.publish("", "q", "b")
	f, _ := r.consume("q", -1, ConsumerSpec{})
	wantBodies(t, "consumer", f.bodies(), "b")
}

func TestClockSetBackDoesNotMakeMessagesStick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := &steppedClock{}
		r := &rig{t: t, dir: t.TempDir(), clock: clock}
		r.start()
		r.queue("q", ttl(1000))
		r.publish("", "q", "before")
		clock.step.Store(int64(-time.Hour))
		r.alarms.Recheck()
		r.publish("", "q", "after")
		pass(1001 * time.Millisecond)
		r.wantReady("q", 1)
		r.wantDrained("q", "before") // its end is an hour ahead by the new clock
		r.stop()
	})
}

func TestTTLGoesOnAfterRestart(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("uniform", ttl(10_000), "durable")
		r.queue("mixed", nil, "durable")
		for _, q := range []string{"uniform", "mixed"} {
			r.publish("", q, "a", withExpiration("20000"))
			r.publish("", q, "b", withExpiration("6000"))
			r.publish("", q, "over before the start", withExpiration("3000"))
		}
		r.stop()
		time.Sleep(4 * time.Second)
		r.start()
		pass(1900 * time.Millisecond)
		r.wantReady("uniform", 2)
		r.wantReady("mixed", 2)
		pass(200 * time.Millisecond)
		r.wantReady("uniform", 1)
		r.wantReady("mixed", 1)
		pass(4 * time.Second)
		r.wantReady("uniform", 0)
		r.wantReady("mixed", 1)
	})
}

func TestExpirationMustBeANumber(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil)
	for _, c := range []struct{ expiration, text string }{
		{"", "invalid expiration '': no_integer"},
		{"soon", "invalid expiration 'soon': no_integer"},
		{"-1", "invalid expiration '-1': {value_negative,-1}"},
		{"10s", `invalid expiration '10s': {leftover_string,"s"}`},
		{"1.5", `{leftover_string,".5"}`},
		{"315360000001", "{value_too_large,315360000001}"},
		{"99999999999999999999999999", "{value_too_large,"},
	} {
		_, err := r.p.Publish(newMessage("", "q", "m", withExpiration(c.expiration)))
		wantError(t, err, amqp.PreconditionFailed, c.text)
	}
	r.publish("", "q", "m", withExpiration("315360000000"))
	r.wantReady("q", 1)
}

func TestSettledMessagesDoNotFillTheExpiryHeap(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil)
	r.consume("q", -1, ConsumerSpec{NoAck: true})
	for range 5000 {
		r.publish("", "q", "m", transient, withExpiration("86400000"))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.expires) > 2*blockSize {
		t.Errorf("got %d entries for an empty queue", len(q.expires))
	}
}

func TestUnusedQueueExpires(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		args := amqp.Table{"x-expires": int32(1000), "x-dead-letter-exchange": "amq.fanout"}
		r.queue("dead", nil)
		r.bind("dead", "amq.fanout", "")
		gone := func() bool { return r.vhost.queue("q") == nil }
		r.queue("q", args, "durable")
		r.publish("", "q", "not dead-lettered") // publishing is no use
		pass(900 * time.Millisecond)
		r.queue("q", args, "durable") // declaring is
		pass(900 * time.Millisecond)
		_, _, _, _ = r.find("q").Get(false) // getting is
		pass(900 * time.Millisecond)
		_, c := r.consume("q", 0, ConsumerSpec{}) // and a consumer
		pass(time.Hour)
		c.Cancel()
		pass(999 * time.Millisecond)
		if gone() {
			t.Fatal("the queue went too early")
		}
		pass(2 * time.Millisecond)
		if !gone() {
			t.Fatal("the queue did not go")
		}
		r.wantReady("dead", 0)
		if got := r.Stats().ExpiredQueues; got != 1 {
			t.Errorf("got %d expired queues", got)
		}
	})
}

func TestZeroTTLThatNobodyTakesIsDeadLettered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("dead", nil)
	r.queue("q", deadTo("", argDLXKey, "dead"), "durable")
	r.publish("", "q", "m", withExpiration("0"))
	got := r.take("dead")
	death := got.headers["x-death"].([]any)[0].(amqp.Table)
	if got.body != "m" || death["reason"] != "expired" || death["original-expiration"] != "0" {
		t.Errorf("got %q with %v", got.body, death)
	}
}

func TestLowestOfMessageQueueAndPolicyTTLWins(t *testing.T) {
	t.Parallel()
	for i, c := range []struct{ message, queue, policy, want int64 }{
		{1000, 2000, 3000, 1000}, {3000, 1000, 2000, 1000}, {2000, 3000, 1000, 1000},
		{-1, 3000, 1000, 1000}, {-1, -1, 1000, 1000}, {1000, -1, 3000, 1000},
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			var args amqp.Table
			if c.queue >= 0 {
				args = ttl(c.queue)
			}
			r.queue("q", args)
			r.policy("p", "^q$", 0, policy.Definition{"message-ttl": c.policy})
			var options []option
			if c.message >= 0 {
				options = append(options, withExpiration(strconv.FormatInt(c.message, 10)))
			}
			r.publish("", "q", "m", options...)
			pass(time.Duration(c.want-1) * time.Millisecond)
			before := r.find("q").Messages()
			pass(2 * time.Millisecond)
			if after := r.find("q").Messages(); before != 1 || after != 0 {
				t.Errorf("case %d: got %d just before the end and %d after it", i, before, after)
			}
		})
	}
}

func TestPassiveDeclareIsAUseForExpires(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("q", amqp.Table{"x-expires": int32(1000)})
		for range 5 {
			pass(900 * time.Millisecond)
			if _, err := r.QueueDeclare(QueueSpec{Name: "q", Passive: true}); err != nil {
				t.Fatal(err)
			}
		}
		pass(1001 * time.Millisecond)
		if r.vhost.queue("q") != nil {
			t.Error("the queue did not go")
		}
	})
}

func TestExpiresBeginsAnewAfterARestart(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("argument", amqp.Table{"x-expires": int32(10_000)}, "durable")
		r.queue("policy", nil, "durable")
		r.policy("p", "^policy$", 0, policy.Definition{"expires": int64(10_000)})
		pass(9 * time.Second)
		r.stop()
		time.Sleep(time.Hour)
		r.start()
		pass(9 * time.Second)
		if r.vhost.queue("argument") == nil || r.vhost.queue("policy") == nil {
			t.Error("a queue went although it could not be used")
		}
		pass(2 * time.Second)
		if r.vhost.queue("argument") != nil || r.vhost.queue("policy") != nil {
			t.Error("a queue did not go")
		}
	})
}
