package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/requirement"
)

// apiVariable tells a program where the management API is.
const apiVariable = "DUEPOST_E2E_API"

// manager asks the management API as the clients of RabbitMQ's do: names escaped by segment, JSON,
// and answers decoded into fields of one type.
type manager struct {
	t    *testing.T
	base string
}

// ask returns the status and, where there is any, decodes the answer into v.
func (m *manager) ask(method string, path []string, body, v any) int {
	m.t.Helper()
	escaped := make([]string, len(path))
	for i, segment := range path {
		escaped[i] = url.PathEscape(segment)
	}
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			m.t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	at := m.base + "/api/" + strings.Join(escaped, "/")
	request, err := http.NewRequestWithContext(m.t.Context(), method, at, content)
	if err != nil {
		m.t.Fatal(err)
	}
	request.SetBasicAuth("guest", "guest")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		m.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	if v != nil && response.StatusCode < 300 {
		if err := json.Unmarshal(text, v); err != nil {
			m.t.Fatalf("%s %s: %v in %s", method, at, err, text)
		}
	}
	if response.StatusCode >= 300 {
		m.t.Logf("%s %s: %d %s", method, at, response.StatusCode, text)
	}
	return response.StatusCode
}

// want asks and fails unless the status is the one that RabbitMQ would have.
func (m *manager) want(status int, method string, path []string, body, v any) {
	m.t.Helper()
	if got := m.ask(method, path, body, v); got != status {
		m.t.Errorf("%s %q: %d, want %d", method, path, got, status)
	}
}

type values map[string]any

// TestManagementRound does over HTTP what tools do to set up an application, uses it, moves it to
// another virtual host by its definitions, and closes what is connected.
func TestManagementRound(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	m := &manager{t, b.httpURL}
	const vhost = "shop/eu" // a name that must be escaped
	m.want(201, "PUT", []string{"vhosts", vhost}, values{"description": "d", "tags": "a,b"}, nil)
	m.want(201, "PUT", []string{"users", "orders"}, values{"password": "s3cret", "tags": "management"}, nil)
	all := values{"configure": ".*", "write": ".*", "read": ".*"}
	m.want(201, "PUT", []string{"permissions", vhost, "orders"}, all, nil)
	m.want(204, "PUT", []string{"permissions", vhost, "guest"}, all, nil) // who makes a virtual host may use it
	m.want(201, "PUT", []string{"policies", vhost, "bounded"}, values{"pattern": "^orders", "apply-to": "queues", "priority": 1,
		"definition": values{"max-length": 3, "overflow": "reject-publish"}}, nil)
	m.want(201, "PUT", []string{"exchanges", vhost, "events"}, values{"type": "topic", "durable": true}, nil)
	m.want(201, "PUT", []string{"exchanges", vhost, "later"}, values{"type": "x-delayed-message", "durable": true,
		"arguments": values{"x-delayed-type": "topic"}}, nil)
	m.want(201, "PUT", []string{"queues", vhost, "orders.new"}, values{"durable": true, "arguments": values{"x-message-ttl": 60000}}, nil)
	for _, exchange := range []string{"events", "later"} {
		m.want(201, "POST", []string{"bindings", vhost, "e", exchange, "q", "orders.new"},
			values{"routing_key": "order.#", "arguments": values{}}, nil)
	}
	m.messages(vhost)
	m.definitions(vhost)
	m.connections(b, vhost)

	m.want(204, "DELETE", []string{"policies", vhost, "bounded"}, nil, nil)
	m.want(204, "DELETE", []string{"queues", vhost, "orders.new"}, nil, nil)
	m.want(404, "GET", []string{"queues", vhost, "orders.new"}, nil, nil)
	m.want(204, "DELETE", []string{"users", "orders"}, nil, nil)
	m.want(204, "DELETE", []string{"vhosts", vhost}, nil, nil)
	m.want(404, "GET", []string{"vhosts", vhost}, nil, nil)
}

