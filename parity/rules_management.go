package main

import (
	"fmt"
	"net/http"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"
)

// definitionRules are about exporting and importing what was declared.
func definitionRules() []rule {
	return []rule{
		{"definitions of a virtual host", func(p *probe) {
			vhost := p.vhost("v")
			c := p.channelAs(guest(), vhost)
			_, err := c.QueueDeclare("q", true, false, false, false, amqp.Table{"x-max-length": int32(5), "x-queue-type": "classic"})
			p.must(err)
			_, err = c.QueueDeclare("transient", false, true, false, false, nil)
			p.must(err)
			p.must(c.ExchangeDeclare("x", "topic", true, false, true, false, amqp.Table{"alternate-exchange": "amq.fanout"}))
			p.must(c.QueueBind("q", "k", "x", false, nil))
			p.must(c.ExchangeBind("x", "e", "amq.direct", false, nil))
			p.put("/api/policies/"+vhost+"/p", object{"pattern": "^q", "definition": object{"max-length": 3}})
			a := p.api(http.MethodGet, "/api/definitions/"+vhost, nil)
			for _, key := range []string{"policies", "queues", "exchanges", "bindings", "parameters", "vhosts", "users", "permissions"} {
				p.note(key, "%s", a.fieldSorted(key))
			}
		}},
		{"definitions of all: keys", func(p *probe) {
			p.user("u", "management")
			a := p.api(http.MethodGet, "/api/definitions", nil)
			body, _ := a.body.(object)
			for _, key := range []string{"rabbit_version", "rabbitmq_version", "product_name", "product_version", "users", "vhosts",
				"permissions", "topic_permissions", "parameters", "global_parameters", "policies", "queues", "exchanges", "bindings"} {
				value, ok := body[key]
				list, isList := value.([]any)
				switch {
				case !ok:
					p.note(key, "absent")
				case isList && key != "users" && key != "permissions" && key != "vhosts":
					p.note(key, "[]")
				case isList && len(list) > 0:
					p.note(key, "[%s]", longest(list))
				default:
					p.note(key, "%s", shape(value))
				}
			}
		}},
		{"definitions round trip", func(p *probe) {
			vhost := p.vhost("v")
			body := object{
				"queues":    []any{object{"name": "q", "durable": true, "auto_delete": false, "arguments": object{"x-max-length": 5}}},
				"exchanges": []any{object{"name": "x", "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": object{}}},
				"bindings": []any{object{"source": "x", "destination": "q", "destination_type": "queue",
					"routing_key": "k", "arguments": object{"a": "b"}}},
				"policies": []any{},
			}
			p.note("import", "%d", p.api(http.MethodPost, "/api/definitions/"+vhost, body).status)
			p.note("import again", "%d", p.api(http.MethodPost, "/api/definitions/"+vhost, body).status)
			a := p.api(http.MethodGet, "/api/definitions/"+vhost, nil)
			for _, key := range []string{"queues", "exchanges", "bindings", "policies"} {
				p.note(key, "%s", a.field(key))
			}
		}},
		{"definitions: no JSON", func(p *probe) {
			p.note("import", "%d", p.api(http.MethodPost, "/api/definitions", "{").status)
		}},
	}
}

