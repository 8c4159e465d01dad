package main

import (
	"fmt"
	"net/http"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// object is a JSON object.
type object = map[string]any

// policyRules are about policies on queues and exchanges that are there.
func policyRules() []rule {
	return []rule{
		{"policy: ttl set on a live queue", func(p *probe) {
			c := p.channel()
			dead, args := c.deadLetters(nil)
			q := c.queue("q", args)
			c.send(q, "m")
			p.must(c.holdsError(q, 1))
			p.policy("policies", "p", "q", 0, object{"message-ttl": 50})
			c.send(q, "m2")
			p.note("gone", "%t", c.holds(q, 0))
			p.note("dead letters", "%t %s", c.holds(dead, 2), c.bodies(dead))
		}},
		{"policy: a wrong value of each setting", func(p *probe) {
			for _, s := range []struct {
				key   string
				value any
			}{
				{"message-ttl", -1}, {"expires", 0}, {"max-length", -1}, {"max-length-bytes", -1}, {"dead-letter-exchange", 1},
				{"dead-letter-routing-key", 1}, {"dead-letter-strategy", 1}, {"overflow", 1}, {"alternate-exchange", 1},
				{"delivery-limit", true}, {"max-in-memory-length", -1}, {"max-in-memory-bytes", -1}, {"queue-mode", 1},
				{"queue-version", 3}, {"queue-leader-locator", 1},
			} {
				p.note(s.key, "%s", p.api(http.MethodPut, "/api/policies/%2F/"+p.name("p"),
					object{"pattern": "^none", "definition": object{s.key: s.value}}).show())
			}
		}},
		{"policy: ttl lowered on a live queue", func(p *probe) {
			c := p.channel()
			p.policy("policies", "p", "q", 0, object{"message-ttl": 3600000})
			q := c.queue("q", nil)
			c.send(q, "m")
			p.must(c.holdsError(q, 1))
			p.policy("policies", "p", "q", 0, object{"message-ttl": 50})
			c.send(q, "m2")
			p.pause(awaitTimeout / 20)
			p.note("left", "%s", c.bodies(q))
		}},
		{"policy: max-length lowered on a live queue", func(p *probe) {
			c := p.channel()
			dead, args := c.deadLetters(nil)
			q := c.queue("q", args)
			for i := range 4 {
				c.send(q, fmt.Sprint("m", i))
			}
			p.must(c.holdsError(q, 4))
			p.policy("policies", "p", "q", 0, object{"max-length": 1})
			p.note("left", "%t", c.holds(q, 1))
			p.must(c.holdsError(dead, 3))
			p.note("dead letters", "%s", c.bodies(dead))
			p.note("kept", "%s", c.bodies(q))
		}},
		{"policy: dead-letter exchange of a live queue", func(p *probe) {
			c := p.channel()
			dead, q := c.queue("dead", nil), c.queue("q", nil)
			p.policy("policies", "p", "q", 0, object{"dead-letter-exchange": "", "dead-letter-routing-key": dead})
			p.must(c.applied("/api/queues/%2F/"+q, p.name("p")))
			c.send(q, "m")
			p.must(c.holdsError(q, 1))
			d, _, err := c.Get(q, false)
			p.must(err)
			p.must(d.Reject(false))
			p.note("dead letter", "%s", c.await(dead).Body)
		}},
		{"policy: alternate exchange of a live exchange", func(p *probe) {
			c := p.channel()
			x, q := c.exchange("x", "direct", nil), c.queue("other", nil)
			c.bind(q, "", "amq.fanout", nil)
			p.policy("policies", "p", "x", 0, object{"alternate-exchange": "amq.fanout"})
			p.note("routed", "%t", p.eventually(func() bool {
				c.publish(x, "none", amqp.Publishing{Body: []byte("m")})
				return c.body(q) == "m"
			}))
			p.must(c.QueueUnbind(q, "", "amq.fanout", nil))
		}},
		{"policy: expires on a live queue", func(p *probe) {
			c := p.channel()
			q := c.queue("q", nil)
			p.policy("policies", "p", "q", 0, object{"expires": 100})
			p.note("gone", "%t", p.eventually(func() bool {
				return p.api(http.MethodGet, "/api/queues/%2F/"+q, nil).status == http.StatusNotFound
			}))
		}},
		{"policy: the shorter of argument and policy", func(p *probe) {
			c := p.channel().confirming()
			p.policy("policies", "p", "q", 0, object{"max-length": 2, "overflow": "reject-publish"})
			q := c.queue("q", amqp.Table{"x-max-length": int32(3), "x-overflow": "drop-head"})
			for i := range 4 {
				p.note(fmt.Sprint("publish ", i), "%s", c.send(q, fmt.Sprint("m", i)))
			}
			p.note("kept", "%s", c.bodies(q))
		}},
		{"policy: the highest priority", func(p *probe) {
			c := p.channel()
			p.policy("policies", "low", "q", 1, object{"max-length": 1})
			p.policy("policies", "high", "q", 2, object{"max-length": 2})
			q := c.queue("q", nil)
			p.noteQueue(q)
			p.remove("/api/policies/%2F/" + p.name("high"))
			p.must(c.applied("/api/queues/%2F/"+q, p.name("low")))
			p.noteQueue(q)
		}},
		{"operator policy: the lower of two", func(p *probe) {
			c := p.channel().confirming()
			p.policy("policies", "user", "q", 0, object{"max-length": 5, "message-ttl": 3600000, "overflow": "reject-publish"})
			p.policy("operator-policies", "op", "q", 0, object{"max-length": 2, "expires": 3600000})
			q := c.queue("q", nil)
			for i := range 3 {
				p.note(fmt.Sprint("publish ", i), "%s", c.send(q, fmt.Sprint("m", i)))
			}
			p.noteQueue(q)
		}},
		{"policy: mistakes", func(p *probe) { policyMistakes(p, "policies") }},
		{"operator policy: mistakes", func(p *probe) { policyMistakes(p, "operator-policies") }},
		{"policy: as it is listed", func(p *probe) {
			p.policy("policies", "p", "nothing", 3, object{"max-length": 5})
			p.note("get", "%s", p.api(http.MethodGet, "/api/policies/%2F/"+p.name("p"), nil).show())
			p.note("none", "%s", p.api(http.MethodGet, "/api/policies/%2F/none", nil).show())
			p.note("delete none", "%s", p.api(http.MethodDelete, "/api/policies/%2F/none", nil).show())
		}},
	}
}

// applied waits until a policy is that of a queue.
func (c *channel) applied(path, policy string) error {
	if !c.p.eventually(func() bool { return c.p.api(http.MethodGet, path, nil).field("policy") == `"`+policy+`"` }) {
		return fmt.Errorf("%s does not get policy %s", path, policy)
	}
	return nil
}

// noteQueue notes what the API says about the policies of a queue, as soon as it says anything.
func (p *probe) noteQueue(q string) {
	var a answer
	p.eventually(func() bool {
		a = p.api(http.MethodGet, "/api/queues/%2F/"+q, nil)
		return strings.HasPrefix(a.field("policy"), `"`)
	})
	for _, key := range []string{"policy", "operator_policy", "effective_policy_definition"} {
		p.note(key, "%s", a.field(key))
	}
}

// policyMistakes sets policies that cannot be.
func policyMistakes(p *probe, kind string) {
	for _, m := range []struct {
		what string
		body any
	}{
		{"no pattern", object{"definition": object{"max-length": 1}}},
		{"no definition", object{"pattern": "x"}},
		{"empty definition", object{"pattern": "x", "definition": object{}}},
		{"pattern that is none", object{"pattern": "(", "definition": object{"max-length": 1}}},
		{"unknown setting", object{"pattern": "x", "definition": object{"nonsense": 1}}},
		{"wrong type", object{"pattern": "x", "definition": object{"max-length": "1"}}},
		{"negative", object{"pattern": "x", "definition": object{"message-ttl": -1}}},
		{"overflow that is none", object{"pattern": "x", "definition": object{"overflow": "nonsense"}}},
		{"apply-to that is none", object{"pattern": "x", "apply-to": "nonsense", "definition": object{"max-length": 1}}},
		{"priority that is none", object{"pattern": "x", "priority": "high", "definition": object{"max-length": 1}}},
		{"routing key without exchange", object{"pattern": "x", "definition": object{"dead-letter-routing-key": "k"}}},
		{"dead-letter-exchange", object{"pattern": "^nothing$", "definition": object{"dead-letter-exchange": "k"}}},
		{"delivery-limit", object{"pattern": "^nothing$", "definition": object{"delivery-limit": 3}}},
		{"no JSON", "{"},
		{"no object", "[1]"},
	} {
		p.note(m.what, "%s", p.api(http.MethodPut, "/api/"+kind+"/%2F/"+p.name("p"), m.body).show())
	}
	p.note("no virtual host", "%s", p.api(http.MethodPut, "/api/"+kind+"/nowhere/p",
		object{"pattern": "x", "definition": object{"max-length": 1}}).show())
	p.api(http.MethodDelete, "/api/"+kind+"/%2F/"+p.name("p"), nil)
}
