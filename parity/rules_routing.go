package main

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// routingRules are about which queues a message comes to.
func routingRules() []rule {
	msg := func(headers amqp.Table) amqp.Publishing { return amqp.Publishing{Body: []byte("m"), Headers: headers} }
	rules := []rule{
		{"topic", func(p *probe) {
			c := p.channel()
			x := c.exchange("x", "topic", nil)
			patterns := []string{"#", "*", "a.*", "a.#", "#.c", "a.*.c", "*.b.*", "", "a..c", "a.#.#"}
			for _, pattern := range patterns {
				c.bind(c.queue("q"+pattern, nil), pattern, x, nil)
			}
			for _, key := range []string{"", "a", "a.b", "a.b.c", "a..c", ".", "c", "a.b.c.d"} {
				c.publish(x, key, msg(nil))
				var got []string
				p.must(c.ExchangeDeclarePassive(x, "topic", false, false, false, false, nil))
				for _, pattern := range patterns {
					if c.body(p.name("q"+pattern)) == "m" {
						got = append(got, pattern)
					}
				}
				p.note("key "+key, "%q", got)
			}
		}},
		{"alternate exchange", func(p *probe) {
			c := p.channel()
			ae := c.exchange("ae", "fanout", nil)
			x := c.exchange("x", "direct", amqp.Table{"alternate-exchange": ae})
			q, other := c.queue("q", nil), c.queue("other", nil)
			c.bind(q, "k", x, nil)
			c.bind(other, "", ae, nil)
			returns := c.NotifyReturn(make(chan amqp.Return, 1))
			p.must(c.PublishWithContext(p.ctx, x, "k", true, false, msg(nil)))
			p.must(c.PublishWithContext(p.ctx, x, "none", true, false, msg(nil)))
			p.note("routed", "%s", describe(c.await(q)))
			p.note("not routed", "%s", describe(c.await(other)))
			p.note("returns", "%d", len(returns))
		}},
		{"alternate exchange that is not there", func(p *probe) {
			c := p.channel()
			x := c.exchange("x", "direct", amqp.Table{"alternate-exchange": p.name("none")})
			returns := c.NotifyReturn(make(chan amqp.Return, 1))
			p.must(c.PublishWithContext(p.ctx, x, "k", true, false, msg(nil)))
			p.note("return", "%s", (<-returns).ReplyText)
		}},
		{"exchange to exchange", func(p *probe) {
			c := p.channel()
			from, to := c.exchange("from", "direct", nil), c.exchange("to", "topic", nil)
			q := c.queue("q", nil)
			p.must(c.ExchangeBind(to, "a.b", from, false, nil))
			p.must(c.ExchangeBind(from, "#", to, false, nil)) // round and round
			c.bind(q, "a.*", to, nil)
			c.publish(from, "a.b", msg(nil))
			p.note("got", "%s", describe(c.await(q)))
			p.note("once", "%s", c.take(q))
			p.must(c.ExchangeUnbind(to, "a.b", from, false, nil))
			p.note("after unbind", "%s", c.confirming().publish(from, "a.b", msg(nil)))
			p.note("got then", "%s", c.take(q))
		}},
		{"two bindings, one copy", func(p *probe) {
			c := p.channel()
			x, q := c.exchange("x", "topic", nil), c.queue("q", nil)
			c.bind(q, "a", x, nil)
			c.bind(q, "#", x, nil)
			c.publish(x, "a", msg(nil))
			p.note("got", "%s", c.await(q).Body)
			p.note("again", "%s", c.take(q))
		}},
		{"CC and BCC", func(p *probe) {
			c := p.channel()
			q, cc, bcc := c.queue("q", nil), c.queue("cc", nil), c.queue("bcc", nil)
			c.publish("", q, msg(amqp.Table{"CC": []any{cc, "none"}, "BCC": []any{bcc}, "z": "1"}))
			for _, queue := range []string{q, cc, bcc} {
				p.note(queue, "%s", describe(c.await(queue)))
			}
		}},
		{"CC of a wrong type", func(p *probe) {
			for _, v := range []any{"text", int32(1), []any{int32(1)}, nil} {
				p.note(format(v), "%s", p.channel().outcome(func(c *channel) error {
					return c.PublishWithContext(p.ctx, "", "q", false, false, msg(amqp.Table{"CC": v}))
				}))
			}
		}},
		{"binding twice, unbinding twice", func(p *probe) {
			c := p.channel()
			x, q := c.exchange("x", "direct", nil), c.queue("q", nil)
			c.bind(q, "k", x, nil)
			c.bind(q, "k", x, nil)
			p.must(c.QueueUnbind(q, "k", x, nil))
			p.note("publish", "%s", c.confirming().publish(x, "k", msg(nil)))
			p.note("got", "%s", c.take(q))
			p.note("unbind again", "%s", c.outcome(func(c *channel) error { return c.QueueUnbind(q, "k", x, nil) }))
		}},
		{"direct reply-to", func(p *probe) {
			c, server := p.channel(), p.channel()
			q := server.queue("q", nil)
			replies, err := c.Consume("amq.rabbitmq.reply-to", "t", true, false, false, false, nil)
			p.must(err)
			c.publish("", q, amqp.Publishing{Body: []byte("ask"), ReplyTo: "amq.rabbitmq.reply-to", CorrelationId: "1"})
			ask := server.await(q)
			server.publish("", ask.ReplyTo, amqp.Publishing{Body: []byte("answer"), CorrelationId: ask.CorrelationId})
			d := p.next(replies)
			p.note("answer", "%q exchange=%q correlation-id=%s", d.Body, d.Exchange, d.CorrelationId)
			p.note("key is the address", "%t", d.RoutingKey == ask.ReplyTo)
		}},
		{"direct reply-to: mistakes", func(p *probe) {
			const pseudo = "amq.rabbitmq.reply-to"
			p.note("consume with acks", "%s", p.channel().outcome(func(c *channel) error {
				_, err := c.Consume(pseudo, "t", false, false, false, false, nil)
				return err
			}))
			c := p.channel()
			_, err := c.Consume(pseudo, "t", true, false, false, false, nil)
			p.must(err)
			p.note("consume twice", "%s", c.outcome(func(c *channel) error {
				_, err := c.Consume(pseudo, "u", true, false, false, false, nil)
				return err
			}))
			p.note("publish without a consumer", "%s", p.channel().outcome(func(c *channel) error {
				return c.PublishWithContext(p.ctx, "", "q", false, false, amqp.Publishing{ReplyTo: pseudo})
			}))
			p.note("passive", "%s", p.channel().outcome(func(c *channel) error {
				_, err := c.QueueDeclarePassive(pseudo, false, false, false, false, nil)
				return err
			}))
			p.note("declare", "%s", p.channel().outcome(func(c *channel) error {
				_, err := c.QueueDeclare(pseudo, false, false, false, false, nil)
				return err
			}))
			returned := p.channel()
			returns := returned.NotifyReturn(make(chan amqp.Return, 1))
			p.must(returned.PublishWithContext(p.ctx, "", pseudo+".nobody", true, false, amqp.Publishing{}))
			p.note("to an address that is none", "%s", returned.outcome(func(*channel) error { return nil }))
			p.note("returns", "%d", len(returns))
		}},
	}
	return append(rules, headersRules()...)
}

