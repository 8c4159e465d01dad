package duepost

import (
	"context"
	"fmt"
	"math/bits"

	amqp "github.com/rabbitmq/amqp091-go"
)

// delayInQueues sends e through the wait queues, which are declared if this way was not taken
// before.
func (c *Client) delayInQueues(ctx context.Context, e *envelope, m *Message, w wait) error {
	if m.Expiration > 0 {
		return fmt.Errorf("expiration of a message that waits in queues: %w", ErrNotSupported)
	}
	way, err := c.plan.way(w.millis)
	if err != nil {
		return err
	}
	if err := c.makeWay(ctx, way); err != nil {
		return err
	}
	if err := c.makeTarget(ctx, m.Exchange, m.RoutingKey); err != nil {
		return err
	}
	e.exchange = c.plan.entry(way)
	headers := e.publishing.Headers
	headers[headerTo] = m.Exchange
	for left := way.levels; left != 0; left &= left - 1 {
		headers[c.plan.headers[bits.TrailingZeros64(left)]] = true
	}
	// A history with the queues of the way in it would look like a cycle to RabbitMQ 3.
	delete(headers, "x-death")
	e.due = e.due.Add(millisDuration(way.millis - w.millis))
	return nil
}

// makeWay declares the queues of a way, with the exchanges around them.
func (c *Client) makeWay(ctx context.Context, w way) error {
	entry := c.plan.entry(w)
	if w.tier > 0 {
		if c.ready.has(entry) {
			return nil
		}
		return c.makeReady(ctx, []string{entry}, append(c.plan.dueDeclarations(), c.plan.tierDeclarations(w.tier)...))
	}
	// A level is ready with its queue. The exchange of a level that is only passed is there when
	// that of one above is.
	var names []string
	for left := w.levels; left != 0; left &= left - 1 {
		if name := c.plan.levelName(bits.TrailingZeros64(left)); !c.ready.has(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return c.makeReady(ctx, names, append(c.plan.dueDeclarations(), c.plan.levelDeclarations(w.levels)...))
}

// makeTarget lets messages that are due get to an exchange, or to a queue if that is the default
// exchange.
func (c *Client) makeTarget(ctx context.Context, exchange, key string) error {
	if exchange == "" {
		if c.readyQueues.has(key) {
			return nil
		}
		err := c.declare(ctx, append(c.plan.dueDeclarations(), bindQueue(key, c.plan.dueQueueName()))...)
		return c.noteTarget(&c.readyQueues, exchange, key, err)
	}
	if c.readyTargets.has(exchange) {
		return nil
	}
	err := c.declare(ctx, append(c.plan.dueDeclarations(),
		bindExchange(exchange, c.plan.dueName(), amqp.Table{"x-match": "all-with-x", headerTo: exchange}))...)
	return c.noteTarget(&c.readyTargets, exchange, exchange, err)
}

// dueDeclarations are the exchanges at the end of every way.
func (p *waitPlan) dueDeclarations() []declaration {
	return []declaration{
		exchangeDeclaration(p.dueName(), amqp.ExchangeHeaders, nil),
		exchangeDeclaration(p.dueQueueName(), amqp.ExchangeDirect, nil),
		bindExchange(p.dueQueueName(), p.dueName(), amqp.Table{"x-match": "all-with-x", headerTo: ""}),
	}
}

func (p *waitPlan) tierDeclarations(tier int64) []declaration {
	name := p.tierName(tier)
	return []declaration{
		exchangeDeclaration(name, amqp.ExchangeFanout, nil),
		queueDeclaration(name, p.queueArgs(tier, p.dueName())),
		bindQueueByHeader(name, nil),
	}
}

// levelDeclarations are the exchanges of all levels up to the highest and the queues of those
// that are set.
func (p *waitPlan) levelDeclarations(levels uint64) []declaration {
	var all []declaration
	for k := range bits.Len64(levels) {
		name, below := p.levelName(k), p.levelName(k-1)
		all = append(all, exchangeDeclaration(name, amqp.ExchangeHeaders, amqp.Table{"alternate-exchange": below}))
		if levels&(1<<k) != 0 {
			all = append(all,
				queueDeclaration(name, p.queueArgs(p.base<<k, below)),
				bindQueueByHeader(name, amqp.Table{"x-match": "any-with-x", p.headers[k]: nil}), // nil matches what is there
			)
		}
	}
	return all
}

func exchangeDeclaration(name, kind string, args amqp.Table) declaration {
	return declaration{fmt.Sprintf("exchange %q", name), func(ch *amqp.Channel) error {
		return ch.ExchangeDeclare(name, kind, true, false, false, false, args)
	}}
}

func queueDeclaration(name string, args amqp.Table) declaration {
	return declaration{fmt.Sprintf("queue %q", name), func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, args)
		return err
	}}
}

// bindQueueByHeader binds a queue to the exchange of the same name.
func bindQueueByHeader(name string, args amqp.Table) declaration {
	return declaration{fmt.Sprintf("binding of queue %q", name), func(ch *amqp.Channel) error {
		return ch.QueueBind(name, "", name, false, args)
	}}
}

// bindQueue binds a queue by its own name.
func bindQueue(queue, exchange string) declaration {
	return declaration{fmt.Sprintf("binding of queue %q to exchange %q", queue, exchange), func(ch *amqp.Channel) error {
		return ch.QueueBind(queue, queue, exchange, false, nil)
	}}
}

func bindExchange(to, from string, args amqp.Table) declaration {
	return declaration{fmt.Sprintf("binding of exchange %q to exchange %q", to, from), func(ch *amqp.Channel) error {
		return ch.ExchangeBind(to, "", from, false, args)
	}}
}
