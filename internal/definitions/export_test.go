package definitions

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/policy"
)

func (r *rig) declare(d broker.Declarations) {
	r.t.Helper()
	if _, err := r.vhost().Declare(&d); err != nil {
		r.t.Fatal(err)
	}
}

func TestExportRefusesWhatIsNotUTF8(t *testing.T) {
	t.Parallel()
	for what, d := range map[string]broker.Declarations{
		`queue "\xff"`:    {Queues: []broker.QueueSpec{{Name: "\xff", Durable: true}}},
		`queue "a"`:       {Queues: []broker.QueueSpec{{Name: "a", Args: amqp.Table{"x": []any{amqp.Table{"y": []byte("\xff")}}}}}},
		`exchange "e"`:    {Exchanges: []broker.ExchangeSpec{{Name: "e", Type: "direct", Args: amqp.Table{"\xff": true}}}},
		`exchange "\xfe"`: {Exchanges: []broker.ExchangeSpec{{Name: "\xfe", Type: "direct"}}},
		`binding from exchange "amq.topic"`: {Bindings: []broker.BindingSpec{{ToExchange: true,
			Binding: broker.Binding{Source: "amq.topic", Destination: "amq.direct", RoutingKey: "\xff"}}}},
	} {
		r := newRig(t)
		r.declare(d)
		if _, err := Export(r.Site); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %s", err, what)
		}
		if _, err := ExportVHost(r.vhost()); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("of the virtual host: got %v, want %s", err, what)
		}
	}
}

// What only AMQP has becomes what RabbitMQ makes of it.
func TestExportOfValuesThatJSONLacks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.declare(broker.Declarations{Queues: []broker.QueueSpec{{Name: "q", Args: amqp.Table{
		"time": time.Unix(1_700_000_000, 0), "bytes": []byte("b"), "decimal": amqp.Decimal{Scale: 2, Value: 125},
		"float32": float32(0.5), "int8": int8(-3), "uint32": uint32(4_000_000_000), "nan": math.NaN(),
	}}}})
	d, err := Export(r.Site)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"bytes":"b","decimal":1.25,"float32":0.5,"int8":-3,"nan":"NaN","time":1700000000,"uint32":4000000000}`
	if got := asText(t, d.Queues[0].Arguments); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestParametersAreLimitsAndOperatorPolicies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.declare(broker.Declarations{
		Limits:           broker.VHostLimits{broker.MaxQueues: 5},
		OperatorPolicies: []*policy.Policy{{Name: "op", Pattern: "x", Definition: policy.Definition{"max-length": int64(1)}}},
	})
	all, err := Parameters(r.vhost())
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"value":{"max-queues":5},"vhost":"/","component":"vhost-limits","name":"limits"},` +
		`{"value":{"apply-to":"all","definition":{"max-length":1},"pattern":"x","priority":0},` +
		`"vhost":"/","component":"operator_policy","name":"op"}]`
	if got := asText(t, all); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestExportOfNothingHasEmptyLists(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, text := range []string{asText(t, r.exported()), asText(t, r.exportedVHost())} {
		if strings.Contains(text, "null") || !strings.Contains(text, `"queues":[]`) {
			t.Errorf("got %s", text)
		}
	}
}