// messages publishes and gets, at once and delayed.
func (m *manager) messages(vhost string) {
	m.t.Helper()
	publish := func(exchange, payload string, headers values) (answer struct{ Routed bool }) {
		m.want(200, "POST", []string{"exchanges", vhost, exchange, "publish"}, values{"routing_key": "order.1", "payload": payload,
			"payload_encoding": "string", "properties": values{"delivery_mode": 2, "headers": headers}}, &answer)
		return answer
	}
	if !publish("events", "now", values{"shop": "eu"}).Routed {
		m.t.Error("a message that a queue takes is said not to be routed")
	}
	sent := time.Now()
	publish("later", "then", values{"x-delay": 300})
	var queue struct {
		Messages  int            `json:"messages"`
		Policy    string         `json:"policy"`
		Durable   bool           `json:"durable"`
		Arguments map[string]any `json:"arguments"`
		Effective map[string]any `json:"effective_policy_definition"`
	}
	for queue.Messages < 2 && time.Since(sent) < readyWithin {
		m.want(200, "GET", []string{"queues", vhost, "orders.new"}, nil, &queue)
	}
	if took := time.Since(sent); took < 300*time.Millisecond {
		m.t.Errorf("a message with a delay of 300 ms came after %v", took)
	}
	if queue.Policy != "bounded" || !queue.Durable || queue.Arguments["x-message-ttl"] != 60000.0 || queue.Effective["max-length"] != 3.0 {
		m.t.Errorf("the queue is %+v", queue)
	}
	var got []struct {
		Payload    string `json:"payload"`
		Exchange   string `json:"exchange"`
		Properties struct {
			DeliveryMode int            `json:"delivery_mode"`
			Headers      map[string]any `json:"headers"`
		} `json:"properties"`
	}
	m.want(200, "POST", []string{"queues", vhost, "orders.new", "get"},
		values{"count": 5, "ackmode": "ack_requeue_false", "encoding": "auto"}, &got)
	if len(got) != 2 || got[0].Payload != "now" || got[0].Properties.Headers["shop"] != "eu" || got[0].Properties.DeliveryMode != 2 ||
		got[1].Payload != "then" || got[1].Exchange != "later" || got[1].Properties.Headers["x-delay"] != -300.0 {
		m.t.Errorf("got %+v", got)
	}
}

// definitions exports a virtual host and imports the file into another one, which exports the same.
func (m *manager) definitions(vhost string) {
	m.t.Helper()
	var file, again json.RawMessage
	m.want(200, "GET", []string{"definitions", vhost}, nil, &file)
	m.want(201, "PUT", []string{"vhosts", "copy"}, nil, nil)
	// As RabbitMQ writes it, names of virtual hosts are in some parts of the file.
	moved := json.RawMessage(strings.ReplaceAll(string(file), `"`+vhost+`"`, `"copy"`))
	m.want(204, "POST", []string{"definitions", "copy"}, moved, nil)
	m.want(200, "GET", []string{"definitions", "copy"}, nil, &again)
	if !bytes.Equal(bytes.TrimSpace(moved), bytes.TrimSpace(again)) {
		m.t.Errorf("exported, imported and exported again:\n%s\n%s", moved, again)
	}
	var bindings []struct {
		Source        string `json:"source"`
		PropertiesKey string `json:"properties_key"`
	}
	m.want(200, "GET", []string{"bindings", "copy"}, nil, &bindings)
	if len(bindings) != 3 { // the default exchange's, too
		m.t.Errorf("the copy has the bindings %+v", bindings)
	}
	m.want(204, "DELETE", []string{"vhosts", "copy"}, nil, nil)
}

// connections finds a client among the connections and closes it.
func (m *manager) connections(b *broker, vhost string) {
	m.t.Helper()
	conn, err := amqp.DialConfig(strings.Replace(b.url, "guest:guest", "orders:s3cret", 1), amqp.Config{Vhost: vhost,
		Properties: amqp.Table{"connection_name": "till 7"}})
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	var connections []struct {
		Name             string `json:"name"`
		User             string `json:"user"`
		Vhost            string `json:"vhost"`
		PeerPort         int    `json:"peer_port"`
		UserProvidedName string `json:"user_provided_name"`
	}
	m.want(200, "GET", []string{"vhosts", vhost, "connections"}, nil, &connections)
	if len(connections) != 1 || connections[0].User != "orders" || connections[0].Vhost != vhost ||
		connections[0].UserProvidedName != "till 7" || connections[0].PeerPort == 0 {
		m.t.Fatalf("connections are %+v", connections)
	}
	m.want(204, "DELETE", []string{"connections", connections[0].Name}, nil, nil)
	select {
	case why := <-closed:
		if why == nil || why.Code != amqp.ConnectionForced {
			m.t.Errorf("the client was told %v, want 320", why)
		}
	case <-time.After(readyWithin):
		m.t.Error("the connection was not closed")
	}
}

// TestNodeManagement does the same round in Node, with its own HTTP client and amqplib.
func TestNodeManagement(t *testing.T) {
	t.Parallel()
	node := requirement.Tool(t, "node", "Debian package nodejs")
	requirement.File(t, "run npm ci in e2e/node", "node/node_modules/amqplib/package.json")
	b := startBroker(t)
	ctx, cancel := context.WithTimeout(t.Context(), schemeLimit)
	defer cancel()
	cmd := program{dir: "node", argv: []string{node, "management.js"}}.command(ctx)
	cmd.Env = append(os.Environ(), urlVariable+"="+b.url, apiVariable+"="+b.httpURL)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "round done") {
		t.Errorf("ended with %v:\n%s", err, out)
	}
}
