package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sort"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// account is who to log in as.
type account struct{ user, password string }

// guest is there on a new broker.
func guest() account { return account{"guest", "guest"} }

// dial opens a connection that ends with the rule.
func (p *probe) dial(as account, vhost string) (*amqp.Connection, error) {
	conn, err := amqp.DialConfig("amqp://"+p.b.AMQPAddr, amqp.Config{
		SASL:      []amqp.Authentication{&amqp.PlainAuth{Username: as.user, Password: as.password}},
		Vhost:     vhost,
		Locale:    "en_US",
		Heartbeat: 30 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	p.ending = append(p.ending, func() { conn.Close() })
	return conn, nil
}

// channel is a channel on a connection of its own, so that its mistakes are its own.
type channel struct {
	*amqp.Channel
	p      *probe
	conn   *amqp.Connection
	closed chan *amqp.Error // what the broker ended the channel with
}

func (p *probe) channel() *channel { return p.channelAs(guest(), "/") }

func (p *probe) channelAs(as account, vhost string) *channel {
	conn, err := p.dial(as, vhost)
	p.must(err)
	return p.channelOn(conn)
}

func (p *probe) channelOn(conn *amqp.Connection) *channel {
	ch, err := conn.Channel()
	p.must(err)
	return &channel{ch, p, conn, ch.NotifyClose(make(chan *amqp.Error, 1))}
}

// again is a new channel on the same connection, or on a new one where an error has ended that.
func (c *channel) again() *channel {
	if c.conn.IsClosed() {
		c.conn = c.p.channel().conn
	}
	return c.p.channelOn(c.conn)
}

// queue declares a transient queue and returns its name.
func (c *channel) queue(short string, args amqp.Table) string {
	name := c.p.name(short)
	_, err := c.QueueDeclare(name, false, false, false, false, args)
	c.p.must(err)
	return name
}

// quorum declares a quorum queue.
func (c *channel) quorum(short string, args amqp.Table) string {
	all := amqp.Table{"x-queue-type": "quorum"}
	for k, v := range args {
		all[k] = v
	}
	name := c.p.name(short)
	_, err := c.QueueDeclare(name, true, false, false, false, all)
	c.p.must(err)
	return name
}

// exchange declares a transient exchange and returns its name.
func (c *channel) exchange(short, kind string, args amqp.Table) string {
	name := c.p.name(short)
	c.p.must(c.ExchangeDeclare(name, kind, false, false, false, false, args))
	return name
}

func (c *channel) bind(queue, key, exchange string, args amqp.Table) {
	c.p.must(c.QueueBind(queue, key, exchange, false, args))
}

// publish sends a message and, where the channel is in confirm mode, waits for the confirm.
func (c *channel) publish(exchange, key string, m amqp.Publishing) string {
	confirm, err := c.PublishWithDeferredConfirmWithContext(c.p.ctx, exchange, key, false, false, m)
	c.p.must(err)
	if confirm == nil {
		return "sent"
	}
	ctx, cancel := context.WithTimeout(c.p.ctx, awaitTimeout)
	defer cancel()
	acked, err := confirm.WaitContext(ctx)
	c.p.must(err)
	if acked {
		return "ack"
	}
	return "nack"
}

// send publishes a text to a queue.
func (c *channel) send(queue, body string) string {
	return c.publish("", queue, amqp.Publishing{Body: []byte(body)})
}

// confirming puts the channel in confirm mode.
func (c *channel) confirming() *channel {
	c.p.must(c.Confirm(false))
	return c
}

// take gets a message, acknowledged at once; the answer is its description, or "empty".
func (c *channel) take(queue string) string {
	d, ok, err := c.Get(queue, true)
	c.p.must(err)
	if !ok {
		return "empty"
	}
	return describe(d)
}

// body gets a message, acknowledged at once; the answer is its text, or "empty".
func (c *channel) body(queue string) string {
	d, ok, err := c.Get(queue, true)
	c.p.must(err)
	if !ok {
		return "empty"
	}
	return string(d.Body)
}

// bodies gets all messages.
func (c *channel) bodies(queue string) string {
	var all []string
	for {
		d, ok, err := c.Get(queue, true)
		c.p.must(err)
		if !ok {
			return strings.Join(all, " ")
		}
		all = append(all, string(d.Body))
	}
}

// await gets a message as soon as there is one.
func (c *channel) await(queue string) amqp.Delivery {
	var d amqp.Delivery
	if !c.p.eventually(func() (ok bool) {
		var err error
		d, ok, err = c.Get(queue, true)
		c.p.must(err)
		return ok
	}) {
		c.p.fatal("no message in %s within %v", queue, awaitTimeout)
	}
	return d
}

// holds waits until a queue has that many ready messages, and reports whether it came to that.
func (c *channel) holds(queue string, n int) bool {
	return c.p.eventually(func() bool {
		q, err := c.QueueDeclarePassive(queue, false, false, false, false, nil)
		c.p.must(err)
		return q.Messages == n
	})
}

// count is what a passive declaration says.
func (c *channel) count(queue string) string {
	q, err := c.QueueDeclarePassive(queue, false, false, false, false, nil)
	c.p.must(err)
	return fmt.Sprintf("%d messages, %d consumers", q.Messages, q.Consumers)
}

// consume starts a consumer with a tag.
func (c *channel) consume(queue, tag string, args amqp.Table) <-chan amqp.Delivery {
	deliveries, err := c.Consume(queue, tag, false, false, false, false, args)
	c.p.must(err)
	return deliveries
}

// next waits for a delivery.
func (p *probe) next(deliveries <-chan amqp.Delivery) amqp.Delivery {
	select {
	case d, ok := <-deliveries:
		if !ok {
			p.fatal("consumer ended")
		}
		return d
	case <-time.After(awaitTimeout):
		p.fatal("no delivery within %v", awaitTimeout)
	case <-p.ctx.Done():
		p.fatal("%v", p.ctx.Err())
	}
	return amqp.Delivery{}
}

// nextBodies waits for n deliveries.
func (p *probe) nextBodies(deliveries <-chan amqp.Delivery, n int) string {
	var all []string
	for range n {
		all = append(all, string(p.next(deliveries).Body))
	}
	return strings.Join(all, " ")
}

// outcome is how a channel fares after do: "ok", or the broker's error and what it ended. A method
// without an answer shows its error only with the next one that has an answer.
func (c *channel) outcome(do func(*channel) error) string {
	err := do(c)
	if err == nil {
		err = c.ExchangeDeclarePassive("amq.direct", "direct", true, false, false, false, nil)
	}
	return c.reply(err)
}

// reply is an error as the broker sent it.
func (c *channel) reply(err error) string {
	if errors.Is(err, amqp.ErrClosed) {
		if told, ok := <-c.closed; ok { // between two methods
			err = told
		}
	}
	var reply *amqp.Error
	switch {
	case err == nil:
		return "ok"
	case !errors.As(err, &reply):
		return "client: " + err.Error()
	case c.conn.IsClosed():
		return fmt.Sprintf("%d %s (connection)", reply.Code, reply.Reason)
	default:
		return fmt.Sprintf("%d %s (channel)", reply.Code, reply.Reason)
	}
}

// describe is all of a message that does not differ from run to run.
func describe(d amqp.Delivery) string {
	text := fmt.Sprintf("%q exchange=%q key=%q", d.Body, d.Exchange, d.RoutingKey)
	if d.Redelivered {
		text += " redelivered"
	}
	for _, property := range []struct{ name, value string }{
		{"content-type", d.ContentType}, {"expiration", d.Expiration}, {"correlation-id", d.CorrelationId},
		{"user-id", d.UserId}, {"message-id", d.MessageId}, {"type", d.Type}, {"app-id", d.AppId},
	} {
		if property.value != "" {
			text += fmt.Sprintf(" %s=%s", property.name, property.value)
		}
	}
	if d.Priority != 0 {
		text += fmt.Sprintf(" priority=%d", d.Priority)
	}
	if headers := withoutLastDeath(d.Headers); len(headers) > 0 {
		text += " headers=" + format(headers)
	}
	return text
}

// withoutLastDeath leaves out the headers that 3.10 has not; rules that look at all headers show
// them.
func withoutLastDeath(headers amqp.Table) amqp.Table {
	headers = maps.Clone(headers)
	maps.DeleteFunc(headers, func(key string, _ any) bool { return strings.HasPrefix(key, "x-last-death-") })
	return headers
}

// format is a field value with its type. A time is shown by its type alone.
func format(v any) string {
	var parts []string
	switch v := v.(type) {
	case amqp.Table:
		for k, value := range v {
			parts = append(parts, k+"="+format(value))
		}
		sort.Strings(parts)
		return "{" + strings.Join(parts, " ") + "}"
	case []any:
		for _, value := range v {
			parts = append(parts, format(value))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case string:
		return fmt.Sprintf("%q", v)
	case time.Time:
		return "timestamp"
	case nil:
		return "void"
	}
	return fmt.Sprintf("%T:%v", v, v)
}
