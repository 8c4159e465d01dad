package main

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// quorumRules are about what only quorum queues do.
func quorumRules() []rule {
	return []rule{
		{"quorum: declared in ways it cannot be", func(p *probe) {
			args := amqp.Table{"x-queue-type": "quorum"}
			for _, way := range []struct {
				what                           string
				durable, autoDelete, exclusive bool
			}{{"transient", false, false, false}, {"auto-delete", true, true, false}, {"exclusive", true, false, true}} {
				p.note(way.what, "%s", p.channel().outcome(func(c *channel) error {
					_, err := c.QueueDeclare(p.name(way.what), way.durable, way.autoDelete, way.exclusive, false, args)
					return err
				}))
			}
			p.note("server-named", "%s", p.channel().outcome(func(c *channel) error {
				_, err := c.QueueDeclare("", true, false, false, false, args)
				return err
			}))
		}},
		{"quorum: x-delivery-count", func(p *probe) {
			c := p.channel()
			q := c.quorum("q", nil)
			c.send(q, "m")
			d := c.consume(q, "t", nil)
			for i := range 3 {
				m := p.next(d)
				p.note(fmt.Sprint("delivery ", i), "%s", describe(m))
				p.must(m.Nack(false, true))
			}
		}},
		{"quorum: x-delivery-count of basic.get", func(p *probe) {
			c := p.channel().confirming()
			q := c.quorum("q", nil)
			c.send(q, "m")
			d, _, err := c.Get(q, false)
			p.must(err)
			p.note("first", "%s", describe(d))
			p.must(d.Reject(true))
			p.note("second", "%s", describe(c.await(q)))
		}},
		{"quorum: delivery limit", func(p *probe) {
			c := p.channel()
			dead, args := c.deadLetters(amqp.Table{"x-delivery-limit": int32(2)})
			q := c.quorum("q", args)
			d := c.consume(q, "t", nil)
			c.send(q, "m")
			for range 3 {
				p.must(p.next(d).Reject(true))
			}
			noteHeaders(p, dead)
		}},
		{"quorum: delivery limit and nacks", func(p *probe) {
			c := p.channel()
			dead, args := c.deadLetters(amqp.Table{"x-delivery-limit": int32(2)})
			q := c.quorum("q", args)
			d := c.consume(q, "t", nil)
			c.send(q, "m")
			for range 3 {
				p.must(p.next(d).Nack(false, true))
			}
			died := p.channel().consume(dead, "dead", nil)
			select {
			case <-d:
				p.note("then", "a fourth delivery")
			case <-died:
				p.note("then", "a dead letter")
			case <-time.After(awaitTimeout):
				p.fatal("neither a delivery nor a dead letter within %v", awaitTimeout)
			}
		}},
		{"quorum: purge, delete, count", func(p *probe) {
			c := p.channel().confirming()
			q := c.quorum("q", nil)
			c.send(q, "m")
			p.note("count", "%s", c.count(q))
			n, err := c.QueuePurge(q, false)
			p.must(err)
			p.note("purged", "%d", n)
			p.note("if-empty", "%s", c.outcome(func(c *channel) error { _, err := c.QueueDelete(q, false, true, false); return err }))
		}},
		{"quorum: global qos", func(p *probe) {
			c := p.channel()
			q := c.quorum("q", nil)
			p.must(c.Qos(1, 0, true))
			p.note("consume", "%s", c.outcome(func(c *channel) error {
				_, err := c.Consume(q, "t", false, false, false, false, nil)
				return err
			}))
		}},
		{"quorum: single active and basic.get", func(p *probe) {
			c := p.channel()
			q := c.quorum("q", amqp.Table{"x-single-active-consumer": true})
			p.note("get", "%s", c.outcome(func(c *channel) error { _, _, err := c.Get(q, true); return err }))
		}},
		{"quorum: exclusive consumer", func(p *probe) {
			c := p.channel()
			q := c.quorum("q", nil)
			_, err := c.Consume(q, "one", false, true, false, false, nil)
			p.must(err)
			p.note("another", "%s", p.channel().outcome(func(c *channel) error {
				_, err := c.Consume(q, "two", false, false, false, false, nil)
				return err
			}))
		}},
		{"stream", func(p *probe) {
			p.note("declare", "%s", p.channel().outcome(func(c *channel) error {
				_, err := c.QueueDeclare(p.name("q"), true, false, false, false, amqp.Table{"x-queue-type": "stream"})
				return err
			}))
		}},
	}
}
