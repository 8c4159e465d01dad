package main

import (
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// limitRules are about queues that are full.
func limitRules() []rule {
	var rules []rule
	for _, overflow := range []string{"", "drop-head", "reject-publish", "reject-publish-dlx"} {
		for _, limit := range []amqp.Table{{"x-max-length": int32(2)}, {"x-max-length-bytes": int32(4)}} {
			name := "x-max-length"
			if limit["x-max-length"] == nil {
				name = "x-max-length-bytes"
			}
			if overflow != "" {
				limit["x-overflow"] = overflow
			}
			rules = append(rules, rule{fmt.Sprintf("%s, overflow %s.", name, overflow), func(p *probe) {
				c := p.channel().confirming()
				dead, args := c.deadLetters(limit)
				q := c.queue("q", args)
				for _, body := range []string{"m1", "m2", "m3", "m4"} {
					p.note("publish "+body, "%s", c.send(q, body))
				}
				p.note("queue", "%s", c.bodies(q))
				if overflow == "reject-publish" {
					p.note("dead letters", "%s", c.bodies(dead))
					return
				}
				c.holds(dead, 2)
				p.note("dead letters", "%s", c.bodies(dead))
			}})
		}
	}
	return append(rules,
		rule{"x-max-length does not count unacknowledged", func(p *probe) {
			c := p.channel().confirming()
			q := c.queue("q", amqp.Table{"x-max-length": int32(1)})
			c.send(q, "m1")
			d, _, err := c.Get(q, false)
			p.must(err)
			c.send(q, "m2")
			p.must(d.Nack(false, true))
			p.must(c.holdsError(q, 1))
			p.note("left after a requeue", "%s", c.bodies(q))
		}},
		rule{"x-max-length-bytes: one that is too big alone", func(p *probe) {
			c := p.channel().confirming()
			q := c.queue("q", amqp.Table{"x-max-length-bytes": int32(4)})
			p.note("publish", "%s", c.send(q, strings.Repeat("x", 10)))
			p.note("queue", "%s", c.bodies(q))
		}},
		rule{"one of two queues refuses", func(p *probe) {
			c := p.channel().confirming()
			x := c.exchange("x", "fanout", nil)
			full := c.queue("full", amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish"})
			free := c.queue("free", nil)
			c.bind(full, "", x, nil)
			c.bind(free, "", x, nil)
			p.note("publish", "%s", c.publish(x, "", amqp.Publishing{Body: []byte("m")}))
			p.note("the other queue", "%s", c.bodies(free))
		}},
		rule{"mandatory to a queue that refuses", func(p *probe) {
			c := p.channel().confirming()
			returns := c.NotifyReturn(make(chan amqp.Return, 1))
			q := c.queue("q", amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish"})
			confirm, err := c.PublishWithDeferredConfirmWithContext(p.ctx, "", q, true, false, amqp.Publishing{Body: []byte("m")})
			p.must(err)
			acked, err := confirm.WaitContext(p.ctx)
			p.must(err)
			p.note("acked", "%t", acked)
			p.note("returns", "%d", len(returns))
		}},
	)
}

// holdsError waits as holds does.
func (c *channel) holdsError(queue string, n int) error {
	if !c.holds(queue, n) {
		return fmt.Errorf("%s has %s, want %d", queue, c.count(queue), n)
	}
	return nil
}

// priorityRules are about the order within a queue.
func priorityRules() []rule {
	// in publishes messages with priorities; the text of each is its priority and a letter.
	in := func(c *channel, q string, priorities ...uint8) {
		for i, priority := range priorities {
			c.publish("", q, amqp.Publishing{Priority: priority, Body: fmt.Appendf(nil, "%d%c", priority, 'a'+i)})
		}
		c.p.must(c.holdsError(q, len(priorities)))
	}
	return []rule{
		{"priority: order", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-max-priority": int32(5)})
			in(c, q, 1, 0, 5, 9, 3, 5, 1)
			p.note("got", "%s", c.bodies(q))
		}},
		{"priority: property as it was sent", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-max-priority": int32(2)})
			in(c, q, 9)
			p.note("got", "%s", c.take(q))
		}},
		{"priority: none in a plain queue", func(p *probe) {
			c := p.channel()
			q := c.queue("q", nil)
			in(c, q, 1, 9, 5)
			p.note("got", "%s", c.bodies(q))
		}},
		{"priority: requeue order", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-max-priority": int32(5)})
			in(c, q, 1, 1, 5, 5, 3)
			var last amqp.Delivery
			for range 4 {
				var err error
				last, _, err = c.Get(q, false)
				p.must(err)
			}
			p.must(last.Nack(true, true))
			p.must(c.holdsError(q, 5))
			p.note("got", "%s", c.bodies(q))
		}},
		{"priority: full queue drops", func(p *probe) {
			c := p.channel()
			q := c.queue("q", amqp.Table{"x-max-priority": int32(5), "x-max-length": int32(2)})
			for _, m := range []uint8{5, 1, 3} {
				c.publish("", q, amqp.Publishing{Priority: m, Body: fmt.Appendf(nil, "%d", m)})
			}
			p.must(c.holdsError(q, 2))
			p.note("left", "%s", c.bodies(q))
		}},
	}
}
