package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
)

// consumePrefetch is how many messages are taken ahead; those not printed go back at the end.
const consumePrefetch = 200

// consumeCmd prints what comes to a queue. Every message is acknowledged after it was printed.
type consumeCmd struct {
	brokerURL
	Queue   string        `name:"queue" short:"q" placeholder:"NAME" help:"Consume from this queue, declared durable if missing."`
	Bind    []string      `name:"bind" placeholder:"EXCHANGE:KEY" help:"Bind the queue first; repeatable. Without --queue to a queue of our own that goes with us."`
	Count   int           `name:"count" short:"n" placeholder:"N" help:"End after so many messages. Default: never."`
	Timeout time.Duration `name:"timeout" placeholder:"DURATION" help:"End after this time; exit code 4 if --count was not reached. Default: never."`
	JSON    bool          `name:"json" help:"Print one JSON object a line."`
}

// Run prints until --count, --timeout, an interrupt or the end of the connection.
func (c *consumeCmd) Run(ctx context.Context, p process) error {
	binds, err := c.check()
	if err != nil {
		return err
	}
	conn, err := c.dial("consume")
	if err != nil {
		return err
	}
	defer conn.Close()
	queue, err := c.declare(conn, p.stderr)
	if err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	for _, b := range binds {
		if err := ch.QueueBind(queue, b.key, b.exchange, false, nil); err != nil {
			return &hintedError{fmt.Errorf("bind queue %q: %w", queue, err),
				"the exchange must exist; duepost publish --declare TYPE declares a delayed one", exitFailed}
		}
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	if !c.JSON {
		fmt.Fprintf(p.stderr, "waiting for messages on queue %q\n", queue)
	}
	n, err := c.print(ctx, ch, queue, p.stdout)
	if errors.Is(err, context.DeadlineExceeded) && n < c.Count {
		return &hintedError{fmt.Errorf("consume from queue %q: got %d of %d messages in %s",
			queue, n, c.Count, human(c.Timeout)), "", exitUnmet}
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("consume from queue %q: %w", queue, err)
	}
	return nil // an interrupt or the time that was set is a good end
}

// binding is one --bind.
type binding struct{ exchange, key string }

func (c *consumeCmd) check() ([]binding, error) {
	if c.Queue == "" && len(c.Bind) == 0 {
		return nil, &usageError{errors.New("consume needs --queue NAME or --bind EXCHANGE:KEY"),
			"duepost consume --queue orders"}
	}
	if c.Count < 0 || c.Timeout < 0 {
		return nil, &usageError{errors.New("--count and --timeout must not be negative"), ""}
	}
	var binds []binding
	for _, s := range c.Bind {
		exchange, key, ok := strings.Cut(s, ":")
		if !ok || exchange == "" {
			return nil, &usageError{fmt.Errorf("--bind: %q is not EXCHANGE:KEY", s),
				"the key may be empty, as in --bind news:"}
		}
		binds = append(binds, binding{exchange, key})
	}
	return binds, nil
}

// declare makes sure that there is a queue and returns its name.
func (c *consumeCmd) declare(conn *amqp.Connection, stderr io.Writer) (string, error) {
	if c.Queue != "" {
		exists, err := queueExists(conn, c.Queue)
		if exists || err != nil {
			return c.Queue, err
		}
		// Said aloud, for the name may be a slip.
		fmt.Fprintf(stderr, "there is no queue %q: declaring it (durable)\n", c.Queue)
		return c.Queue, declareQueue(conn, c.Queue)
	}
	ch, err := conn.Channel()
	if err != nil {
		return "", fmt.Errorf("open channel: %w", err)
	}
	q, err := ch.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		return "", fmt.Errorf("declare queue: %w", err)
	}
	return q.Name, nil
}

// print writes deliveries until the end of the story and returns how many.
func (c *consumeCmd) print(ctx context.Context, ch *amqp.Channel, queue string, w io.Writer) (n int, err error) {
	prefetch := consumePrefetch
	if c.Count > 0 {
		prefetch = min(c.Count, prefetch)
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return 0, err
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return 0, err
	}
	for c.Count == 0 || n < c.Count {
		select {
		case <-ctx.Done():
			return n, ctx.Err()
		case d, ok := <-deliveries:
			if !ok {
				return n, consumerEnd(closed)
			}
			if err := c.printOne(w, d, time.Now()); err != nil {
				return n, err
			}
			if err := d.Ack(false); err != nil {
				return n, channelError(err, closed)
			}
			n++
		}
	}
	return n, nil
}

