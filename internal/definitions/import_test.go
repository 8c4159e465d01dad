package definitions

import (
	"strings"
	"testing"
)

func TestVHostRoundTrip(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := testFile(t, "rabbitmq-3.10-vhost.json")
	if different, err := ImportVHost(r.Site, r.vhost(), file); err != nil || len(different) > 0 {
		t.Fatalf("import: %v, different: %v", err, different)
	}
	want := decodeJSON(t, []byte(strings.ReplaceAll(string(file), `"orders"`, `"/"`)))
	wantSame(t, want, r.exportedVHost())
	r.restart()
	wantSame(t, want, r.exportedVHost())
}

func TestDelayedExchangeOfThePluginImportsAsItIs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.importAll(`{"rabbit_version":"3.10.8",
		"queues":[{"name":"q","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}],
		"exchanges":[{"name":"later","vhost":"/","type":"x-delayed-message","durable":true,"auto_delete":false,
			"internal":false,"arguments":{"x-delayed-type":"topic"}}],
		"bindings":[{"source":"later","vhost":"/","destination":"q","destination_type":"queue",
			"routing_key":"a.#","arguments":{}}]}`)
	exchanges := r.exported()["exchanges"].([]any)
	if len(exchanges) != 1 || exchanges[0].(map[string]any)["type"] != "x-delayed-message" {
		t.Errorf("got exchanges %v", exchanges)
	}
}

// TestWhatVersionsWriteDifferently has forms that RabbitMQ exports or accepts here and there.
func TestWhatVersionsWriteDifferently(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.importAll("\xef\xbb\xbf" + `{
		"rabbitmq_definition_format":"cluster","original_cluster_name":"x","unknown":[1],
		"exchanges":[
			{"name":"undefined","vhost":"/","type":"direct","durable":true,"auto_delete":"undefined"},
			{"name":"short","vhost":"/","type":"fanout","arguments":[]},
			{"name":"","vhost":"/","type":"direct"},
			{"name":"amq.rabbitmq.log","vhost":"/","type":"x-of-a-plugin"}],
		"queues":[{"name":"q","vhost":"/","type":"classic"},{"name":"amq.gen-x","vhost":"/"}],
		"policies":[{"vhost":"/","name":"p","pattern":"x","definition":{"max-length":1}}]}`)
	got := r.exported()
	wantSame(t, decodeJSON(t, []byte(`{
		"exchanges":[
			{"name":"undefined","vhost":"/","type":"direct","durable":true,"auto_delete":false,"internal":false,"arguments":{}},
			{"name":"short","vhost":"/","type":"fanout","durable":true,"auto_delete":false,"internal":false,"arguments":{}}],
		"queues":[
			{"name":"q","vhost":"/","durable":true,"auto_delete":false,"arguments":{}},
			{"name":"amq.gen-x","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}],
		"policies":[{"vhost":"/","name":"p","pattern":"x","apply-to":"all","priority":0,"definition":{"max-length":1}}]}`)),
		map[string]any{"exchanges": got["exchanges"], "queues": got["queues"], "policies": got["policies"]})
}

func TestWhatIsThereStaysAndTheDifferenceIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.importAll(`{"queues":[{"name":"q","vhost":"/","arguments":{"x-max-length":5}}]}`)
	before := r.exported()
	different, err := Import(r.Site, []byte(`{"queues":[{"name":"q","vhost":"/","arguments":{"x-max-length":6}}]}`))
	if err != nil || len(different) != 1 || !strings.Contains(different[0].Error(), "'x-max-length' for queue 'q'") {
		t.Errorf("got %v, different %v", err, different)
	}
	wantSame(t, before, r.exported())
}

// Policies and parameters are set, whatever was there.
func TestPoliciesAndParametersAreReplaced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := `{"policies":[{"vhost":"/","name":"p","pattern":"x","definition":{"max-length":N}}],
		"parameters":[
			{"component":"operator_policy","vhost":"/","name":"p","value":{"pattern":"x","definition":{"max-length":N}}},
			{"component":"vhost-limits","vhost":"/","name":"limits","value":{"max-queues":N}}],
		"global_parameters":[{"name":"n","value":N}]}`
	r.importAll(strings.ReplaceAll(file, "N", "1"))
	first := asText(t, r.exported())
	r.importAll(strings.ReplaceAll(file, "N", "2"))
	want := strings.NewReplacer(`"max-length":1`, `"max-length":2`, `"max-queues":1`, `"max-queues":2`,
		`"value":1}`, `"value":2}`).Replace(first)
	if got := asText(t, r.exported()); got != want || got == first {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestArgumentsKeepTheirTypes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	arguments := `{"b":true,"f":1.5,"i":9007199254740993,"l":[1,"x",null,{"d":-0.25}],"s":"ä\n","t":{"u":{}},"n":null,"e":[]}`
	r.importAll(`{"queues":[{"name":"q","vhost":"/","arguments":` + arguments + `}]}`)
	r.restart()
	d, err := Export(r.Site)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Queues[0].Arguments.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"b":true,"e":[],"f":1.5,"i":9007199254740993,"l":[1,"x",null,{"d":-0.25}],"n":null,"s":"ä\n","t":{"u":{}}}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestImportOfNothingDoesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.exported()
	r.importAll("{}")
	wantSame(t, before, r.exported())
}
