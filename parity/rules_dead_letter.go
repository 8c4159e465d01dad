package main

import (
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	field "github.com/duepost/duepost/internal/amqp"
)

// deadLetterRules are about why messages die, where they go and what is written on them.
func deadLetterRules() []rule {
	return []rule{
		{"dead letter: rejected", dump(nil, func(c *channel, q string) {
			d, _, err := c.Get(q, false)
			c.p.must(err)
			c.p.must(d.Reject(false))
		})},
		{"dead letter: nacked", dump(nil, func(c *channel, q string) {
			d, _, err := c.Get(q, false)
			c.p.must(err)
			c.p.must(d.Nack(true, false))
		})},
		{"dead letter: expired in the queue", dump(amqp.Table{"x-message-ttl": int32(100)}, nil)},
		{"dead letter: maxlen", dump(amqp.Table{"x-max-length": int32(1)}, func(c *channel, q string) { c.send(q, "second") })},
		{"dead letter: maxlen 0", dump(amqp.Table{"x-max-length": int32(0)}, nil)},
		{"dead letter: reject-publish-dlx", dump(amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish-dlx"}, nil)},
		{"dead letter: expiration is taken off", func(p *probe) {
			c := p.channel()
			dead, args := c.deadLetters(nil)
			q := c.queue("q", args)
			c.publish("", q, amqp.Publishing{Body: []byte("m"), Expiration: "50"})
			noteHeaders(p, dead)
		}},
		{"dead letter: keeps its routing key", func(p *probe) {
			c := p.channel()
			x := c.exchange("x", "fanout", nil)
			dead := c.queue("dead", nil)
			c.bind(dead, "", x, nil)
			q := c.queue("q", amqp.Table{"x-dead-letter-exchange": x, "x-message-ttl": int32(50)})
			c.bind(q, "some.key", "amq.direct", nil)
			c.publish("amq.direct", "some.key", amqp.Publishing{Body: []byte("m")})
			p.note("dead letter", "%s", describe(c.await(dead)))
			p.must(c.QueueUnbind(q, "some.key", "amq.direct", nil))
		}},
		{"dead letter: CC and BCC", func(p *probe) {
			c := p.channel()
			x := c.exchange("x", "direct", nil)
			dead, args := c.queue("dead", nil), amqp.Table{"x-dead-letter-exchange": x, "x-message-ttl": int32(50)}
			q := c.queue("q", args)
			for _, key := range []string{q, "cc", "bcc"} {
				c.bind(dead, key, x, nil)
			}
			c.publish("", q, amqp.Publishing{Body: []byte("m"), Headers: amqp.Table{"CC": []any{"cc"}, "BCC": []any{"bcc"}}})
			p.note("dead letter", "%s", describe(c.await(dead)))
			p.note("copies", "%s", c.bodies(dead))
		}},
		{"dead letter: a new key removes CC", func(p *probe) {
			c := p.channel()
			dead, args := c.deadLetters(amqp.Table{"x-message-ttl": int32(50)})
			q := c.queue("q", args)
			c.publish("", q, amqp.Publishing{Body: []byte("m"), Headers: amqp.Table{"CC": []any{"nowhere"}}})
			p.note("dead letter", "%s", describe(c.await(dead)))
		}},
		{"dead letter: twice in one queue", func(p *probe) {
			c := p.channel()
			dead, args := c.deadLetters(nil)
			q := c.queue("q", args)
			c.send(q, "m")
			for range 2 {
				d, _, err := c.Get(q, false)
				p.must(err)
				p.must(d.Reject(false))
				d = c.await(dead)
				c.publish("", q, amqp.Publishing{Body: d.Body, Headers: d.Headers})
			}
			d, _, err := c.Get(q, false)
			p.must(err)
			p.note("headers that the client sent back", "%s", format(d.Headers))
		}},
		{"dead letter: through two queues", func(p *probe) {
			c := p.channel()
			last := c.queue("last", nil)
			middle := c.queue("middle", amqp.Table{"x-message-ttl": int32(50),
				"x-dead-letter-exchange": "", "x-dead-letter-routing-key": last})
			q := c.queue("q", amqp.Table{"x-message-ttl": int32(50),
				"x-dead-letter-exchange": "", "x-dead-letter-routing-key": middle})
			c.send(q, "m")
			noteHeaders(p, last)
		}},
		{"dead letter: round by rejects counts", func(p *probe) {
			c := p.channel()
			name := p.name("q")
			q := c.queue("q", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name})
			d := c.consume(q, "t", nil)
			c.send(q, "m")
			for range 3 {
				p.must(p.next(d).Reject(false))
			}
			third := p.next(d)
			p.note("redelivered", "%t", third.Redelivered)
			for i, death := range third.Headers["x-death"].([]any) {
				p.note(fmt.Sprint("x-death ", i), "%s", format(death))
			}
		}},
		{"dead letter: round by expiry is dropped", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-message-ttl": int32(50),
				"x-dead-letter-exchange": "", "x-dead-letter-routing-key": p.name("q")})
			c.send(q, "m")
			p.note("gone", "%t", c.holds(q, 0))
		}},
		{"dead letter: no such exchange", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-message-ttl": int32(50), "x-dead-letter-exchange": p.name("none")})
			c.send(q, "m")
			p.note("gone", "%t", c.holds(q, 0))
			p.note("channel", "%s", c.outcome(func(*channel) error { return nil }))
		}},
		{"dead letter: alternate exchange of the target", func(p *probe) {
			c := p.channel()
			ae := c.exchange("ae", "fanout", nil)
			other := c.queue("other", nil)
			c.bind(other, "", ae, nil)
			x := c.exchange("x", "direct", amqp.Table{"alternate-exchange": ae})
			q := c.queue("q", amqp.Table{"x-message-ttl": int32(50), "x-dead-letter-exchange": x})
			c.send(q, "m")
			p.note("dead letter", "%s", describe(c.await(other)))
		}},
		{"dead letter: purged and deleted messages are none", func(p *probe) {
			c := p.channel()
			dead, args := c.deadLetters(nil)
			q := c.queue("q", args)
			c.send(q, "m")
			n, err := c.QueuePurge(q, false)
			p.must(err)
			c.send(q, "m")
			m, err := c.QueueDelete(q, false, false, false)
			p.must(err)
			p.note("purged, deleted", "%d %d", n, m)
			p.note("dead letters", "%s", c.take(dead))
		}},
	}
}

