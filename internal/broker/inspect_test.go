package broker

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

func TestStatesTellWhatIsThere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.Broker.VHost("/")
	r.delayedExchange("due", "direct")
	r.queue("own", nil, "exclusive")
	q := r.queue("q", amqp.Table{argQueueType: "quorum"}, "durable")
	r.bind("own", "due", "k")
	r.bindExchange("amq.fanout", "due", "k")
	mustDo(t, v.SetPolicy(policy.Policy{Name: "p", Pattern: "^q", Definition: policy.Definition{"max-length": int64(9)}}))
	for range 3 {
		r.publish("", "q", "12345")
	}
	r.publish("due", "k", "later", withDelay(3_600_000))
	if _, _, ok, err := q.Get(false); !ok || err != nil {
		t.Fatal(ok, err)
	}
	r.consume("q", 0, ConsumerSpec{Tag: "t", Exclusive: true})

	if got, ok := v.QueueState("q"); !ok || got.Ready != 2 || got.Unacknowledged != 1 || got.Consumers != 1 ||
		got.ReadyBytes == 0 || got.ExclusiveTag != "t" || got.ActiveTag != "" || got.Policies.Policy != "p" || got.Type() != "quorum" || !got.Durable {
		t.Errorf("queue q is %+v", got)
	}
	if got, ok := v.QueueState("own"); !ok || !got.Exclusive || got.Type() != "classic" {
		t.Errorf("queue own is %+v", got)
	}
	if n := len(v.QueueStates()); n != 2 {
		t.Errorf("there are %d queues, want 2", n)
	}
	if got, ok := v.ExchangeState("due"); !ok || !got.Delayed || got.Pending != 1 {
		t.Errorf("exchange due is %+v", got)
	}
	if n := len(v.ExchangeStates()); n != 8 {
		t.Errorf("there are %d exchanges, want 8", n)
	}
	_, noQueue := v.QueueState("none")
	if _, noExchange := v.ExchangeState("none"); noQueue || noExchange {
		t.Error("there is something that is not there")
	}
	want := []BindingSpec{
		{Binding: Binding{Destination: "own", RoutingKey: "own"}},
		{Binding: Binding{Destination: "q", RoutingKey: "q"}},
		{ToExchange: true, Binding: Binding{Source: "due", Destination: "amq.fanout", RoutingKey: "k"}},
		{Binding: Binding{Source: "due", Destination: "own", RoutingKey: "k"}},
	}
	if diff := cmp.Diff(want, v.Bindings()); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}
}
