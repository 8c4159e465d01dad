package main

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// consumerRules are about who gets what.
func consumerRules() []rule {
	consume := func(c *channel, q, tag string, exclusive bool, args amqp.Table) error {
		_, err := c.Consume(q, tag, false, exclusive, false, false, args)
		return err
	}
	return []rule{
		{"single active consumer: the oldest gets all", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-single-active-consumer": true})
			first, second := c.consume(q, "first", nil), c.consume(q, "second", nil)
			for i := range 3 {
				c.send(q, fmt.Sprint("m", i))
			}
			p.note("first", "%s", p.nextBodies(first, 3))
			p.must(c.Cancel("first", false))
			c.send(q, "m3")
			p.note("second, when the first is gone", "%s", p.nextBodies(second, 1))
		}},
		{"single active consumer: priority takes over", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-single-active-consumer": true})
			c.consume(q, "low", nil)
			c.consume(q, "mid", amqp.Table{"x-priority": int32(1)})
			high := c.consume(q, "high", amqp.Table{"x-priority": int32(5)})
			p.must(c.Cancel("low", false))
			c.send(q, "m")
			p.note("high, when the first is gone", "%s", p.nextBodies(high, 1))
		}},
		{"single active consumer: exclusive consumer", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-single-active-consumer": true})
			p.note("consume", "%s", c.outcome(func(c *channel) error { return consume(c, q, "t", true, nil) }))
		}},
		{"single active consumer: basic.get", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-single-active-consumer": true})
			c.send(q, "m")
			c.consume(q, "t", nil)
			other := p.channelOn(c.conn)
			p.note("get", "%s", other.outcome(func(c *channel) error { _, _, err := c.Get(q, true); return err }))
		}},
		{"consumer priority: the higher gets all it has credit for", func(p *probe) {
			c := p.channel()
			p.must(c.Qos(2, 0, false))
			q := c.queue("q", nil)
			low := c.consume(q, "low", nil)
			high := c.consume(q, "high", amqp.Table{"x-priority": int32(10)})
			for i := range 4 {
				c.send(q, fmt.Sprint("m", i))
			}
			p.note("high", "%s", p.nextBodies(high, 2))
			p.note("low", "%s", p.nextBodies(low, 2))
		}},
		{"consumer priority: negative, and wrong types", func(p *probe) {
			q := p.channel().queue("q", nil)
			for _, v := range []any{int32(-5), int64(1 << 40), int8(1), "1", true, 1.5, nil, amqp.Table{}} {
				p.note(fmt.Sprintf("x-priority %s", format(v)), "%s", p.channel().outcome(func(c *channel) error {
					return consume(c, q, "", false, amqp.Table{"x-priority": v})
				}))
			}
		}},
		{"exclusive consumer", func(p *probe) {
			c := p.channel()
			q := c.queue("q", nil)
			p.must(consume(c, q, "one", true, nil))
			p.note("another", "%s", p.channelOn(c.conn).outcome(func(c *channel) error { return consume(c, q, "two", false, nil) }))
			p.note("another, exclusive", "%s", p.channelOn(c.conn).outcome(func(c *channel) error { return consume(c, q, "two", true, nil) }))
			p.note("get", "%s", p.channelOn(c.conn).take(q))
		}},
		{"exclusive consumer where there is one", func(p *probe) {
			c := p.channel()
			q := c.queue("q", nil)
			p.must(consume(c, q, "one", false, nil))
			p.note("exclusive", "%s", c.outcome(func(c *channel) error { return consume(c, q, "two", true, nil) }))
		}},
		{"consumer tag used twice", func(p *probe) {
			r := p.raw()
			q := p.channel().queue("q", nil)
			r.consume(q, "t")
			r.consume(q, "t")
			p.note("second", "%s", r.ending())
		}},
		{"consumer of a deleted queue is cancelled", func(p *probe) {
			c := p.channel()
			q := c.queue("q", nil)
			cancels := c.NotifyCancel(make(chan string, 1))
			c.consume(q, "t", nil)
			_, err := p.channel().QueueDelete(q, false, false, false)
			p.must(err)
			p.note("cancelled", "%s", <-cancels)
			p.note("channel", "%s", c.outcome(func(*channel) error { return nil }))
		}},
		{"auto-delete goes with its last consumer", func(p *probe) {
			c := p.channel()
			q := p.name("q")
			_, err := c.QueueDeclare(q, false, true, false, false, nil)
			p.must(err)
			c.consume(q, "t", nil)
			p.must(c.Cancel("t", false))
			p.note("after the cancel", "%s", c.outcome(func(c *channel) error {
				_, err := c.QueueDeclarePassive(q, false, true, false, false, nil)
				return err
			}))
		}},
		{"cancel of a consumer that is not there", func(p *probe) {
			p.note("cancel", "%s", p.channel().outcome(func(c *channel) error { return c.Cancel("nobody", false) }))
		}},
		{"prefetch holds deliveries back", func(p *probe) {
			c := p.channel()
			p.must(c.Qos(1, 0, false))
			q := c.queue("q", nil)
			d := c.consume(q, "t", nil)
			c.send(q, "m1")
			c.send(q, "m2")
			first := p.next(d)
			p.note("in the queue", "%t", c.holds(q, 1))
			p.must(first.Ack(false))
			p.note("then", "%s", p.nextBodies(d, 1))
		}},
	}
}
