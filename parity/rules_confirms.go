package main

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/wire"
)

// confirmRules are about what a publisher hears: confirms, returns, and commits.
func confirmRules() []rule {
	msg := func(body string) amqp.Publishing { return amqp.Publishing{Body: []byte(body)} }
	return []rule{
		{"confirms: each tag once", func(p *probe) {
			c := p.channel()
			q := c.queue("q", nil)
			p.must(c.Confirm(false))
			confirms := c.NotifyPublish(make(chan amqp.Confirmation, 200))
			for i := range 200 {
				p.must(c.PublishWithContext(p.ctx, "", q, false, false, msg(fmt.Sprint(i))))
			}
			seen := map[uint64]int{}
			for range 200 {
				confirm := <-confirms
				if confirm.Ack {
					seen[confirm.DeliveryTag]++
				}
			}
			p.note("tags acked", "%d", len(seen))
			p.note("next to the first and the last", "%d %d %d %d", seen[0], seen[1], seen[200], seen[201])
		}},
		{"confirms: tags begin with confirm.select", func(p *probe) {
			c := p.channel()
			q := c.queue("q", nil)
			c.send(q, "before")
			p.must(c.Confirm(false))
			confirm, err := c.PublishWithDeferredConfirmWithContext(p.ctx, "", q, false, false, msg("m"))
			p.must(err)
			acked, err := confirm.WaitContext(p.ctx)
			p.must(err)
			p.note("tag", "%d %t", confirm.DeliveryTag, acked)
		}},
		{"confirms: to nowhere", func(p *probe) {
			p.note("publish", "%s", p.channel().confirming().publish("amq.direct", p.name("nowhere"), msg("m")))
		}},
		{"confirms: select twice", func(p *probe) {
			r := p.raw()
			r.methods(1, &wire.ConfirmSelect{}, &wire.ConfirmSelect{})
			r.expect(wire.ConfirmSelectOkID)
			r.expect(wire.ConfirmSelectOkID)
			p.note("channel", "%s", r.ending())
		}},
		{"confirms and tx on one channel", func(p *probe) {
			p.note("tx after confirm", "%s", p.channel().confirming().outcome(func(c *channel) error { return c.Tx() }))
			c := p.channel()
			p.must(c.Tx())
			p.note("confirm after tx", "%s", c.outcome(func(c *channel) error { return c.Confirm(false) }))
		}},
		{"mandatory: returned before the ack", func(p *probe) {
			r := p.raw()
			r.methods(1, &wire.ConfirmSelect{})
			r.expect(wire.ConfirmSelectOkID)
			b := wire.AppendMethod(nil, 1, &wire.BasicPublish{Exchange: []byte("amq.direct"), RoutingKey: []byte("nowhere"), Mandatory: true})
			r.bytes(wire.AppendContent(b, 1, []byte{0, 0}, []byte("m"), 0))
			returned := r.expect(wire.BasicReturnID).(*wire.BasicReturn)
			p.note("return", "%d %s exchange=%s key=%s", returned.ReplyCode, returned.ReplyText, returned.Exchange, returned.RoutingKey)
			ack := r.expect(wire.BasicAckID).(*wire.BasicAck)
			p.note("ack", "%d %t", ack.DeliveryTag, ack.Multiple)
		}},
		{"mandatory: all properties come back", func(p *probe) {
			c := p.channel()
			returns := c.NotifyReturn(make(chan amqp.Return, 1))
			p.must(c.PublishWithContext(p.ctx, "", p.name("nowhere"), true, false, amqp.Publishing{Body: []byte("m"),
				ContentType: "text/plain", Headers: amqp.Table{"a": int8(1)}, Expiration: "5", Priority: 3}))
			ret := <-returns
			p.note("return", "%d %s %q %s %s %s %d %s", ret.ReplyCode, ret.ReplyText, ret.Body, ret.RoutingKey,
				ret.ContentType, ret.Expiration, ret.Priority, format(ret.Headers))
		}},
		{"immediate", func(p *probe) {
			p.note("publish", "%s", p.channel().outcome(func(c *channel) error {
				return c.PublishWithContext(p.ctx, "", "q", false, true, msg("m"))
			}))
		}},
		{"tx: commit and rollback", func(p *probe) {
			c, other := p.channel(), p.channel()
			q := other.queue("q", nil)
			p.must(c.Tx())
			c.send(q, "m1")
			p.note("before the commit", "%s", other.count(q))
			p.must(c.TxRollback())
			c.send(q, "m2")
			p.must(c.TxCommit())
			p.note("after a rollback and a commit", "%s", other.bodies(q))
		}},
		{"tx: acks and rejects wait for the commit", func(p *probe) {
			c := p.channel()
			dead, args := c.deadLetters(nil)
			q := c.queue("q", args)
			c.send(q, "m1")
			c.send(q, "m2")
			p.must(c.holdsError(q, 2))
			p.must(c.Tx())
			first, _, err := c.Get(q, false)
			p.must(err)
			second, _, err := c.Get(q, false)
			p.must(err)
			p.must(first.Ack(false))
			p.must(second.Reject(false))
			p.note("before the commit", "%s", c.take(dead))
			p.must(c.TxCommit())
			p.note("after", "%s", c.await(dead).Body)
		}},
		{"tx: rolled-back ack may be given again", func(p *probe) {
			c := p.channel()
			q := c.queue("q", nil)
			c.send(q, "m")
			p.must(c.holdsError(q, 1))
			p.must(c.Tx())
			d, _, err := c.Get(q, false)
			p.must(err)
			p.must(d.Ack(false))
			p.must(c.TxRollback())
			p.note("again", "%s", c.outcome(func(c *channel) error {
				if err := d.Ack(false); err != nil {
					return err
				}
				return c.TxCommit()
			}))
		}},
		{"tx: an unroutable mandatory message returns at the commit", func(p *probe) {
			c := p.channel()
			returns := c.NotifyReturn(make(chan amqp.Return, 1))
			p.must(c.Tx())
			p.must(c.PublishWithContext(p.ctx, "", p.name("nowhere"), true, false, msg("m")))
			p.must(c.ExchangeDeclarePassive("amq.direct", "direct", true, false, false, false, nil))
			p.note("before the commit", "%d", len(returns))
			p.must(c.TxCommit())
			ret := <-returns
			p.note("return", "%d %s", ret.ReplyCode, ret.ReplyText)
		}},
		{"tx: commit without select", func(p *probe) {
			p.note("commit", "%s", p.channel().outcome(func(c *channel) error { return c.TxCommit() }))
			p.note("rollback", "%s", p.channel().outcome(func(c *channel) error { return c.TxRollback() }))
		}},
	}
}
