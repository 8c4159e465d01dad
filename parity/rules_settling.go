package main

import (
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// settlingRules are about acks, nacks, rejects, recover and get.
func settlingRules() []rule {
	// filled is a queue with three messages, and the three of them taken.
	filled := func(p *probe) (c *channel, q string, taken []amqp.Delivery) {
		c = p.channel()
		q = c.queue("q", nil)
		for i := range 3 {
			c.send(q, fmt.Sprint("m", i))
		}
		p.must(c.holdsError(q, 3))
		for range 3 {
			d, _, err := c.Get(q, false)
			p.must(err)
			taken = append(taken, d)
		}
		return c, q, taken
	}
	// after settles and tells what is in the queue then.
	after := func(settle func(c *channel, taken []amqp.Delivery) error, left int) func(*probe) {
		return func(p *probe) {
			c, q, taken := filled(p)
			p.must(settle(c, taken))
			p.must(c.holdsError(q, left))
			for {
				text := c.take(q)
				p.note("next", "%s", text)
				if text == "empty" {
					break
				}
			}
		}
	}
	mistake := func(do func(c *channel, taken []amqp.Delivery) error) func(*probe) {
		return func(p *probe) {
			c, _, taken := filled(p)
			p.note("answer", "%s", c.outcome(func(c *channel) error { return do(c, taken) }))
		}
	}
	return []rule{
		{"nack multiple with requeue", after(func(c *channel, t []amqp.Delivery) error { return t[2].Nack(true, true) }, 3)},
		{"nack one with requeue", mixed(func(t []amqp.Delivery) error { return t[1].Nack(false, true) }, filled)},
		{"reject one with requeue", mixed(func(t []amqp.Delivery) error { return t[0].Reject(true) }, filled)},
		{"nack without requeue", mixed(func(t []amqp.Delivery) error { return t[1].Nack(true, false) }, filled)},
		{"ack multiple", mixed(func(t []amqp.Delivery) error { return t[1].Ack(true) }, filled)},
		{"ack 0 with multiple is all", after(func(c *channel, t []amqp.Delivery) error { return c.Ack(0, true) }, 0)},
		{"nack 0 with multiple is all", after(func(c *channel, t []amqp.Delivery) error { return c.Nack(0, true, true) }, 3)},
		{"recover with requeue", after(func(c *channel, t []amqp.Delivery) error { return recoverAll(c, true) }, 3)},
		{"recover without requeue", mistake(func(c *channel, t []amqp.Delivery) error { return recoverAll(c, false) })},
		{"ack of an unknown tag", mistake(func(c *channel, t []amqp.Delivery) error { return c.Ack(99, false) })},
		{"ack of an unknown tag, multiple", mistake(func(c *channel, t []amqp.Delivery) error { return c.Ack(99, true) })},
		{"ack of tag 0", mistake(func(c *channel, t []amqp.Delivery) error { return c.Ack(0, false) })},
		{"ack twice", mistake(func(c *channel, t []amqp.Delivery) error { t[0].Ack(false); return t[0].Ack(false) })},
		{"ack twice, multiple", mistake(func(c *channel, t []amqp.Delivery) error { t[1].Ack(true); return t[1].Ack(true) })},
		{"nack of an unknown tag", mistake(func(c *channel, t []amqp.Delivery) error { return c.Nack(99, false, true) })},
		{"reject of an unknown tag", mistake(func(c *channel, t []amqp.Delivery) error { return c.Reject(99, true) })},
		{"ack multiple of nothing", func(p *probe) {
			p.note("ack 0", "%s", p.channel().outcome(func(c *channel) error { return c.Ack(0, true) }))
			p.note("nack 0", "%s", p.channel().outcome(func(c *channel) error { return c.Nack(0, true, true) }))
		}},
		{"get tells how many are left", func(p *probe) {
			c := p.channel()
			q := c.queue("q", nil)
			for range 3 {
				c.send(q, "m")
			}
			p.must(c.holdsError(q, 3))
			var left []string
			for range 3 {
				d, _, err := c.Get(q, true)
				p.must(err)
				left = append(left, fmt.Sprint(d.MessageCount))
			}
			p.note("left", "%s", strings.Join(left, " "))
		}},
		{"a requeued message comes again first", func(p *probe) {
			c := p.channel()
			p.must(c.Qos(1, 0, false))
			q := c.queue("q", nil)
			d := c.consume(q, "t", nil)
			c.send(q, "m1")
			c.send(q, "m2")
			p.must(p.next(d).Nack(false, true))
			p.note("next", "%s", describe(p.next(d)))
		}},
		{"a closed connection requeues", func(p *probe) {
			c, q, _ := filled(p)
			p.must(c.conn.Close())
			other := p.channel()
			p.must(other.holdsError(q, 3))
			p.note("first", "%s", other.take(q))
			p.note("others", "%s", other.bodies(q))
		}},
		{"prefetch global, size", func(p *probe) {
			p.note("size", "%s", p.channel().outcome(func(c *channel) error { return c.Qos(1, 100, false) }))
			p.note("global", "%s", p.channel().outcome(func(c *channel) error { return c.Qos(1, 0, true) }))
		}},
	}
}

// recoverAll asks for everything that is not acknowledged.
func recoverAll(c *channel, requeue bool) error {
	return c.Recover(requeue) //lint:ignore SA1019 what it does is a rule, deprecated or not
}

// mixed settles some of three, and tells what comes back when the channel is closed.
func mixed(settle func([]amqp.Delivery) error, filled func(*probe) (*channel, string, []amqp.Delivery)) func(*probe) {
	return func(p *probe) {
		c, q, taken := filled(p)
		p.must(settle(taken))
		p.must(c.Close())
		other := p.channelOn(c.conn)
		last := -1
		p.eventually(func() bool { // a message comes back soon after the channel's end
			state, err := other.QueueDeclarePassive(q, false, false, false, false, nil)
			p.must(err)
			quiet := state.Messages == last
			last = state.Messages
			return quiet && last > 0
		})
		p.note("when the channel is closed", "%s", other.bodies(q))
	}
}
