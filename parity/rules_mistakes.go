package main

import (
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// mistakeRules are what a client library lets its user do wrong.
func mistakeRules() []rule {
	long := strings.Repeat("q", 255)
	mistakes := []struct {
		name string
		do   func(*channel) error
	}{
		{"publish to no exchange", func(c *channel) error {
			return c.PublishWithContext(c.p.ctx, "none", "k", false, false, amqp.Publishing{})
		}},
		{"publish to an internal exchange", func(c *channel) error {
			x := c.p.name("x")
			if err := c.ExchangeDeclare(x, "direct", false, false, true, false, nil); err != nil {
				return err
			}
			return c.PublishWithContext(c.p.ctx, x, "k", false, false, amqp.Publishing{})
		}},
		{"consume from no queue", func(c *channel) error {
			_, err := c.Consume("none", "", false, false, false, false, nil)
			return err
		}},
		{"get from no queue", func(c *channel) error { _, _, err := c.Get("none", false); return err }},
		{"passive queue that is not there", func(c *channel) error {
			_, err := c.QueueDeclarePassive("none", false, false, false, false, nil)
			return err
		}},
		{"passive exchange that is not there", func(c *channel) error {
			return c.ExchangeDeclarePassive("none", "direct", false, false, false, false, nil)
		}},
		{"passive exchange of another type", func(c *channel) error {
			return c.ExchangeDeclarePassive("amq.direct", "fanout", false, false, false, false, nil)
		}},
		{"delete no queue", func(c *channel) error { _, err := c.QueueDelete("none", false, false, false); return err }},
		{"delete no exchange", func(c *channel) error { return c.ExchangeDelete("none", false, false) }},
		{"purge no queue", func(c *channel) error { _, err := c.QueuePurge("none", false); return err }},
		{"bind no queue", func(c *channel) error { return c.QueueBind("none", "k", "amq.direct", false, nil) }},
		{"bind to no exchange", func(c *channel) error {
			return c.QueueBind(c.queue("q", nil), "k", "none", false, nil)
		}},
		{"bind nothing to nothing", func(c *channel) error { return c.QueueBind("none", "k", "neither", false, nil) }},
		{"unbind no queue", func(c *channel) error { return c.QueueUnbind("none", "k", "amq.direct", nil) }},
		{"bind exchanges that are not there", func(c *channel) error {
			return c.ExchangeBind("none", "k", "amq.direct", false, nil)
		}},
		{"bind the default exchange", func(c *channel) error { return c.ExchangeBind("amq.direct", "k", "", false, nil) }},
		{"delete a queue in use", func(c *channel) error {
			q := c.queue("q", nil)
			c.consume(q, "t", nil)
			_, err := c.QueueDelete(q, true, false, false)
			return err
		}},
		{"delete a queue that is not empty", func(c *channel) error {
			q := c.queue("q", nil)
			c.send(q, "m")
			c.holds(q, 1)
			_, err := c.QueueDelete(q, false, true, false)
			return err
		}},
		{"delete an exchange in use", func(c *channel) error {
			x := c.exchange("x", "direct", nil)
			c.bind(c.queue("q", nil), "k", x, nil)
			return c.ExchangeDelete(x, true, false)
		}},
		{"declare a queue named amq.", func(c *channel) error {
			_, err := c.QueueDeclare("amq.mine", false, false, false, false, nil)
			return err
		}},
		{"last queue of a channel without one", func(c *channel) error { _, _, err := c.Get("", false); return err }},
		{"bind the last queue of a channel without one", func(c *channel) error {
			return c.QueueBind("", "", "amq.direct", false, nil)
		}},
		{"a name of 255 letters", func(c *channel) error {
			_, err := c.QueueDeclare(long, false, true, true, false, nil)
			return err
		}},
		{"a name with a line break", func(c *channel) error {
			_, err := c.QueueDeclare("a\r\nb ", false, true, true, false, nil)
			return err
		}},
		{"exchange name with a line break", func(c *channel) error {
			return c.ExchangeDeclare("a\r\nb", "direct", false, true, false, false, nil)
		}},
		{"user-id of somebody else", func(c *channel) error {
			return c.PublishWithContext(c.p.ctx, "", "q", false, false, amqp.Publishing{UserId: "somebody"})
		}},
		{"user-id of one's own", func(c *channel) error {
			return c.PublishWithContext(c.p.ctx, "", "q", false, false, amqp.Publishing{UserId: "guest"})
		}},
		{"flow off", func(c *channel) error { return c.Flow(false) }},
		{"flow on", func(c *channel) error { return c.Flow(true) }},
	}
	var rules []rule
	for _, m := range mistakes {
		rules = append(rules, rule{"mistake: " + m.name, func(p *probe) {
			p.note("answer", "%s", p.channel().outcome(m.do))
		}})
	}
	return append(rules,
		rule{"mistake: exclusive queue of another connection", func(p *probe) {
			q := p.name("q")
			_, err := p.channel().QueueDeclare(q, false, false, true, false, nil)
			p.must(err)
			for _, m := range []struct {
				what string
				do   func(*channel) error
			}{
				{"declare", func(c *channel) error { _, err := c.QueueDeclare(q, false, false, true, false, nil); return err }},
				{"passive", func(c *channel) error {
					_, err := c.QueueDeclarePassive(q, false, false, true, false, nil)
					return err
				}},
				{"consume", func(c *channel) error { _, err := c.Consume(q, "", false, false, false, false, nil); return err }},
				{"get", func(c *channel) error { _, _, err := c.Get(q, false); return err }},
				{"purge", func(c *channel) error { _, err := c.QueuePurge(q, false); return err }},
				{"bind", func(c *channel) error { return c.QueueBind(q, "k", "amq.direct", false, nil) }},
				{"delete", func(c *channel) error { _, err := c.QueueDelete(q, false, false, false); return err }},
				{"publish", func(c *channel) error { return c.PublishWithContext(p.ctx, "", q, false, false, amqp.Publishing{}) }},
			} {
				p.note(m.what, "%s", p.channel().outcome(m.do))
			}
		}},
		rule{"server-named queue", func(p *probe) {
			c := p.channel()
			q, err := c.QueueDeclare("", false, false, true, false, nil)
			p.must(err)
			p.note("name", "%s…", q.Name[:8])
			p.note("last queue", "%s", c.take(""))
		}},
	)
}