// headersRules are about the headers exchange.
func headersRules() []rule {
	bindings := []struct {
		name string
		args amqp.Table
	}{
		{"none", amqp.Table{}},
		{"all", amqp.Table{"x-match": "all", "a": "1", "b": int32(2)}},
		{"default", amqp.Table{"a": "1", "b": int32(2)}},
		{"any", amqp.Table{"x-match": "any", "a": "1", "b": int32(2)}},
		{"any of nothing", amqp.Table{"x-match": "any"}},
		{"all of nothing", amqp.Table{"x-match": "all"}},
		{"all-with-x", amqp.Table{"x-match": "all-with-x", "x-a": "1"}},
		{"any-with-x", amqp.Table{"x-match": "any-with-x", "x-a": "1", "a": "1"}},
		{"all ignores x-", amqp.Table{"x-match": "all", "x-a": "1", "a": "1"}},
		{"void", amqp.Table{"x-match": "all", "a": nil}},
		{"double", amqp.Table{"x-match": "all", "b": 2.0}},
		{"bool", amqp.Table{"x-match": "all", "c": true}},
		{"array", amqp.Table{"x-match": "all", "d": []any{"1"}}},
	}
	messages := []amqp.Table{{}, {"a": "1"}, {"a": "1", "b": int32(2)}, {"a": "1", "b": int64(2)}, {"b": "2"}, {"b": 2.0},
		{"x-a": "1"}, {"x-a": "2", "a": "2"}, {"a": int32(1)}, {"c": true}, {"c": "true"}, {"d": []any{"1"}}, {"a": nil}}
	return []rule{
		{"headers exchange", func(p *probe) {
			c := p.channel().confirming()
			x := c.exchange("x", "headers", nil)
			for _, b := range bindings {
				c.bind(c.queue(b.name, nil), "", x, b.args)
			}
			for _, m := range messages {
				c.publish(x, "", amqp.Publishing{Body: []byte("m"), Headers: m})
				var got []string
				for _, b := range bindings {
					if c.body(p.name(b.name)) == "m" {
						got = append(got, b.name)
					}
				}
				p.note(format(m), "%q", got)
			}
		}},
		{"headers exchange: x-match", func(p *probe) {
			c := p.channel()
			x, q := c.exchange("x", "headers", nil), c.queue("q", nil)
			for _, v := range []any{"all", "any", "all-with-x", "any-with-x", "some", "", int32(1), true, nil} {
				p.note(fmt.Sprint("x-match ", format(v)), "%s", p.channelOn(c.conn).outcome(func(c *channel) error {
					return c.QueueBind(q, "", x, false, amqp.Table{"x-match": v})
				}))
			}
		}},
	}
}