// consumerEnd says why deliveries ended: the channel was closed, or only the consumer.
func consumerEnd(closed <-chan *amqp.Error) error {
	select {
	case said := <-closed:
		if said != nil {
			return said
		}
	default:
	}
	return errors.New("the broker cancelled the consumer; was the queue deleted?")
}

func (c *consumeCmd) printOne(w io.Writer, d amqp.Delivery, now time.Time) error {
	due := dueOf(d.Headers)
	if c.JSON {
		return json.NewEncoder(w).Encode(printedDelivery(d, now, due))
	}
	var note string
	switch late := now.Sub(due.expected).Milliseconds(); {
	case !due.known:
	case late < 0:
		note = fmt.Sprintf("  (%d ms BEFORE due)", -late)
	case due.past:
		note = fmt.Sprintf("  (due in the past, %d ms after it was published)", late)
	default:
		note = fmt.Sprintf("  (%d ms after due)", late)
	}
	if d.Redelivered {
		note += "  (redelivered)"
	}
	_, err := fmt.Fprintf(w, "%s  %s  %s%s\n", now.Format("15:04:05.000"), keyOf(d), printable(d.Body), note)
	return err
}

// printedLine is the JSON form of a delivery.
type printedLine struct {
	Received    string     `json:"received"`
	Exchange    string     `json:"exchange"`
	RoutingKey  string     `json:"routing_key"`
	Redelivered bool       `json:"redelivered"`
	Due         string     `json:"due,omitempty"`
	LateMillis  *int64     `json:"late_ms,omitempty"`
	Headers     amqp.Table `json:"headers,omitempty"`
	Body        string     `json:"body"`
}

func printedDelivery(d amqp.Delivery, now time.Time, due dueTime) printedLine {
	const layout = "2006-01-02T15:04:05.000Z07:00"
	line := printedLine{
		Received: now.Format(layout), Exchange: d.Exchange, RoutingKey: d.RoutingKey,
		Redelivered: d.Redelivered, Headers: d.Headers, Body: string(d.Body),
	}
	if due.known {
		late := now.UnixMilli() - due.expected.UnixMilli()
		line.Due, line.LateMillis = due.stated.Format(layout), &late
	}
	return line
}

// dueTime is when a released message was due.
type dueTime struct {
	known    bool      // messages of other publishers have no stamp that tells
	past     bool      // it was due before it was published
	stated   time.Time // what the publisher asked for
	expected time.Time // the earliest it could be handed over: not before it was published
}

// dueOf reads the headers that publish sets: the absolute time, or the publisher's clock and the
// delay, which a broker negates when it has served it.
func dueOf(h amqp.Table) dueTime {
	ms, stamped := integer(h[publishedHeader])
	published := time.UnixMilli(ms)
	if at, ok := integer(h[deliveryTimeHeader]); ok {
		due := time.UnixMilli(at)
		if stamped && due.Before(published) {
			return dueTime{known: true, past: true, stated: due, expected: published}
		}
		return dueTime{known: true, stated: due, expected: due}
	}
	delay, delayed := integer(h[delayHeader])
	due := time.UnixMilli(ms + max(delay, -delay))
	return dueTime{known: stamped && delayed, stated: due, expected: due}
}

func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case int32:
		return int64(v), true
	case int16:
		return int64(v), true
	case int8:
		return int64(v), true
	}
	return 0, false
}

// keyOf names where a message came through, in one word where that says it all.
func keyOf(d amqp.Delivery) string {
	if d.Exchange == "" || d.Exchange == conventionExchange {
		return d.RoutingKey
	}
	return d.Exchange + ":" + d.RoutingKey
}

// printable shows text as it is and anything else quoted, so that a body cannot play with the
// terminal.
func printable(body []byte) string {
	s := string(body)
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
