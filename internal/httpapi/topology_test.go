package httpapi

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestExchanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(201, "", "PUT", "exchanges/%2F/e", `{"type":"direct","durable":true,"arguments":{"alternate-exchange":"amq.fanout"}}`)
	f.want(204, "", "PUT", "exchanges/%2F/e", `{"type":"direct","durable":true,"arguments":{"alternate-exchange":"amq.fanout"}}`)
	f.want(400, "inequivalent arg 'type' for exchange 'e' in vhost '/'", "PUT", "exchanges/%2F/e", `{"type":"fanout"}`)
	f.want(400, "unknown exchange type 'zork'", "PUT", "exchanges/%2F/f", `{"type":"zork"}`)
	f.want(404, `{"error":"not_found","reason":"vhost_not_found"}`, "PUT", "exchanges/nope/e", `{"type":"topic"}`)
	f.want(401, "Access refused.", "PUT", "exchanges/%2F/amq.foo", `{"type":"topic"}`)
	f.want(201, "", "PUT", "exchanges/%2F/t", `{"type":"topic","auto_delete":"true","internal":true}`)
	f.want(200, `{"arguments":{},"auto_delete":true,"durable":false,"incoming":[],"internal":true,"name":"t","outgoing":[],"type":"topic","vhost":"/"}`,
		"GET", "exchanges/%2F/t", "")
	f.want(200, `"name":"","outgoing":[],"type":"direct"`, "GET", "exchanges/%2F/amq.default", "")
	f.want(201, "", "PUT", "exchanges/%2F/due", `{"type":"x-delayed-message","arguments":{"x-delayed-type":"direct"}}`)
	f.want(200, `"messages_delayed":0`, "GET", "exchanges/%2F/due", "")
	if got := names(get[[]map[string]any](f, "exchanges/%2F"), "name"); got != ",amq.direct,amq.fanout,amq.headers,amq.match,amq.rabbitmq.trace,amq.topic,due,e,t" {
		t.Errorf("exchanges are %q", got)
	}
	f.want(201, "", "POST", "bindings/%2F/e/e/e/t", `{"routing_key":"k"}`)
	f.want(400, "exchange 'e' in vhost '/' in use", "DELETE", "exchanges/%2F/e?if-unused=true", "")
	f.want(204, "", "DELETE", "exchanges/%2F/e", "")
	f.want(404, "Object Not Found", "DELETE", "exchanges/%2F/e", "")
	f.want(401, "Access refused.", "DELETE", "exchanges/%2F/amq.direct", "")
}

