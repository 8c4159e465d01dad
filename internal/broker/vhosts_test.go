package broker

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

func TestVHostIsMadeWithMetadata(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	want := VHostMetadata{Description: "orders", Tags: []string{"a", "b"}, DefaultQueueType: "quorum"}
	if created, err := r.PutVHost("v", want); !created || err != nil {
		t.Fatalf("PutVHost = %t, %v", created, err)
	}
	r.restart()
	if diff := cmp.Diff(want, r.Broker.VHost("v").Metadata()); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	if created, err := r.PutVHost("v", VHostMetadata{}); created || err != nil {
		t.Errorf("a second PutVHost = %t, %v", created, err)
	}
	r.restart()
	if diff := cmp.Diff(VHostMetadata{}, r.Broker.VHost("v").Metadata()); diff != "" {
		t.Errorf("after a change (-want +got):\n%s", diff)
	}
	s := r.enter("v")
	if err := s.ExchangeDeclare(ExchangeSpec{Name: "amq.direct", Type: "direct", Durable: true}); err != nil {
		t.Errorf("a new virtual host lacks amq.direct: %v", err)
	}
}

func TestVHostWithBadNameOrTypeIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, m := range map[string]VHostMetadata{
		"": {}, strings.Repeat("x", 256): {}, "v": {DefaultQueueType: "nonsense"},
	} {
		if _, err := r.PutVHost(name, m); err == nil {
			t.Errorf("PutVHost(%.10q, %v): no error", name, m)
		}
	}
	if n := len(r.VHosts()); n != 1 {
		t.Errorf("there are %d virtual hosts, want /", n)
	}
}

func TestDefaultQueueType(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := r.PutVHost("v", VHostMetadata{DefaultQueueType: "quorum"}); err != nil {
		t.Fatal(err)
	}
	s := r.enter("v")
	for _, tt := range []struct {
		spec QueueSpec
		want any
	}{
		{QueueSpec{Name: "plain", Durable: true}, "quorum"},
		{QueueSpec{Name: "named", Durable: true, Args: amqp.Table{argQueueType: "classic"}}, "classic"},
		{QueueSpec{Name: "transient"}, nil},
		{QueueSpec{Name: "exclusive", Durable: true, Exclusive: true}, nil},
		{QueueSpec{Name: "auto", Durable: true, AutoDelete: true}, nil},
	} {
		for range 2 { // the second finds it and compares
			if _, err := s.QueueDeclare(tt.spec); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.Broker.VHost("v").queue(tt.spec.Name).args[argQueueType]; got != tt.want {
			t.Errorf("%s has type %v, want %v", tt.spec.Name, got, tt.want)
		}
	}
}

// Everything in a deleted virtual host is gone, now and after a restart, and what is made under
// its name is new.
func TestDeletedVHostLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	remake := func() {
		if _, err := r.PutVHost("v", VHostMetadata{Description: "d"}); err != nil {
			t.Fatal(err)
		}
		r.enter("v")
	}
	remake()
	v := r.Broker.VHost("v")
	r.delayedExchange("due", "direct")
	q := r.queue("q", nil, "durable")
	r.bind("q", "due", "k")
	mustDo(t, v.SetPolicy(policy.Policy{Name: "p", Pattern: ".*", Definition: policy.Definition{"max-length": int64(3)}}))
	mustDo(t, v.SetLimits(VHostLimits{MaxQueues: 9}))
	mustDo(t, v.SetOperatorPolicy(policy.Policy{Name: "o", Pattern: ".*", Definition: policy.Definition{"max-length": int64(3)}}))
	if _, err := v.parkingQueue("unroutable"); err != nil {
		t.Fatal(err)
	}
	r.publish("", "q", "ready")
	r.publish("due", "k", "later", withDelay(3_600_000))
	if n := r.store.PendingTotal().Count; q.Messages() != 1 || n != 1 {
		t.Fatalf("%d messages in q and %d pending, want 1 and 1", q.Messages(), n)
	}

	if existed, err := r.DeleteVHost("v"); !existed || err != nil {
		t.Fatalf("DeleteVHost = %t, %v", existed, err)
	}
	if q.Messages() != 0 {
		t.Errorf("a deleted queue keeps %d messages", q.Messages())
	}
	if existed, err := r.DeleteVHost("v"); existed || err != nil {
		t.Errorf("a second DeleteVHost = %t, %v", existed, err)
	}
	for range 2 {
		if r.Broker.VHost("v") != nil {
			t.Error("the virtual host is still there")
		}
		r.stop()
		r.start()
	}
	remake()
	if d := r.Broker.VHost("v").Declarations(); len(d.Exchanges)+len(d.Queues)+len(d.Bindings)+len(d.Policies)+len(d.Limits) > 0 {
		t.Errorf("a new virtual host has %+v, want nothing", d)
	}
	if n := r.store.PendingTotal().Count; n != 0 || r.Stats().Orphans != 0 {
		t.Errorf("%d delayed messages and %d orphans are left", n, r.Stats().Orphans)
	}
}

// Whoever is still connected can make nothing, and a session that was opened meanwhile finds out.
func TestSessionInDeletedVHostCanDoNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := r.PutVHost("v", VHostMetadata{}); err != nil {
		t.Fatal(err)
	}
	s := r.enter("v")
	mustDo(t, s.Check())
	v := r.Broker.VHost("v")
	if _, err := r.DeleteVHost("v"); err != nil {
		t.Fatal(err)
	}
	_, declared := s.QueueDeclare(QueueSpec{Name: "q", Durable: true})
	_, parked := v.parkingQueue("unroutable")
	for what, err := range map[string]error{
		"Check":           s.Check(),
		"QueueDeclare":    declared,
		"ExchangeDeclare": s.ExchangeDeclare(ExchangeSpec{Name: "x", Type: "direct", Durable: true}),
		"QueueBind":       s.QueueBind(Binding{Source: "amq.direct", Destination: "q"}),
		"SetPolicy":       v.SetPolicy(policy.Policy{Name: "p", Pattern: "", Definition: policy.Definition{"max-length": int64(3)}}),
		"SetLimits":       v.SetLimits(VHostLimits{MaxQueues: 9}),
		"a parking queue": parked,
	} {
		if err == nil {
			t.Errorf("%s in a deleted virtual host: no error", what)
		}
	}
	r.restart() // which would find what belongs to no virtual host
}

// enter makes the rig's session one in another virtual host.
func (r *rig) enter(vhost string) *Session {
	r.t.Helper()
	s, err := r.Connect(vhost, "guest", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Session, r.p = s, s.NewPublisher()
	return s
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