// dump publishes a message with headers of its own, lets it die and notes its headers.
func dump(args amqp.Table, kill func(c *channel, q string)) func(*probe) {
	return func(p *probe) {
		c := p.channel()
		dead, args := c.deadLetters(args)
		q := c.queue("q", args)
		r := p.raw()
		r.publish(q, own(p), "m")
		if kill != nil {
			c.holds(q, 1)
			kill(c, q)
		}
		noteHeaders(p, dead)
	}
}

// own is headers of a publisher, not in the order of the alphabet.
func own(p *probe) field.RawTable {
	var headers []byte
	for _, pair := range []struct {
		key   string
		value any
	}{{"z", int32(1)}, {"a", "text"}, {"nested", field.Table{"k": true}}} {
		var err error
		headers, err = field.AppendField(headers, pair.key, pair.value)
		p.must(err)
	}
	return headers
}

// noteHeaders notes the order of the headers, then each header; the tables of x-death keep their
// own order.
func noteHeaders(p *probe, queue string) {
	headers := p.raw().headers(queue)
	var names []string
	for _, h := range headers {
		name, _, _ := strings.Cut(h, " ")
		names = append(names, name)
	}
	p.note("order", "%s", strings.Join(names, " "))
	for _, h := range sorted(headers) {
		name, value, _ := strings.Cut(h, " ")
		p.note(name, "%s", value)
	}
}
