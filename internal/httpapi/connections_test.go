package httpapi

import (
	"net/url"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func escape(name string) string { return url.PathEscape(name) }

func TestConnectionsChannelsConsumers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(201, "", "PUT", "permissions/%2F/management", `{"configure":"","write":"","read":""}`)
	conn := f.connect("guest", "/")
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("q", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.Qos(7, 0, false); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.Consume("q", "tag", false, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	f.connect("management", "/")

	all := get[[]map[string]any](f, "connections?sort=user")
	if got := names(all, "user"); got != "guest,management" {
		t.Fatalf("connections are of %s", got)
	}
	name := all[0]["name"].(string)
	f.want(200, `"auth_mechanism":"PLAIN","channel_max":2047,"channels":1`, "GET", "connections/"+escape(name), "")
	f.want(200, `"state":"running"`, "GET", "connections/"+escape(name), "")
	f.want(200, `"peer_host":"127.0.0.1"`, "GET", "vhosts/%2F/connections", "")
	f.want(200, `"consumer_count":1`, "GET", "connections/"+escape(name)+"/channels", "")
	f.want(200, `"name":"`+name[:9], "GET", "connections/username/guest", "")
	f.want(200, `"prefetch_count":7`, "GET", "channels", "")
	f.want(200, `"consumer_details":[{`, "GET", "channels/"+escape(name+" (1)"), "")
	const consumer = `"consumer_tag":"tag","exclusive":true,"prefetch_count":7,"queue":{"name":"q","vhost":"/"}}]`
	f.want(200, consumer, "GET", "consumers", "")
	f.want(200, consumer, "GET", "consumers/%2F", "")
	f.want(200, `"channels":1,"connections":2,"consumers":1`, "GET", "overview", "")

	// Others see their own only.
	m := f.as("management")
	if got := names(get[[]map[string]any](m, "connections"), "user"); got != "management" {
		t.Errorf("management sees connections of %q", got)
	}
	m.want(401, "User not authorised to access object", "GET", "connections/"+escape(name), "")
	m.want(401, "User not authorised to access object", "DELETE", "connections/"+escape(name), "")
	m.want(404, "Object Not Found", "DELETE", "connections/none", "")
	f.as("monitoring").want(200, `"user":"guest"`, "GET", "connections/"+escape(name), "")
	f.as("monitoring").want(401, "User not authorised to access object", "DELETE", "connections/"+escape(name), "")
	m.want(401, "Not administrator user", "DELETE", "connections/username/guest", "")
}

func TestConnectionIsClosedWithTheReason(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	closed := f.connect("guest", "/").NotifyClose(make(chan *amqp.Error, 1))
	name := get[[]map[string]any](f, "connections")[0]["name"].(string)
	f.want(204, "", "DELETE", "connections/"+escape(name), "")
	wantClosed(t, closed, "Closed via management plugin")
	closed = f.connect("guest", "/").NotifyClose(make(chan *amqp.Error, 1))
	f.want(204, "", "DELETE", "connections/username/guest", "")
	wantClosed(t, closed, "Closed via management plugin")
}

func TestOverviewNamesVersionAndNode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	o := get[map[string]any](f, "overview")
	for key, want := range map[string]any{
		"product_name": "Duepost", "product_version": "1.2.3", "rabbitmq_version": "3.10.8",
		"management_version": "3.10.8", "node": "duepost@test",
	} {
		if o[key] != want {
			t.Errorf("%s = %v, want %v", key, o[key], want)
		}
	}
	f.want(200, `"name":"duepost@test"`, "GET", "nodes", "")
	f.want(200, `"running":true`, "GET", "nodes/duepost@test", "")
	f.want(404, "Object Not Found", "GET", "nodes/other", "")
	f.want(200, `{"name":"duepost@test"}`, "GET", "cluster-name", "")
	f.want(400, "[{key_missing,name}]", "PUT", "cluster-name", "")
	f.want(204, "", "PUT", "cluster-name", `{"name":"shop"}`)
	f.want(200, `{"name":"shop"}`, "GET", "cluster-name", "")
	f.want(200, `"cluster_name":"shop"`, "GET", "overview", "")
}

func TestHealthChecks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, check := range []string{"healthchecks/node", "health/checks/alarms", "health/checks/local-alarms",
		"health/checks/virtual-hosts", "health/checks/node-is-quorum-critical", "aliveness-test/%2F",
		"health/checks/port-listener/5672", "health/checks/protocol-listener/amqp091"} {
		f.want(200, `"status":"ok"`, "GET", check, "")
	}
	f.want(503, `{"missing":1,"ports":[5672],"reason":"No active listener","status":"failed"}`, "GET", "health/checks/port-listener/1", "")
	f.want(503, `"protocols":["amqp"]`, "GET", "health/checks/protocol-listener/mqtt", "")
	f.want(404, "vhost_not_found", "GET", "aliveness-test/nope", "")
	f.Server.Block("disk")
	f.want(503, `"status":"failed"`, "GET", "health/checks/alarms", "")
}