func TestQueues(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(201, "", "PUT", "queues/%2F/q", `{"durable":true,"arguments":{"x-message-ttl":60000}}`)
	f.want(204, "", "PUT", "queues/%2F/q", `{"durable":true,"arguments":{"x-message-ttl":60000}}`)
	f.want(400, "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/'", "PUT", "queues/%2F/q", `{"durable":true,"arguments":{"x-message-ttl":1}}`)
	f.want(400, "expected integer, got longstr", "PUT", "queues/%2F/r", `{"arguments":{"x-message-ttl":"a"}}`)
	f.want(201, "", "PUT", "policies/%2F/p", `{"pattern":"^q","definition":{"max-length":5}}`)
	ch := f.channel("guest")
	for range 3 {
		publish(t, ch, "q")
	}
	if _, ok, err := ch.Get("q", false); !ok || err != nil {
		t.Fatal(ok, err)
	}
	const state = `"messages":3,"messages_ready":2,"messages_unacknowledged":1`
	f.want(200, state, "GET", "queues/%2F/q", "")
	f.want(200, state, "GET", "queues/%2F", "")
	f.want(200, state, "GET", "queues", "")
	f.want(200, `"effective_policy_definition":{"max-length":5}`, "GET", "queues/%2F/q", "")
	f.want(200, `"operator_policy":null,"policy":"p","single_active_consumer_tag":null,"state":"running","type":"classic","vhost":"/"`, "GET", "queues/%2F/q", "")
	f.want(200, `"messages":3,"messages_ready":2,"messages_unacknowledged":1`, "GET", "overview", "")
	f.want(200, `"messages":3,"messages_ready":2,"messages_unacknowledged":1`, "GET", "vhosts/%2F", "")
	f.want(204, "", "DELETE", "queues/%2F/q/contents", "")
	f.want(200, `"messages_ready":0`, "GET", "queues/%2F/q", "")
	f.want(404, "Object Not Found", "DELETE", "queues/%2F/none/contents", "")
	f.want(404, "Object Not Found", "GET", "queues/%2F/none", "")
	publish(t, ch, "q")
	f.want(400, "queue 'q' in vhost '/' not empty", "DELETE", "queues/%2F/q?if-empty=true", "")
	if _, err := ch.Consume("q", "tag", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	f.want(200, `"consumer_tag":"tag"`, "GET", "queues/%2F/q", "")
	f.want(400, "queue 'q' in vhost '/' in use", "DELETE", "queues/%2F/q?if-unused=true", "")
	f.want(204, "", "DELETE", "queues/%2F/q", "")
	f.want(404, "Object Not Found", "DELETE", "queues/%2F/q", "")
}

func TestBindingsAndTheirKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(201, "", "PUT", "exchanges/%2F/e", `{"type":"direct"}`)
	f.want(201, "", "PUT", "exchanges/%2F/x", `{"type":"fanout"}`)
	f.want(201, "", "PUT", "queues/%2F/q", "")
	for _, tt := range []struct{ body, at string }{
		{`{}`, "q/~"},
		{`{"routing_key":"rk/x"}`, "q/rk%252Fx"},
		{`{"routing_key":"a~b c"}`, "q/a%257Eb+c"},
	} {
		w := f.do("POST", "bindings/%2F/e/e/q/q", tt.body)
		if got := w.Header().Get("Location"); w.Code != 201 || got != tt.at {
			t.Errorf("%s: %d at %s, want 201 at %s", tt.body, w.Code, got, tt.at)
		}
		f.want(200, `"destination":"q"`, "GET", "bindings/%2F/e/e/q/"+tt.at, "")
	}
	f.want(201, "", "POST", "bindings/%2F/e/e/q/q", `{"routing_key":"rk","arguments":{"a":1}}`)
	f.want(201, "", "POST", "bindings/%2F/e/e/q/q", `{"routing_key":"rk"}`)
	f.want(404, "no queue 'none' in vhost '/'", "POST", "bindings/%2F/e/e/q/none", "{}")
	f.want(404, "no exchange 'nope' in vhost '/'", "POST", "bindings/%2F/e/nope/q/q", "{}")
	f.want(201, "", "POST", "bindings/%2F/e/e/e/x", `{"routing_key":"k"}`)
	between := get[[]map[string]any](f, "bindings/%2F/e/e/q/q")
	if got := names(between, "routing_key"); got != ",a~b c,rk,rk,rk/x" {
		t.Errorf("bindings between e and q have the keys %q", got)
	}
	for path, want := range map[string]string{
		"queues/%2F/q/bindings":                ",e,e,e,e,e",
		"exchanges/%2F/e/bindings/source":      "e,e,e,e,e,e",
		"exchanges/%2F/x/bindings/destination": "e",
		"bindings":                             ",e,e,e,e,e,e",
		"bindings/%2F/e/amq.default/q/q":       "",
	} {
		if got := names(get[[]map[string]any](f, path), "source"); got != want {
			t.Errorf("%s has sources %q, want %q", path, got, want)
		}
	}
	f.want(404, "Object Not Found", "DELETE", "bindings/%2F/e/e/q/q/nope", "")
	for _, b := range between { // each by its own key, which must name no other
		key, _ := b["properties_key"].(string)
		f.want(204, "", "DELETE", "bindings/%2F/e/e/q/q/"+escape(key), "")
	}
	f.want(200, "[]", "GET", "bindings/%2F/e/e/q/q", "")
	f.want(204, "", "DELETE", "bindings/%2F/e/e/e/x/k", "")
}

