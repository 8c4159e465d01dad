package broker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

// furnish makes some of everything.
func furnish(r *rig) {
	r.exchange("x", "topic", amqp.Table{"alternate-exchange": "amq.fanout"})
	r.delayedExchange("later", "direct")
	if err := r.ExchangeDeclare(ExchangeSpec{Name: "t", Type: "headers", AutoDelete: true, Internal: true}); err != nil {
		r.t.Fatal(err)
	}
	r.queue("q", amqp.Table{"x-message-ttl": int32(5), "other": []any{true, "x", amqp.Table{"n": 1.5}}}, "durable")
	r.queue("transient", nil, "auto-delete")
	r.queue("exclusive", nil, "exclusive")
	r.bind("q", "x", "a.#")
	r.bind("q", "x", "b")
	r.bind("transient", "amq.direct", "k")
	r.bind("exclusive", "x", "a.#")
	r.bindExchange("later", "x", "later")
	if err := r.QueueBind(Binding{Source: "t", Destination: "q", Args: amqp.Table{"x-match": "any", "n": int64(5)}}); err != nil {
		r.t.Fatal(err)
	}
	r.policy("p", "^q", 2, maxLength(7))
	r.operatorPolicy("op", ".*", maxLength(3))
	r.setLimits(VHostLimits{MaxQueues: 100})
}

func wantDeclarations(t *testing.T, r *rig, want Declarations) {
	t.Helper()
	if diff := cmp.Diff(want, r.vhost.Declarations(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("declarations (-want +got):\n%s", diff)
	}
}

func TestDeclarationsAreAllSaveWhatIsExclusiveOrPredeclared(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	furnish(r)
	other := []any{true, "x", amqp.Table{"n": 1.5}}
	wantDeclarations(t, r, Declarations{
		Policies:         []*policy.Policy{{Name: "p", Pattern: "^q", ApplyTo: "all", Priority: 2, Definition: maxLength(7)}},
		OperatorPolicies: []*policy.Policy{{Name: "op", Pattern: ".*", ApplyTo: "all", Definition: maxLength(3)}},
		Limits:           VHostLimits{MaxQueues: 100},
		Exchanges: []ExchangeSpec{
			{Name: "later", Type: "x-delayed-message", Durable: true, Args: amqp.Table{"x-delayed-type": "direct"}},
			{Name: "t", Type: "headers", AutoDelete: true, Internal: true},
			{Name: "x", Type: "topic", Durable: true, Args: amqp.Table{"alternate-exchange": "amq.fanout"}},
		},
		Queues: []QueueSpec{
			{Name: "q", Durable: true, Args: amqp.Table{"x-message-ttl": int32(5), "other": other}},
			{Name: "transient", AutoDelete: true},
		},
		Bindings: []BindingSpec{
			{Binding: Binding{Source: "amq.direct", Destination: "transient", RoutingKey: "k"}},
			{Binding: Binding{Source: "t", Destination: "q", Args: amqp.Table{"x-match": "any", "n": int64(5)}}},
			{Binding: Binding{Source: "x", Destination: "later", RoutingKey: "later"}, ToExchange: true},
			{Binding: Binding{Source: "x", Destination: "q", RoutingKey: "a.#"}},
			{Binding: Binding{Source: "x", Destination: "q", RoutingKey: "b"}},
		},
	})
}

func TestDeclareMakesWhatDeclarationsSaid(t *testing.T) {
	t.Parallel()
	from, to := newRig(t), newRig(t)
	furnish(from)
	want := from.vhost.Declarations()
	for range 2 { // the second time there is nothing to do
		if different, err := to.vhost.Declare(&want); err != nil || len(different) > 0 {
			t.Fatalf("declare: %v, different: %v", err, different)
		}
		wantDeclarations(t, to, want)
	}
	to.wantMaxLength("q", 3, "p", "op")
	to.wantReached("x", "a.b", "q")
	to.crash()
	to.find("q")
	to.wantMaxLength("q", 3, "p", "op")
	to.wantReached("x", "a.b", "q")
}

// A declared queue and a declared delayed exchange are known wherever others are.
func TestDeclaredThingsWorkAsOthersDo(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		if _, err := r.vhost.Declare(&Declarations{
			Queues:    []QueueSpec{{Name: "q", Durable: true}},
			Exchanges: []ExchangeSpec{{Name: "later", Type: delayedType, Durable: true, Args: amqp.Table{argDelayedType: "fanout"}}},
			Bindings:  []BindingSpec{{Binding: Binding{Source: "later", Destination: "q"}}},
		}); err != nil {
			t.Fatal(err)
		}
		r.publish("later", "", "m", withDelay(1000))
		pass(2 * time.Second)
		r.wantReady("q", 1)
		r.restart()
		if d, _, ok, err := r.find("q").Get(true); !ok || err != nil || d.Redelivered {
			t.Errorf("got %t, %v, redelivered %t after an orderly stop", ok, err, d.Redelivered)
		}
	})
}

func TestDeclareLeavesExclusiveQueuesAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil, "exclusive")
	different, err := r.vhost.Declare(&Declarations{
		Queues:   []QueueSpec{{Name: "q", Durable: true}},
		Bindings: []BindingSpec{{Binding: Binding{Source: "amq.direct", Destination: "q"}}},
	})
	if err != nil || len(different) != 2 {
		t.Fatalf("got %v, different %v, want two differences", err, different)
	}
	wantError(t, different[1], amqp.ResourceLocked, "locked queue 'q'")
	if got := r.Stats().Bindings; got != 0 {
		t.Errorf("got %d bindings", got)
	}
}

func TestDeclareLeavesWhatIsThereAndSaysHowItDiffers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", amqp.Table{argMaxLength: int32(5)}, "durable")
	r.exchange("x", "fanout", nil)
	different, err := r.vhost.Declare(&Declarations{
		Queues:    []QueueSpec{{Name: "q", Durable: true, Args: amqp.Table{argMaxLength: int32(6)}}, {Name: "new", Durable: true}},
		Exchanges: []ExchangeSpec{{Name: "x", Type: "direct", Durable: true}},
	})
	if err != nil || len(different) != 2 {
		t.Fatalf("got %v, different %v, want two differences", err, different)
	}
	wantError(t, different[0], amqp.PreconditionFailed, "inequivalent arg 'type' for exchange 'x'")
	wantError(t, different[1], amqp.PreconditionFailed, "inequivalent arg 'x-max-length' for queue 'q'")
	r.wantMaxLength("q", 5)
	r.find("new")
}

func TestDeclareMakesAllOrNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.vhost.Declarations()
	good := Declarations{
		Policies:  []*policy.Policy{{Name: "p", Pattern: ".*", Definition: maxLength(1)}},
		Limits:    VHostLimits{MaxQueues: 5},
		Exchanges: []ExchangeSpec{{Name: "x", Type: "x-delayed-message", Durable: true, Args: amqp.Table{"x-delayed-type": "topic"}}},
		Queues:    []QueueSpec{{Name: "q", Durable: true}},
		Bindings:  []BindingSpec{{Binding: Binding{Source: "x", Destination: "q"}}},
	}
	for name, spoil := range map[string]func(d *Declarations){
		"policy":          func(d *Declarations) { d.Policies = append(d.Policies, &policy.Policy{Name: "bad", Pattern: "("}) },
		"operator policy": func(d *Declarations) { d.OperatorPolicies = []*policy.Policy{{Name: "bad", Pattern: "x"}} },
		"exchange":        func(d *Declarations) { d.Exchanges = append(d.Exchanges, ExchangeSpec{Name: "bad", Type: "none"}) },
		"exchange argument": func(d *Declarations) {
			d.Exchanges = append(d.Exchanges, ExchangeSpec{Name: "bad", Type: "direct", Args: amqp.Table{argAlternate: true}})
		},
		"queue":  func(d *Declarations) { d.Queues = append(d.Queues, QueueSpec{Name: "bad", Args: ttl(-1)}) },
		"limit":  func(d *Declarations) { d.Limits = VHostLimits{"max-fun": 1} },
		"queues": func(d *Declarations) { d.Limits = VHostLimits{MaxQueues: 0} },
		"binding": func(d *Declarations) {
			d.Bindings = append(d.Bindings, BindingSpec{Binding: Binding{Source: "x", Destination: "gone"}})
		},
	} {
		d := good
		spoil(&d)
		if _, err := r.vhost.Declare(&d); err == nil {
			t.Errorf("%s: declared", name)
		}
		wantDeclarations(t, r, before)
	}
	r.crash()
	wantDeclarations(t, r, before)
	if _, err := r.vhost.Declare(&good); err != nil {
		t.Fatal(err)
	}
	r.wantMaxLength("q", 1, "p")
}
