package broker

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

// policy sets a policy for all names that match, and fails the test if it is refused.
func (r *rig) policy(name, pattern string, priority float64, d policy.Definition) {
	r.t.Helper()
	err := r.vhost.SetPolicy(policy.Policy{Name: name, Pattern: pattern, Priority: priority, Definition: d})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) operatorPolicy(name, pattern string, d policy.Definition) {
	r.t.Helper()
	err := r.vhost.SetOperatorPolicy(policy.Policy{Name: name, Pattern: pattern, Definition: d})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) deletePolicy(name string) {
	r.t.Helper()
	if existed, err := r.vhost.DeletePolicy(name); err != nil || !existed {
		r.t.Fatalf("delete policy %s: existed %t, %v", name, existed, err)
	}
}

// wantMaxLength checks which max-length is in force for a queue, and from where.
func (r *rig) wantMaxLength(queue string, want int64, policies ...string) {
	r.t.Helper()
	q := r.find(queue)
	applied := q.Policies()
	names := []string{}
	for _, name := range []string{applied.Policy, applied.OperatorPolicy} {
		if name != "" {
			names = append(names, name)
		}
	}
	if got := q.settings.Load().maxLength; got != want || !cmp.Equal(append([]string{}, policies...), names) {
		r.t.Errorf("queue %s: got max-length %d by %q, want %d by %q", queue, got, names, want, policies)
	}
}

func maxLength(n int64) policy.Definition { return policy.Definition{"max-length": n} }

func TestPolicyAppliesToQueuesThatAreThereAndToNewOnes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("orders.1", nil)
	r.policy("p", "^orders", 0, maxLength(3))
	r.queue("orders.2", nil)
	r.queue("other", nil)
	r.wantMaxLength("orders.1", 3, "p")
	r.wantMaxLength("orders.2", 3, "p")
	r.wantMaxLength("other", unset)
	r.policy("p", "^o", 0, maxLength(4))
	r.wantMaxLength("orders.1", 4, "p")
	r.wantMaxLength("other", 4, "p")
}

func TestDeletedPolicyGivesWayToTheNext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", amqp.Table{argMaxLength: int32(9)})
	r.policy("low", ".*", 0, maxLength(3))
	r.policy("high", ".*", 1, maxLength(5))
	r.wantMaxLength("q", 5, "high")
	r.deletePolicy("high")
	r.wantMaxLength("q", 3, "low")
	r.deletePolicy("low")
	r.wantMaxLength("q", 9)
	if existed, err := r.vhost.DeletePolicy("low"); existed || err != nil {
		t.Errorf("deleted twice: existed %t, %v", existed, err)
	}
}

func TestOperatorPolicyLimitsPolicyAndArgument(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("argument", amqp.Table{argMaxLength: int32(9)})
	r.queue("neither", nil)
	r.operatorPolicy("op", ".*", maxLength(7))
	r.wantMaxLength("argument", 7, "op")
	r.wantMaxLength("neither", 7, "op")
	r.policy("p", "argument", 0, maxLength(5))
	r.wantMaxLength("argument", 5, "p", "op")
	r.policy("p", "argument", 0, maxLength(8))
	r.wantMaxLength("argument", 7, "p", "op")
	if existed, err := r.vhost.DeleteOperatorPolicy("op"); err != nil || !existed {
		t.Fatal(existed, err)
	}
	r.wantMaxLength("argument", 8, "p")
	r.wantMaxLength("neither", unset)
}

func TestPoliciesSurvive(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil, "durable")
	r.exchange("x", "direct", nil)
	d := policy.Definition{"max-length": int64(5), "dead-letter-exchange": "d", "ha-mode": "nodes", "ha-params": []any{"n"}}
	r.policy("gone", ".*", 9, maxLength(1))
	r.policy("p", "^q$", 1.5, d)
	r.policy("alternate", "^(?!q)", -1, policy.Definition{"alternate-exchange": "d"})
	r.operatorPolicy("op", "q", maxLength(4))
	r.deletePolicy("gone")
	for _, again := range []func(){r.crash, r.restart} {
		again()
		want := []*policy.Policy{
			{Name: "p", Pattern: "^q$", ApplyTo: "all", Priority: 1.5, Definition: d},
			{Name: "alternate", Pattern: "^(?!q)", ApplyTo: "all", Priority: -1,
				Definition: policy.Definition{"alternate-exchange": "d"}},
		}
		if diff := cmp.Diff(want, r.vhost.Policies()); diff != "" {
			t.Errorf("policies (-want +got):\n%s", diff)
		}
		if got := r.vhost.OperatorPolicies(); len(got) != 1 || got[0].Name != "op" {
			t.Errorf("operator policies: got %v", got)
		}
		r.wantMaxLength("q", 4, "p", "op")
		for _, x := range []string{"x", "amq.direct"} {
			if got := r.vhost.exchange(x).settings.Load().alternate; got != "d" {
				t.Errorf("alternate exchange of %s: got %q, want d", x, got)
			}
		}
	}
}

