package main

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// argumentRules declare queues with every known argument and every kind of value.
func argumentRules() []rule {
	numbers := []any{int32(1000), int64(1000), int16(10), int8(10), int32(0), int32(-1), int64(1) << 33,
		"1000", "text", true, 1.5, 10.0, nil, amqp.Table{}, []any{int32(1)}}
	texts := []any{"", "text", "drop-head", "reject-publish", "reject-publish-dlx", int32(1), true, nil, amqp.Table{}, []any{"text"}}
	truths := []any{true, false, int32(1), "true", nil}
	values := []struct {
		argument string
		values   []any
	}{
		{"x-message-ttl", append(numbers, int64(315360000000), int64(315360000001))},
		{"x-expires", append(numbers, int64(315360000000), int64(315360000001))},
		{"x-max-length", numbers}, {"x-max-length-bytes", numbers}, {"x-overflow", texts},
		{"x-max-priority", append(numbers, int32(255), int32(256), int32(32))},
		{"x-dead-letter-exchange", texts}, {"x-dead-letter-routing-key", texts},
		{"x-dead-letter-strategy", append(texts, "at-most-once", "at-least-once")},
		{"x-single-active-consumer", truths},
		{"x-queue-type", append(texts, "classic", "quorum", "stream")},
		{"x-queue-mode", append(texts, "default", "lazy")},
		{"x-queue-version", append(numbers, int32(1), int32(2), int32(3))},
		{"x-queue-master-locator", append(texts, "client-local", "min-masters", "random")},
		{"x-queue-leader-locator", append(texts, "client-local", "balanced")},
		{"x-delivery-limit", numbers}, {"x-max-in-memory-length", numbers}, {"x-max-in-memory-bytes", numbers},
		{"x-quorum-initial-group-size", numbers}, {"x-initial-cluster-size", numbers},
		{"x-max-age", append(texts, "1h")}, {"x-stream-max-segment-size-bytes", numbers},
		{"x-consumer-timeout", numbers}, {"x-whatever", append(numbers, "text")},
	}
	var rules []rule
	for _, v := range values {
		for _, kind := range []string{"classic", "quorum"} {
			rules = append(rules, rule{fmt.Sprintf("%s of a %s queue", v.argument, kind), func(p *probe) {
				c := p.channel()
				for i, value := range v.values {
					args := amqp.Table{"x-queue-type": kind, v.argument: value}
					name := p.name(fmt.Sprint(i))
					p.note(format(value), "%s", c.again().outcome(func(c *channel) error {
						_, err := c.QueueDeclare(name, true, false, false, false, args)
						if err == nil {
							_, err = c.QueueDelete(name, false, false, false)
						}
						return err
					}))
				}
			}})
		}
	}
	return rules
}

// declarationRules declare things again, in another way.
func declarationRules() []rule {
	type shape struct {
		durable, autoDelete, exclusive bool
		args                           amqp.Table
	}
	declare := func(c *channel, name string, s shape) error {
		_, err := c.QueueDeclare(name, s.durable, s.autoDelete, s.exclusive, false, s.args)
		return err
	}
	// again declares a queue twice.
	again := func(first shape, others ...shape) func(*probe) {
		return func(p *probe) {
			c := p.channel()
			p.must(declare(c, p.name("q"), first))
			for i, s := range others {
				ch := p.channelOn(c.conn)
				p.note(fmt.Sprint("again ", i), "%s", ch.outcome(func(c *channel) error { return declare(c, p.name("q"), s) }))
			}
		}
	}
	with := func(key string, v any) shape { return shape{args: amqp.Table{key: v}} }
	rules := []rule{
		{"declare again: durable", again(shape{}, shape{durable: true}, shape{})},
		{"declare again: transient", again(shape{durable: true}, shape{})},
		{"declare again: auto-delete", again(shape{}, shape{autoDelete: true})},
		{"declare again: exclusive", again(shape{}, shape{exclusive: true})},
		{"declare again: not exclusive", again(shape{exclusive: true}, shape{}, shape{exclusive: true})},
		{"declare again: unknown argument", again(with("x-whatever", "1"), with("x-whatever", "2"), shape{})},
		{"declare again: queue type", again(shape{durable: true}, shape{durable: true, args: amqp.Table{"x-queue-type": "quorum"}},
			shape{durable: true, args: amqp.Table{"x-queue-type": "classic"}})},
		{"declare passive: other settings are all right", func(p *probe) {
			q := p.channel().queue("q", nil)
			p.note("passive", "%s", p.channel().outcome(func(c *channel) error {
				_, err := c.QueueDeclarePassive(q, true, true, true, false, amqp.Table{"x-max-length": int32(1)})
				return err
			}))
		}},
		{"declare passive: counts", func(p *probe) {
			c := p.channel()
			q := c.queue("q", nil)
			c.consume(q, "t", nil)
			p.note("count", "%s", c.count(q))
		}},
	}
	for _, a := range []struct {
		key          string
		value, other any
	}{
		{"x-message-ttl", int32(1000), int32(2000)}, {"x-expires", int32(100000), int32(200000)},
		{"x-max-length", int32(10), int32(20)}, {"x-max-length-bytes", int32(10), int32(20)},
		{"x-overflow", "drop-head", "reject-publish"}, {"x-max-priority", int32(5), int32(6)},
		{"x-dead-letter-exchange", "a", "b"}, {"x-single-active-consumer", true, false},
		{"x-queue-mode", "default", "lazy"}, {"x-queue-version", int32(2), int32(1)},
	} {
		rules = append(rules, rule{"declare again: " + a.key, again(with(a.key, a.value),
			with(a.key, a.other), shape{}, with(a.key, a.value), shape{args: amqp.Table{a.key: a.value, "x-more": "1"}})})
	}
	rules = append(rules, rule{"declare again: an argument is new", again(shape{}, with("x-max-length", int32(1)), with("x-message-ttl", int32(1)))},
		rule{"declare again: a number of another type", again(with("x-max-length", int32(10)), with("x-max-length", int64(10)),
			with("x-max-length", int16(10)))})
	return append(rules, exchangeDeclarations()...)
}