func TestPagesFiltersAndColumns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(200, `"filtered_count":7,"item_count":2,"items":[`, "GET", "exchanges/%2F?page=1&page_size=2", "")
	f.want(200, `"page":4,"page_count":4,"page_size":2,"total_count":7`, "GET", "exchanges/%2F?page=4&page_size=2", "")
	f.want(200, `"items":[{"name":"amq.topic"},{"name":"amq.rabbitmq.trace"}]`,
		"GET", "exchanges?page=1&page_size=2&name=AMQ&sort=name&sort_reverse=true&columns=name", "")
	f.want(200, `"filtered_count":2`, "GET", "exchanges?page=1&name=^amq\\.(d|t)&use_regex=true", "")
	f.want(400, "Page out of range, page: 99 page size: 100, len: 7", "GET", "exchanges?page=99", "")
	f.want(400, "invalid_pagination_parameters", "GET", "exchanges?page=0", "")
	f.want(400, "invalid_pagination_parameters", "GET", "exchanges?page=1&page_size=501", "")
	f.want(400, "Pagination parameters are invalid", "GET", "exchanges?page=x", "")
	f.want(400, "no regular expression", "GET", "exchanges?page=1&name=(&use_regex=true", "")
	f.want(200, `[]`, "GET", "queues?page=1&columns=name", "")
	f.want(201, "", "PUT", "queues/%2F/b", `{"arguments":{"x-max-length":5,"x-expires":1000000}}`)
	f.want(201, "", "PUT", "queues/%2F/a", `{"arguments":{"x-max-length":6}}`)
	publish(t, f.channel("guest"), "a")
	f.want(200, `[{"arguments":{"x-max-length":5},"name":"b"},{"arguments":{"x-max-length":6},"name":"a"}]`,
		"GET", "queues?sort=messages&columns=name,arguments.x-max-length,nothing", "")
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, kind := range []string{"policies", "operator-policies"} {
		f.want(201, "", "PUT", kind+"/%2F/p", `{"pattern":"^q","definition":{"max-length":5},"priority":3,"apply-to":"queues"}`)
		f.want(200, `{"apply-to":"queues","definition":{"max-length":5},"name":"p","pattern":"^q","priority":3,"vhost":"/"}`,
			"GET", kind+"/%2F/p", "")
		f.want(204, "", "PUT", kind+"/%2F/p", `{"pattern":"^q","definition":{"max-length":5}}`)
		const p = `[{"apply-to":"all","definition":{"max-length":5},"name":"p","pattern":"^q","priority":0,"vhost":"/"}]`
		f.want(200, p, "GET", kind, "")
		f.want(200, p, "GET", kind+"/%2F", "")
		f.want(400, `Validation failed\n\npattern should be regular expression but is invalid`, "PUT", kind+"/%2F/r", `{"pattern":"(","definition":{"max-length":5}}`)
		f.want(400, "not recognised policy settings", "PUT", kind+"/%2F/r", `{"pattern":"a","definition":{"max-len":5}}`)
		f.want(400, `priority should be a number, actually was`, "PUT", kind+"/%2F/r", `{"pattern":"a","priority":"3","definition":{"max-length":5}}`)
		f.want(400, `priority should be a number, actually was`, "PUT", kind+"/%2F/r", `{"pattern":"a","priority":1e999,"definition":{"max-length":5}}`)
		f.want(400, "[{key_missing,definition}]", "PUT", kind+"/%2F/r", `{"pattern":"a"}`)
		f.want(400, "[{key_missing,pattern}]", "PUT", kind+"/%2F/r", `{"definition":{"max-length":5}}`)
		f.want(404, "vhost_not_found", "PUT", kind+"/nope/r", `{"pattern":"a","definition":{"max-length":5}}`)
		f.want(204, "", "DELETE", kind+"/%2F/p", "")
		f.want(404, "Object Not Found", "DELETE", kind+"/%2F/p", "")
		f.want(404, "Object Not Found", "GET", kind+"/%2F/p", "")
	}
}

func TestDefinitionsComeAndGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(204, "", "POST", "definitions", `{"queues":[{"name":"q","vhost":"/","durable":true}]}`)
	f.want(200, `"name":"q"`, "GET", "definitions", "")
	f.want(204, "", "POST", "definitions/%2F", `{"queues":[{"name":"r","durable":true}]}`)
	f.want(200, `"name":"r"`, "GET", "definitions/%2F", "")
	f.want(200, `{"notes":["`, "POST", "definitions/%2F", `{"queues":[{"name":"r","durable":false}]}`)
	f.want(400, "no such virtual host 'nope'", "POST", "definitions", `{"queues":[{"name":"q","vhost":"nope"}]}`)
	f.want(404, "Object Not Found", "GET", "definitions/nope", "")
	f.want(204, "", "POST", "definitions", `{"vhosts":[{"name":"v"}]}`)
	f.want(200, `"configure":".*"`, "GET", "permissions/v/guest", "")
}

func TestLimitsAndParameters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(200, "[]", "GET", "vhost-limits", "")
	f.want(204, "", "PUT", "vhost-limits/%2F/max-queues", `{"value":0}`)
	f.want(400, "queue limit in vhost '/' (0) is reached", "PUT", "queues/%2F/q", "")
	f.want(204, "", "PUT", "vhost-limits/%2F/max-connections", `{"value":-1}`)
	f.want(400, "there is no limit 'max-foo'", "PUT", "vhost-limits/%2F/max-foo", `{"value":1}`)
	f.want(400, "max-queues should be a number", "PUT", "vhost-limits/%2F/max-queues", `{}`)
	f.want(404, "vhost_not_found", "PUT", "vhost-limits/nope/max-queues", `{"value":1}`)
	f.want(200, `[{"value":{"max-connections":-1,"max-queues":0},"vhost":"/"}]`, "GET", "vhost-limits", "")
	f.want(200, `{"component":"vhost-limits","name":"limits","value":{"max-connections":-1,"max-queues":0},"vhost":"/"}`, "GET", "parameters", "")
	f.want(204, "", "DELETE", "vhost-limits/%2F/max-queues", "")
	f.want(200, `[{"value":{"max-connections":-1},"vhost":"/"}]`, "GET", "vhost-limits/%2F", "")
	f.want(200, "[]", "GET", "parameters/operator_policy", "")

	f.want(201, "", "PUT", "global-parameters/x", `{"value":{"a":1}}`)
	f.want(204, "", "PUT", "global-parameters/x", `{"value":{"a":2}}`)
	f.want(400, "[{key_missing,value}]", "PUT", "global-parameters/x", `{}`)
	f.want(200, `{"name":"x","value":{"a":2}}`, "GET", "global-parameters/x", "")
	f.want(200, `[{"name":"x","value":{"a":2}}]`, "GET", "global-parameters", "")
	f.want(204, "", "DELETE", "global-parameters/x", "")
	f.want(404, "Object Not Found", "DELETE", "global-parameters/x", "")
	f.want(404, "Object Not Found", "GET", "global-parameters/x", "")
}

func (f *fixture) channel(user string) *amqp.Channel {
	f.t.Helper()
	ch, err := f.connect(user, "/").Channel()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		f.t.Fatal(err)
	}
	return ch
}

// publish returns when the message is in the queue.
func publish(t *testing.T, ch *amqp.Channel, queue string) {
	t.Helper()
	d, err := ch.PublishWithDeferredConfirm("", queue, false, false, amqp.Publishing{Body: []byte("x")})
	if err != nil || !d.Wait() {
		t.Fatalf("publish to %s: %v", queue, err)
	}
}