func TestPolicyGivesExchangesAnAlternate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil)
	r.bind("q", "amq.fanout", "")
	r.exchange("own", "direct", amqp.Table{argAlternate: "amq.direct"})
	r.exchange("x", "direct", nil)
	r.policy("p", ".*", 0, policy.Definition{"alternate-exchange": "amq.fanout"})
	r.exchange("new", "direct", nil)
	r.wantReached("x", "k", "q")
	r.wantReached("new", "k", "q")
	if res := r.publish("own", "k", "m"); !res.Routed { // by amq.direct, whose alternate is amq.fanout
		t.Error("the argument's alternate exchange has none")
	}
	if got := r.vhost.exchange("own").settings.Load().alternate; got != "amq.direct" {
		t.Errorf("got %q: the argument must win", got)
	}
	if r.publish("", "nowhere", "m").Routed {
		t.Error("the default exchange has an alternate") // RabbitMQ's has none
	}
	if applied := r.vhost.exchange("x").Policies(); applied.Policy != "p" {
		t.Errorf("got %+v", applied)
	}
	r.deletePolicy("p")
	if r.publish("x", "k", "m").Routed {
		t.Error("routed without the policy")
	}
}

func TestPolicyOnALiveQueueExpiresWhatIsOverdue(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("q", ttl(60_000))
		r.publish("", "q", "old")
		pass(10 * time.Second)
		r.publish("", "q", "new")
		r.policy("p", "q", 0, policy.Definition{"message-ttl": int64(5000)})
		synctest.Wait()
		r.wantReady("q", 1)
		r.deletePolicy("p")
		pass(6 * time.Second)
		r.wantReady("q", 1)
	})
}

func TestPolicyWithAHugeTTLDoesNotExpire(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.policy("p", "q", 0, policy.Definition{"message-ttl": int64(1<<63 - 1), "expires": int64(1<<63 - 1)})
		r.queue("q", nil)
		r.publish("", "q", "m")
		pass(time.Hour)
		r.wantReady("q", 1)
	})
}

func TestPolicyLeavesParkedMessagesAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.policy("p", ".*", 0, policy.Definition{"message-ttl": int64(1000), "expires": int64(1000)})
		r.delayedExchange("x", "direct")
		r.publish("x", "nowhere", "m", withDelay(1000))
		pass(time.Minute)
		if got := r.vhost.Parked()[reasonUnroutable]; got != 1 {
			t.Errorf("got %d parked, want 1", got)
		}
	})
}

func TestPolicyKnowsQueueTypes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("classic", nil)
	r.queue("quorum", amqp.Table{argQueueType: "quorum"}, "durable")
	r.policy("both", ".*", 0, maxLength(1))
	r.policy("quorum", ".*", 1, policy.Definition{"max-length": int64(2), "delivery-limit": int64(3)})
	r.wantMaxLength("classic", 1, "both")
	r.wantMaxLength("quorum", 2, "quorum")
	if got := r.find("quorum").settings.Load().deliveryLimit; got != 3 {
		t.Errorf("got delivery limit %d, want 3", got)
	}
}

func TestRefusedPolicyChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil)
	r.policy("p", "q", 0, maxLength(3))
	for _, p := range []policy.Policy{
		{Name: "p", Pattern: "(", Definition: maxLength(1)},
		{Name: "p", Pattern: "q", Definition: maxLength(-1)},
		{Name: "p", Pattern: "q"},
	} {
		var fault *policy.Fault
		if err := r.vhost.SetPolicy(p); !errors.As(err, &fault) {
			t.Errorf("%+v: got %v, want a fault", p, err)
		}
		if err := r.vhost.SetOperatorPolicy(p); !errors.As(err, &fault) {
			t.Errorf("%+v as operator policy: got %v, want a fault", p, err)
		}
	}
	r.wantMaxLength("q", 3, "p")
	r.crash()
	if got := r.vhost.Policies(); len(got) != 1 || len(r.vhost.OperatorPolicies()) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestPolicyWinsOverOverflowArgumentOfAQuorumQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.policy("p", ".*", 0, policy.Definition{"overflow": "reject-publish"})
	for kind, want := range map[string]overflow{"classic": dropHead, "quorum": rejectPublish} {
		q := r.queue(kind, amqp.Table{argQueueType: kind, argOverflow: "drop-head"}, "durable")
		if got := q.settings.Load().overflow; got != want {
			t.Errorf("%s: got overflow %d, want %d", kind, got, want)
		}
	}
}

// TestPoliciesChangeWhileTheBrokerIsAtWork ends with the same in force for queues whenever they
// were made.
func TestPoliciesChangeWhileTheBrokerIsAtWork(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const rounds = 200
	r.queue("old", nil)
	work := []func(i int, s *Session, p *Publisher) error{
		func(i int, _ *Session, _ *Publisher) error {
			return r.vhost.SetPolicy(policy.Policy{Name: "p", Pattern: ".", Definition: policy.Definition{
				"max-length": int64(i), "message-ttl": int64(1 + i%2), "dead-letter-exchange": "amq.fanout"}})
		},
		func(i int, _ *Session, _ *Publisher) error {
			if i%2 == 0 {
				return r.vhost.SetOperatorPolicy(policy.Policy{Name: "op", Pattern: ".", Definition: maxLength(5)})
			}
			_, err := r.vhost.DeleteOperatorPolicy("op")
			return err
		},
		func(i int, s *Session, _ *Publisher) error {
			name := fmt.Sprint("q", i%10)
			if i%3 == 0 {
				_, err := s.QueueDelete(name, false, false)
				return err
			}
			_, err := s.QueueDeclare(QueueSpec{Name: name})
			return err
		},
		func(i int, _ *Session, p *Publisher) error {
			_, err := p.Publish(newMessage("", []string{"old", "q1"}[i%2], "m"))
			return err
		},
	}
	var all sync.WaitGroup
	for _, step := range work {
		s := r.connect("guest")
		all.Go(func() {
			p := s.NewPublisher()
			for i := range rounds {
				if err := step(i, s, p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, q := range r.vhost.Declarations().Queues {
		r.wantMaxLength(q.Name, rounds-1, "p")
	}
}