// exchangeDeclarations are about exchange.declare.
func exchangeDeclarations() []rule {
	declare := func(name, kind string, durable, autoDelete, internal bool, args amqp.Table) func(*channel) error {
		return func(c *channel) error {
			return c.ExchangeDeclare(name, kind, durable, autoDelete, internal, false, args)
		}
	}
	return []rule{
		{"exchange declared again", func(p *probe) {
			x := p.channel().exchange("x", "direct", nil)
			for _, again := range []struct {
				what string
				do   func(*channel) error
			}{
				{"same", declare(x, "direct", false, false, false, nil)},
				{"type", declare(x, "fanout", false, false, false, nil)},
				{"durable", declare(x, "direct", true, false, false, nil)},
				{"auto-delete", declare(x, "direct", false, true, false, nil)},
				{"internal", declare(x, "direct", false, false, true, nil)},
				{"alternate-exchange", declare(x, "direct", false, false, false, amqp.Table{"alternate-exchange": "a"})},
				{"unknown argument", declare(x, "direct", false, false, false, amqp.Table{"x-whatever": "a"})},
			} {
				p.note(again.what, "%s", p.channel().outcome(again.do))
			}
		}},
		{"alternate-exchange of wrong types", func(p *probe) {
			for i, v := range []any{"a", "", int32(1), true, nil, amqp.Table{}} {
				p.note(format(v), "%s", p.channel().outcome(declare(p.name(fmt.Sprint(i)), "direct", false, false, false,
					amqp.Table{"alternate-exchange": v})))
			}
		}},
		{"exchange type that is unknown", func(p *probe) {
			p.note("declare", "%s", p.channel().outcome(declare(p.name("x"), "nonsense", false, false, false, nil)))
		}},
		{"exchange amq.direct declared again", func(p *probe) {
			p.note("same", "%s", p.channel().outcome(declare("amq.direct", "direct", true, false, false, nil)))
			p.note("other", "%s", p.channel().outcome(declare("amq.direct", "fanout", true, false, false, nil)))
		}},
		{"exchange amq.something", func(p *probe) {
			p.note("declare", "%s", p.channel().outcome(declare("amq.mine", "direct", true, false, false, nil)))
			p.note("delete amq.direct", "%s", p.channel().outcome(func(c *channel) error { return c.ExchangeDelete("amq.direct", false, false) }))
		}},
		{"the default exchange", func(p *probe) {
			p.note("declare", "%s", p.channel().outcome(declare("", "direct", true, false, false, nil)))
			p.note("passive", "%s", p.channel().outcome(func(c *channel) error {
				return c.ExchangeDeclarePassive("", "direct", true, false, false, false, nil)
			}))
			p.note("delete", "%s", p.channel().outcome(func(c *channel) error { return c.ExchangeDelete("", false, false) }))
			q := p.channel().queue("q", nil)
			p.note("bind", "%s", p.channel().outcome(func(c *channel) error { return c.QueueBind(q, "k", "", false, nil) }))
			p.note("unbind", "%s", p.channel().outcome(func(c *channel) error { return c.QueueUnbind(q, q, "", nil) }))
		}},
		{"exchange with auto-delete goes with its last binding", func(p *probe) {
			c := p.channel()
			x, q := p.name("x"), c.queue("q", nil)
			p.must(c.ExchangeDeclare(x, "direct", false, true, false, false, nil))
			c.bind(q, "k", x, nil)
			p.must(c.QueueUnbind(q, "k", x, nil))
			p.note("after unbind", "%s", c.outcome(func(c *channel) error {
				return c.ExchangeDeclarePassive(x, "direct", false, true, false, false, nil)
			}))
		}},
	}
}
