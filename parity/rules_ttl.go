package main

import (
	"fmt"
	"net/http"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// deadLetters declares a queue that gets what dies in another, and the arguments that send it there.
func (c *channel) deadLetters(args amqp.Table) (queue string, with amqp.Table) {
	queue = c.queue("dead", nil)
	with = amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
	for k, v := range args {
		with[k] = v
	}
	return queue, with
}

// ttlRules are about messages whose time ends.
func ttlRules() []rule {
	// dies publishes a message and describes what came of it in the dead-letter queue.
	dies := func(args amqp.Table, expiration string) func(*probe) {
		return func(p *probe) {
			c := p.channel()
			dead, args := c.deadLetters(args)
			q := c.queue("q", args)
			c.publish("", q, amqp.Publishing{Body: []byte("m"), Expiration: expiration})
			p.note("dead letter", "%s", describe(c.await(dead)))
			p.note("left", "%s", c.take(q))
		}
	}
	rules := []rule{
		{"ttl of the queue", dies(amqp.Table{"x-message-ttl": int32(50)}, "")},
		{"ttl of the message", dies(nil, "50")},
		{"ttl of queue and message: queue is shorter", dies(amqp.Table{"x-message-ttl": int32(50)}, "3600000")},
		{"ttl of queue and message: message is shorter", dies(amqp.Table{"x-message-ttl": int32(3600000)}, "50")},
		{"ttl 0 of the queue, no consumer", dies(amqp.Table{"x-message-ttl": int32(0)}, "")},
		{"ttl 0 of the message, no consumer", dies(nil, "0")},
		{"ttl 0 with a consumer", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-message-ttl": int32(0)})
			deliveries := c.consume(q, "t", nil)
			c.send(q, "m")
			p.note("delivered", "%s", describe(p.next(deliveries)))
		}},
		{"ttl: a requeued message expires", func(p *probe) {
			c := p.channel()
			dead, args := c.deadLetters(amqp.Table{"x-message-ttl": int32(100)})
			q := c.queue("q", args)
			d := c.consume(q, "t", nil)
			c.send(q, "m")
			first := p.next(d)
			p.must(c.Cancel("t", false))
			p.pause(200 * time.Millisecond)
			p.must(first.Nack(false, true))
			p.note("dead letter", "%s", describe(c.await(dead)))
		}},
		{"ttl: a short one behind a long one", func(p *probe) {
			c := p.channel()
			q := c.queue("q", nil)
			c.publish("", q, amqp.Publishing{Body: []byte("long"), Expiration: "3600000"})
			c.publish("", q, amqp.Publishing{Body: []byte("short"), Expiration: "50"})
			p.pause(400 * time.Millisecond)
			p.note("in the queue", "%s", c.count(q))
			p.note("got", "%s", c.bodies(q))
		}},
	}
	for i, expiration := range []string{"-1", "abc", "1.5", " 5", "5 ", "+5", "", "0x10", "315360000000", "315360000001",
		"99999999999999999999", "007"} {
		rules = append(rules, rule{fmt.Sprintf("expiration %q, text %d", expiration, i+1), func(p *probe) {
			c := p.channel()
			q := c.queue("q", nil)
			p.note("publish", "%s", c.outcome(func(c *channel) error {
				return c.PublishWithContext(p.ctx, "", q, false, false, amqp.Publishing{Body: []byte("m"), Expiration: expiration})
			}))
		}})
	}
	return rules
}

// expiryRules are about queues that nobody uses.
func expiryRules() []rule {
	const expires = 1500 * time.Millisecond
	// kept uses a queue for longer than it would live unused.
	kept := func(use func(*channel, string)) func(*probe) {
		return func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-expires": int32(expires.Milliseconds())})
			for range 8 {
				use(c, q)
				p.pause(expires / 5)
			}
			_, err := p.channelOn(c.conn).QueueDeclarePassive(q, false, false, false, false, nil)
			p.note("after using it", "%s", c.reply(err))
		}
	}
	// To look over AMQP would be use.
	gone := func(p *probe, q string) bool {
		return p.eventually(func() bool {
			return p.api(http.MethodGet, "/api/queues/%2F/"+q, nil).status == http.StatusNotFound
		})
	}
	args := amqp.Table{"x-expires": int32(expires.Milliseconds())}
	return []rule{
		{"x-expires: unused", func(p *probe) {
			c := p.channel()
			dead, with := c.deadLetters(amqp.Table{"x-expires": int32(50)})
			q := c.queue("q", with)
			c.send(q, "m")
			p.note("gone", "%t", gone(p, q))
			p.note("dead letters", "%s", c.take(dead))
		}},
		{"x-expires: basic.get is use", kept(func(c *channel, q string) { c.take(q) })},
		{"x-expires: redeclaring is use", kept(func(c *channel, q string) {
			_, err := c.QueueDeclare(q, false, false, false, false, args)
			c.p.must(err)
		})},
		{"x-expires: declaring passively is use", kept(func(c *channel, q string) { c.count(q) })},
		{"x-expires: publishing is no use", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-expires": int32(600)})
			for range 6 {
				c.send(q, "m")
				p.pause(200 * time.Millisecond)
			}
			p.note("gone", "%t", gone(p, q))
		}},
		{"x-expires: a consumer is use", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-expires": int32(100)})
			c.consume(q, "t", nil)
			p.pause(400 * time.Millisecond)
			p.note("with a consumer", "%s", c.count(q))
			p.must(c.Cancel("t", false))
			p.note("gone without", "%t", gone(p, q))
		}},
	}
}
