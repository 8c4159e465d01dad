package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
	"github.com/duepost/duepost/internal/store"
)

func TestPolicyLowersTTLAndWhatIsOverdueGoesNow(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		q := r.queue("q", ttl(60_000))
		r.publish("", "q", "old")
		pass(10 * time.Second)
		r.publish("", "q", "new")
		q.setPolicy(policy.Definition{"message-ttl": int64(5000)})
		synctest.Wait()
		r.wantReady("q", 1)
		pass(6 * time.Second)
		r.wantReady("q", 0)
	})
}

func TestPolicyGivesTTLToAQueueWithoutOne(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		q := r.queue("q", nil)
		r.publish("", "q", "a")
		pass(time.Second)
		q.setPolicy(policy.Definition{"message-ttl": int64(3000)})
		pass(1990 * time.Millisecond)
		r.wantReady("q", 1)
		pass(20 * time.Millisecond)
		r.wantReady("q", 0)
	})
}

func TestPolicyTakenAwayLetsMessagesLive(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		q := r.queue("q", nil)
		q.setPolicy(policy.Definition{"message-ttl": int64(3000)})
		r.publish("", "q", "queue's")
		r.publish("", "q", "own", withExpiration("4000"))
		q.setPolicy(nil)
		pass(time.Minute)
		r.wantDrained("q", "queue's")
	})
}

// A clock set back puts messages behind those of a later hour; they keep to the TTL in force.
func TestPolicyChangesTTLOfMessagesOutOfOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		policy policy.Definition
		after  time.Duration // then the messages that arrived early by the clock are gone
		want   int           // and these are left
	}{
		{"lowered", policy.Definition{"message-ttl": int64(2000)}, 3 * time.Second, 1},
		{"raised", policy.Definition{"message-ttl": int64(60_000)}, 30 * time.Second, 2},
		{"taken away", nil, 2 * time.Hour, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, r *rig) {
				q := r.queue("q", nil)
				q.setPolicy(policy.Definition{"message-ttl": int64(10_000)})
				now := r.nowMillis()
				q.push(q.reserve(nil), memoryEntry(r, now+3_600_000), noTTL, nil)
				q.push(q.reserve(nil), memoryEntry(r, now), noTTL, nil)
				q.setPolicy(c.policy)
				pass(c.after)
				r.wantReady("q", c.want)
			})
		})
	}
}

func TestPolicyLowersLengthAndTheHeadIsDeadLettered(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("dead", nil)
		q := r.queue("q", nil)
		for _, body := range []string{"a", "b", "c", "d"} {
			r.publish("", "q", body)
		}
		q.setPolicy(policy.Definition{
			"max-length": int64(2), "dead-letter-exchange": "", "dead-letter-routing-key": "dead",
		})
		synctest.Wait()
		r.wantDrained("dead", "a", "b")
		r.wantDrained("q", "c", "d")
	})
}

func TestPolicyChangesOverflowOfAFullQueue(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		q := r.queue("q", amqp.Table{argMaxLength: int32(1)})
		r.publish("", "q", "a")
		q.setPolicy(policy.Definition{"overflow": "reject-publish"})
		if res := r.publish("", "q", "b"); !res.Rejected {
			t.Error("a full queue took a message although its policy refuses it")
		}
		r.wantDrained("q", "a")
	})
}

func TestPolicyBeginsTheTimeOfExpires(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		q := r.queue("q", nil)
		pass(time.Hour)
		q.setPolicy(policy.Definition{"expires": int64(1000)})
		pass(990 * time.Millisecond)
		r.find("q")
		pass(20 * time.Millisecond)
		if _, err := r.Session.Queue("q"); err == nil {
			t.Error("queue is there after its policy's expires")
		}
	})
}

func TestLowerOfArgumentAndPolicyHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		argument, policy any
		want             int64
	}{
		{nil, nil, unset},
		{int32(5), nil, 5},
		{nil, int64(5), 5},
		{int32(5), int64(7), 5},
		{int64(7), int64(5), 5},
		{int64(0), int64(5), 0},
		{int64(-1), int64(5), 5},
	} {
		e := effective{args: amqp.Table{}, policy: policy.Definition{}}
		if c.argument != nil {
			e.args["x-max-length"] = c.argument
		}
		if c.policy != nil {
			e.policy["max-length"] = c.policy
		}
		if got := e.least("max-length"); got != c.want {
			t.Errorf("argument %v, policy %v: got %d, want %d", c.argument, c.policy, got, c.want)
		}
	}
}

func TestArgumentWinsOverPolicyText(t *testing.T) {
	t.Parallel()
	args := amqp.Table{argDLX: "argument"}
	s := newQueueSettings(args, policy.Definition{
		"dead-letter-exchange": "policy", "dead-letter-routing-key": "policy",
	})
	if s.dlx != "argument" || s.dlxKey != "policy" {
		t.Errorf("got exchange %q and key %q, want argument and policy", s.dlx, s.dlxKey)
	}
}

func TestPolicyChangesAlternateExchangeOfKnownRoutes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil)
	r.exchange("x", "direct", nil)
	r.bind("q", "amq.fanout", "")
	if r.publish("x", "k", "lost").Routed {
		t.Fatal("routed without a binding")
	}
	v := r.Broker.VHost("/")
	v.mu.Lock()
	v.exchanges["x"].setPolicyLocked(policy.Definition{argAlternate: "amq.fanout"})
	v.mu.Unlock()
	r.publish("x", "k", "alternate")
	r.wantDrained("q", "alternate")
}

// memoryEntry is a message in memory that arrived at an instant.
func memoryEntry(r *rig, arrived int64) entry {
	r.t.Helper()
	ref, err := r.store.AppendTransient(&store.Message{Arrived: arrived, TTL: noTTL}, 1)
	if err != nil {
		r.t.Fatal(err)
	}
	return newEntry(ref, 0, arrived, 0)
}
