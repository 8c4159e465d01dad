package duepost

import (
	"context"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// delayedType is the type of exchanges that delay.
const delayedType = "x-delayed-message"

// Headers of delayed exchanges.
const (
	xDelay       = "x-delay"
	deliveryTime = "x-opt-delivery-time"
	delayKey     = "x-delay-key"
	delayCancel  = "x-delay-cancel"
)

// delayedSuffix follows the name of an exchange in that of the delayed one beside it. The name
// begins with the other's, so that patterns of permissions match both.
const delayedSuffix = ".delayed"

// The longest delays in milliseconds. Beyond its limit the plugin delivers at once.
const (
	maxDuepostDelay = 100 * 365 * 24 * 60 * 60 * 1000
	maxPluginDelay  = 1<<32 - 1
)

// delay makes e, which is m, wait.
func (c *Client) delay(ctx context.Context, e *envelope, m *Message, w wait) error {
	b := c.Broker()
	if m.Key != "" && !b.Keys {
		return fmt.Errorf("key of a delayed message: %w", ErrNotSupported)
	}
	switch b.Mode {
	case ModeNative:
		return c.delayInExchange(ctx, e, m, w)
	case ModeWaitQueues:
		return c.delayInQueues(ctx, e, m, w)
	}
	return fmt.Errorf("delayed message: %w", ErrNotSupported)
}

// delayInExchange sends e through a delayed exchange.
func (c *Client) delayInExchange(ctx context.Context, e *envelope, m *Message, w wait) error {
	ours := c.Broker().isDuepost()
	longest := int64(maxPluginDelay)
	if ours {
		longest = maxDuepostDelay
	}
	if w.millis > longest {
		return fmt.Errorf("%w: the broker takes at most %v", ErrDelayTooLong, millisDuration(longest))
	}
	var err error
	if e.exchange, err = c.delayedExchange(ctx, m.Exchange, m.RoutingKey); err != nil {
		return err
	}
	if e.publishing.Headers == nil {
		e.publishing.Headers = amqp.Table{}
	}
	headers := e.publishing.Headers
	if e.exchange != m.Exchange {
		headers[headerTo] = m.Exchange
	}
	if m.Key != "" {
		headers[delayKey] = m.Key
	}
	switch {
	case w.millis == 0:
	case ours && !m.At.IsZero():
		headers[deliveryTime] = ceilUnixMillis(m.At)
	default:
		headers[xDelay] = w.millis
		e.mandatory = e.mandatory && ours // the plugin returns what it keeps
	}
	return nil
}

// delayedExchange is the exchange to which messages for an exchange go to be delayed: itself if
// it delays, else one beside it that hands over to it. Messages for the default exchange go to
// one that knows the queue by its name.
func (c *Client) delayedExchange(ctx context.Context, exchange, key string) (string, error) {
	if exchange == "" {
		name := c.plan.prefix + delayedSuffix
		if c.readyQueues.has(key) {
			return name, nil
		}
		err := c.declare(ctx, delayedDeclaration(name, amqp.ExchangeDirect), bindQueue(key, name, key, nil))
		return name, c.noteTarget(&c.readyQueues, exchange, key, err)
	}
	delays, err := c.delays(ctx, exchange)
	if err != nil || delays {
		return exchange, err
	}
	name := exchange + delayedSuffix
	if c.readyTargets.has(exchange) {
		return name, nil
	}
	if len(name) > maxShortString {
		return "", invalid("exchange %.20q… has %d bytes, allowed are %d to delay for it",
			exchange, len(exchange), maxShortString-len(delayedSuffix))
	}
	err = c.declare(ctx, delayedDeclaration(name, amqp.ExchangeFanout), bindExchange(exchange, name, nil))
	return name, c.noteTarget(&c.readyTargets, exchange, exchange, err)
}

// scope is the exchange on which keys of messages for an exchange count: the one in which they
// wait.
func (c *Client) scope(ctx context.Context, exchange string) (string, error) {
	if exchange != "" {
		return c.delayedExchange(ctx, exchange, "")
	}
	name := c.plan.prefix + delayedSuffix
	if c.ready.has(name) {
		return name, nil
	}
	return name, c.makeReady(ctx, name, []declaration{delayedDeclaration(name, amqp.ExchangeDirect)})
}

// delays reports whether an exchange is a delayed one. What was not declared by this client is
// looked up once.
func (c *Client) delays(ctx context.Context, exchange string) (bool, error) {
	delays, known := c.kinds.of(exchange)
	if known {
		return delays, nil
	}
	err := c.publisher.link.ask(ctx, func(ch *amqp.Channel) error { return lookUp(ch, exchange) })
	switch {
	case hasCode(err, amqp.NotFound):
		return false, fmt.Errorf("%w: %w", ErrUnknownExchange, err)
	case err != nil:
		return false, fmt.Errorf("look up exchange %q: %w", exchange, err)
	}
	// Declaring it anew tells the type: brokers compare that first.
	err = c.publisher.link.ask(ctx, delayedDeclaration(exchange, amqp.ExchangeDirect).run)
	switch {
	case err == nil:
		delays = true
	case hasCode(err, amqp.PreconditionFailed):
		delays = !strings.Contains(err.Error(), "arg 'type'")
	case hasCode(err, amqp.AccessRefused): // it cannot be told; going by way of another is right for both
	default:
		return false, fmt.Errorf("look up exchange %q: %w", exchange, err)
	}
	c.kinds.note(exchange, delays)
	return delays, nil
}

// lookUp finds out whether an exchange is there.
func lookUp(ch *amqp.Channel, exchange string) error {
	return ch.ExchangeDeclarePassive(exchange, amqp.ExchangeDirect, true, false, false, false, nil)
}

// noteTarget notes that messages that are due get to a target, or makes an error of its own of
// why not.
func (c *Client) noteTarget(ready *nameSet, exchange, name string, err error) error {
	switch {
	case hasCode(err, amqp.NotFound) && exchange == "":
		return fmt.Errorf("%w: no such queue: %w", ErrUnroutable, err)
	case hasCode(err, amqp.NotFound):
		return fmt.Errorf("%w: %w", ErrUnknownExchange, err)
	case err != nil:
		return err
	}
	ready.add(name)
	return nil
}

func delayedDeclaration(name, inner string) declaration {
	return exchangeDeclaration(name, delayedType, amqp.Table{"x-delayed-type": inner})
}

func millisDuration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// ceilUnixMillis is an instant in unix milliseconds, rounded up so that nothing is early.
func ceilUnixMillis(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// kinds is which exchanges delay by themselves.
type kinds struct{ delayed, plain nameSet }

func (k *kinds) of(exchange string) (delays, known bool) {
	if k.plain.has(exchange) {
		return false, true
	}
	delays = k.delayed.has(exchange)
	return delays, delays
}

func (k *kinds) note(exchange string, delays bool) {
	if delays {
		k.delayed.add(exchange)
		return
	}
	k.plain.add(exchange)
}

func (k *kinds) clear() {
	k.delayed.clear()
	k.plain.clear()
}