// managementRules are about what tools read over HTTP.
func managementRules() []rule {
	// keys notes the JSON type of each key that tools read, once all are there or time is up.
	keys := func(p *probe, path string, names ...string) {
		var a answer
		p.eventually(func() bool {
			a = p.api(http.MethodGet, path, nil)
			return !slices.ContainsFunc(names, func(name string) bool { return a.field(name) == "absent" })
		})
		body, _ := a.body.(object)
		for _, name := range names {
			value, ok := body[name]
			if !ok {
				p.note(name, "absent")
				continue
			}
			p.note(name, "%s", kind(value))
		}
	}
	return []rule{
		{"management: keys of a queue", func(p *probe) {
			c := p.channel()
			q := c.queue("q", nil)
			c.send(q, "m")
			keys(p, "/api/queues/%2F/"+q, "name", "vhost", "type", "durable", "auto_delete", "exclusive", "arguments", "node", "state",
				"policy", "operator_policy", "effective_policy_definition", "owner_pid_details", "consumers", "consumer_details",
				"messages", "messages_ready", "messages_unacknowledged", "message_bytes", "message_bytes_ready",
				"message_bytes_unacknowledged", "memory", "exclusive_consumer_tag", "consumer_utilisation", "consumer_capacity",
				"single_active_consumer_tag", "head_message_timestamp")
		}},
		{"management: values of a queue", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-max-length": int32(9)})
			for range 3 {
				c.send(q, "four")
			}
			p.must(c.holdsError(q, 3))
			_, _, err := c.Get(q, false)
			p.must(err)
			var a answer
			p.eventually(func() bool {
				a = p.api(http.MethodGet, "/api/queues/%2F/"+q, nil)
				return a.field("messages_unacknowledged") == "1" && a.field("messages") == "3" &&
					a.field("state") != "absent" && a.field("message_bytes_ready") == "8"
			})
			for _, key := range []string{"name", "vhost", "type", "durable", "auto_delete", "exclusive", "arguments", "state", "policy",
				"consumers", "messages", "messages_ready", "messages_unacknowledged", "message_bytes", "message_bytes_ready",
				"message_bytes_unacknowledged"} {
				p.note(key, "%s", a.field(key))
			}
		}},
		{"management: an exchange", func(p *probe) {
			x := p.channel().exchange("x", "topic", amqp.Table{"alternate-exchange": "amq.fanout"})
			a := p.api(http.MethodGet, "/api/exchanges/%2F/"+x, nil)
			for _, key := range []string{"name", "vhost", "type", "durable", "auto_delete", "internal", "arguments", "policy", "user_who_performed_action"} {
				p.note(key, "%s", a.field(key))
			}
		}},
		{"management: exchanges that are there", func(p *probe) {
			a := p.api(http.MethodGet, "/api/exchanges/"+p.vhost("v"), nil)
			list, _ := a.body.([]any)
			for _, one := range list {
				x := answer{body: one}
				p.note(x.field("name"), "%s durable=%s internal=%s", x.field("type"), x.field("durable"), x.field("internal"))
			}
		}},
		{"management: bindings", func(p *probe) {
			c := p.channel()
			x, q := c.exchange("x", "topic", nil), c.queue("q", nil)
			c.bind(q, "a.b", x, nil)
			p.note("of the queue", "%s", p.api(http.MethodGet, "/api/queues/%2F/"+q+"/bindings", nil).show())
			p.note("of the exchange", "%s", p.api(http.MethodGet, "/api/exchanges/%2F/"+x+"/bindings/source", nil).show())
			p.note("between", "%s", p.api(http.MethodGet, "/api/bindings/%2F/e/"+x+"/q/"+q, nil).show())
			p.note("one", "%s", p.api(http.MethodGet, "/api/bindings/%2F/e/"+x+"/q/"+q+"/a.b", nil).show())
		}},
		{"management: a virtual host", func(p *probe) {
			vhost := p.vhost("v")
			keys(p, "/api/vhosts/"+vhost, "name", "description", "tags", "tracing", "default_queue_type", "metadata")
			p.put("/api/vhosts/"+p.name("described"), object{"description": "d", "tags": "a,b", "tracing": false})
			a := p.api(http.MethodGet, "/api/vhosts/"+p.name("described"), nil)
			for _, key := range []string{"name", "description", "tags", "tracing"} {
				p.note(key, "%s", a.field(key))
			}
			p.remove("/api/vhosts/" + p.name("described"))
		}},
		{"management: a user", func(p *probe) {
			u := p.user("u", "management,policymaker")
			a := p.api(http.MethodGet, "/api/users/"+u.user, nil)
			for _, key := range []string{"name", "tags", "hashing_algorithm", "limits"} {
				p.note(key, "%s", a.field(key))
			}
			p.grant(u, "/", "^a", "^b", "^c")
			p.note("permissions", "%s", p.api(http.MethodGet, "/api/users/"+u.user+"/permissions", nil).show())
			who, err := p.b.call(p.ctx, u, http.MethodGet, "/api/whoami", nil)
			p.must(err)
			p.note("whoami", "%s", who.show())
		}},
		{"management: keys of the overview", func(p *probe) {
			keys(p, "/api/overview", "management_version", "rabbitmq_version", "product_name", "product_version", "erlang_version",
				"cluster_name", "node", "rates_mode", "exchange_types", "queue_totals", "object_totals", "message_stats", "listeners", "contexts")
		}},
		{"management: codes", func(p *probe) {
			for _, ask := range []struct {
				method, path string
				body         any
			}{
				{http.MethodGet, "/api/queues/%2F/none", nil},
				{http.MethodGet, "/api/queues/nowhere", nil},
				{http.MethodGet, "/api/nonsense", nil},
				{http.MethodDelete, "/api/queues/%2F/none", nil},
				{http.MethodDelete, "/api/exchanges/%2F/amq.direct", nil},
				{http.MethodPut, "/api/queues/%2F/" + p.name("q"), object{"durable": true}},
				{http.MethodPut, "/api/queues/%2F/" + p.name("q"), object{"durable": true}},
				{http.MethodPut, "/api/queues/%2F/" + p.name("q"), object{"durable": false}},
				{http.MethodPut, "/api/queues/%2F/" + p.name("q"), object{"arguments": object{"x-max-length": "a"}}},
				{http.MethodPut, "/api/exchanges/%2F/" + p.name("x"), object{}},
				{http.MethodPut, "/api/exchanges/%2F/" + p.name("x"), object{"type": "topic"}},
				{http.MethodPost, "/api/bindings/%2F/e/" + p.name("x") + "/q/" + p.name("q"), object{"routing_key": "k"}},
				{http.MethodPost, "/api/bindings/%2F/e/" + p.name("x") + "/q/none", object{"routing_key": "k"}},
				{http.MethodDelete, "/api/bindings/%2F/e/" + p.name("x") + "/q/" + p.name("q") + "/k", nil},
				{http.MethodDelete, "/api/queues/%2F/" + p.name("q") + "/contents", nil},
				{http.MethodDelete, "/api/queues/%2F/" + p.name("q"), nil},
				{http.MethodPut, "/api/users/" + p.name("u"), object{"tags": ""}},
				{http.MethodPut, "/api/users/" + p.name("u"), object{"password": "p"}},
				{http.MethodPut, "/api/permissions/%2F/none", object{"configure": "", "write": "", "read": ""}},
				{http.MethodPut, "/api/permissions/%2F/guest", object{"configure": "("}},
				{http.MethodPatch, "/api/overview", nil},
			} {
				p.note(ask.method+" "+ask.path+" "+fmt.Sprint(ask.body), "%s", p.api(ask.method, ask.path, ask.body).show())
			}
		}},
		{"management: logins", func(p *probe) {
			for _, as := range []account{{"guest", "wrong"}, {"nobody", "p"}, p.user("plain", ""), p.user("manager", "management")} {
				a, err := p.b.call(p.ctx, as, http.MethodGet, "/api/users", nil)
				p.must(err)
				p.note(as.user, "%s", a.show())
			}
		}},
	}
}
