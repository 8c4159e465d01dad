package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// statisticsTake is how long RabbitMQ takes to have all of them: it gathers each second here.
const statisticsTake = 3 * time.Second

// keyRules note which keys tools find in what the management API tells of one topology at work, and
// what JSON type each value has.
func keyRules() []rule {
	// of notes the keys of what is at a path, some time after it has those that come late.
	of := func(path func(*probe, *work) string, late ...string) func(*probe) {
		return func(p *probe) {
			w := p.work()
			at := path(p, w)
			p.eventually(func() bool {
				a := p.api(http.MethodGet, at, nil).last()
				return !slices.ContainsFunc(late, func(key string) bool { return a.field(strings.Split(key, ".")...) == "absent" })
			})
			p.pause(statisticsTake)
			p.noteKeys("", p.api(http.MethodGet, at, nil).last().body)
		}
	}
	static := func(path string) func(*probe, *work) string {
		return func(*probe, *work) string { return path }
	}
	return []rule{
		{"keys: a queue", of(func(_ *probe, w *work) string { return "/api/queues/" + w.vhost + "/q" }, "consumer_details", "messages_ready")},
		{"keys: a queue of the list", of(func(_ *probe, w *work) string { return "/api/queues/" + w.vhost }, "messages_ready")},
		{"keys: an exchange", of(func(_ *probe, w *work) string { return "/api/exchanges/" + w.vhost + "/x" })},
		{"keys: a binding", of(func(_ *probe, w *work) string { return "/api/queues/" + w.vhost + "/q/bindings" })},
		{"keys: a connection", of(func(p *probe, w *work) string {
			var name string
			p.eventually(func() bool {
				list, _ := p.api(http.MethodGet, "/api/vhosts/"+w.vhost+"/connections", nil).body.([]any)
				for _, one := range list {
					name, _ = one.(object)["name"].(string)
				}
				return name != ""
			})
			return "/api/connections/" + strings.ReplaceAll(name, " ", "%20")
		}, "recv_oct", "channels")},
		{"keys: a channel", of(func(p *probe, w *work) string {
			var name string
			p.eventually(func() bool {
				list, _ := p.api(http.MethodGet, "/api/vhosts/"+w.vhost+"/channels", nil).body.([]any)
				for _, one := range list {
					name, _ = one.(object)["name"].(string)
				}
				return name != ""
			})
			return "/api/channels/" + strings.ReplaceAll(name, " ", "%20")
		}, "state")},
		{"keys: a consumer", of(func(_ *probe, w *work) string { return "/api/consumers/" + w.vhost }, "consumer_tag")},
		{"keys: a virtual host", of(func(_ *probe, w *work) string { return "/api/vhosts/" + w.vhost }, "messages")},
		{"keys: the overview", of(static("/api/overview"), "message_stats.ack", "message_stats.ack_details", "queue_totals.messages")},
		{"keys: a node", of(static("/api/nodes"), "mem_used")},
		{"keys: a user", of(static("/api/users/guest"))},
		{"keys: a policy", of(func(p *probe, w *work) string { return "/api/policies/" + w.vhost })},
	}
}

// work is a virtual host in which something is going on: a queue with a consumer, with messages
// that are ready, unacknowledged and settled.
type work struct {
	vhost string
}

func (p *probe) work() *work {
	w := &work{vhost: p.vhost("v")}
	p.put("/api/policies/"+w.vhost+"/p", object{"pattern": "^none", "definition": object{"max-length": 3}})
	c := p.channelAs(guest(), w.vhost).confirming()
	_, err := c.QueueDeclare("q", true, false, false, false, amqp.Table{"x-max-length": int32(100)})
	p.must(err)
	p.must(c.ExchangeDeclare("x", "topic", true, false, false, false, nil))
	c.bind("q", "k", "x", nil)
	p.must(c.Qos(2, 0, false))
	deliveries := c.consume("q", "tag", nil)
	for range 5 {
		c.publish("x", "k", amqp.Publishing{Body: []byte("body"), DeliveryMode: 2})
	}
	d := p.next(deliveries)
	p.must(d.Ack(false))
	d = p.next(deliveries)
	p.must(d.Nack(false, true))
	_, _, err = c.Get("q", true)
	p.must(err)
	return w
}

// last is of a list its last element, which is the one in question, else the answer.
func (a answer) last() answer {
	if list, ok := a.body.([]any); ok && len(list) > 0 {
		a.body = list[len(list)-1]
	}
	return a
}

// noteKeys notes the keys of an object, and those of objects in it with a dot between. Rates have
// all the same keys, and are noted as such. Keys that name something are left out.
func (p *probe) noteKeys(prefix string, v any) {
	body, ok := v.(object)
	if !ok {
		p.note("whole", "%s", kind(v))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(body)) {
		value := body[key]
		inner, isObject := value.(object)
		switch {
		case isObject && strings.HasSuffix(key, "_details") && inner["rate"] != nil:
			p.note(prefix+key, "rate")
		case isObject && len(inner) > 0 && !slices.Contains([]string{"client_properties", "arguments", "definition", "cluster_state"}, key):
			p.noteKeys(prefix+key+".", value)
		default:
			p.note(prefix+key, "%s", kind(value))
		}
	}
}
