package duepost

import (
	"context"
	"fmt"
	"sync/atomic"

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
	e.mandatory = true // whatever the publisher thinks of the target
	headers := e.publishing.Headers
	headers[headerTo] = m.Exchange
	for level, next := range way.hops() {
		headers[c.plan.headers[level]] = int64(next)
	}
	// A history with the queues of the way in it would look like a cycle to RabbitMQ 3.
	delete(headers, "x-death")
	e.due = e.due.Add(millisDuration(way.millis - w.millis))
	return nil
}

// makeWay declares the queues of a way, with the exchanges around them, as far as no message took
// it before.
func (c *Client) makeWay(ctx context.Context, w way) error {
	if w.tier > 0 {
		entry := c.plan.entry(w)
		if c.ready.has(entry) {
			return nil
		}
		return c.makeReady(ctx, entry, append(c.plan.dueDeclarations(), c.plan.tierDeclarations(w.tier)...))
	}
	for level, next := range w.hops() {
		if c.readyHops.has(level, next) {
			continue
		}
		if err := c.declare(ctx, append(c.plan.dueDeclarations(), c.plan.hopDeclarations(level, next)...)...); err != nil {
			return err
		}
		c.readyHops.add(level, next)
	}
	return nil
}

// makeTarget lets messages that are due get to an exchange, or to a queue if that is the default
// exchange.
func (c *Client) makeTarget(ctx context.Context, exchange, key string) error {
	if exchange == "" {
		if c.readyQueues.has(key) {
			return nil
		}
		err := c.declare(ctx, append(c.plan.dueDeclarations(), bindQueue(key, c.plan.dueQueueName(), key, nil))...)
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
		bindQueue(name, name, "", nil),
	}
}

// hopDeclarations are a level, the next one, and the way from one to the other.
func (p *waitPlan) hopDeclarations(level, next int) []declaration {
	all := p.levelDeclarations(level)
	args := amqp.Table{"x-match": "all-with-x", p.headers[level]: int64(next)}
	if next == noLevel {
		return append(all, bindExchange(p.dueName(), p.nextName(level), args))
	}
	all = append(all, p.levelDeclarations(next)...)
	return append(all, bindQueue(p.levelName(next), p.nextName(level), "", args))
}

func (p *waitPlan) levelDeclarations(level int) []declaration {
	name, next := p.levelName(level), p.nextName(level)
	return []declaration{
		exchangeDeclaration(next, amqp.ExchangeHeaders, nil),
		exchangeDeclaration(name, amqp.ExchangeFanout, nil),
		queueDeclaration(name, p.queueArgs(p.base<<level, next)),
		bindQueue(name, name, "", nil),
	}
}

// hopSet is which hops from level to level are declared. The zero value is empty.
type hopSet [64]atomic.Uint64 // bit next+1 of element level

func (s *hopSet) has(level, next int) bool { return s[level].Load()&(1<<(next+1)) != 0 }
func (s *hopSet) add(level, next int)      { s[level].Or(1 << (next + 1)) }

func (s *hopSet) clear() {
	for i := range s {
		s[i].Store(0)
	}
}

func exchangeDeclaration(name, kind string, args amqp.Table) declaration {
	return declaration{
		text: fmt.Sprintf("exchange %q", name), delays: kind == delayedType,
		run: func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare(name, kind, true, false, false, false, args)
		},
	}
}

func queueDeclaration(name string, args amqp.Table) declaration {
	return declaration{text: fmt.Sprintf("queue %q", name), run: func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, args)
		return err
	}}
}

func bindQueue(queue, exchange, key string, args amqp.Table) declaration {
	text := fmt.Sprintf("binding of queue %q to exchange %q", queue, exchange)
	return declaration{text: text, run: func(ch *amqp.Channel) error {
		return ch.QueueBind(queue, key, exchange, false, args)
	}}
}

func bindExchange(to, from string, args amqp.Table) declaration {
	text := fmt.Sprintf("binding of exchange %q to exchange %q", to, from)
	return declaration{text: text, run: func(ch *amqp.Channel) error {
		return ch.ExchangeBind(to, "", from, false, args)
	}}
}
