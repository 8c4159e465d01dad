package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Names that publish and consume share.
const (
	// conventionExchange carries the delayed messages of --to: a durable delayed exchange of
	// inner type direct, where each queue is bound with its own name.
	conventionExchange = "duepost.delayed"
	// delayHeader is the delay in milliseconds, negated once it has been served.
	delayHeader = "x-delay"
	// deliveryTimeHeader is the due instant in unix milliseconds.
	deliveryTimeHeader = "x-opt-delivery-time"
	// publishedHeader is the publisher's clock in unix milliseconds, so that consume can tell
	// lateness without trusting a broker.
	publishedHeader = "x-published-ms"
	// confirmWindow is how many messages may be without a confirm.
	confirmWindow = 1000
	// pluginMaxDelay is the longest delay that RabbitMQ's plugin keeps; a longer one it hands
	// over at once, without a word.
	pluginMaxDelay = (1<<32 - 1) * time.Millisecond
)

// publishCmd publishes one body once or more. With --to it declares what it needs, in a way
// that leaves existing things alone; with --exchange it declares nothing unless told to.
type publishCmd struct {
	brokerURL
	To       string            `name:"to" xor:"target" placeholder:"QUEUE" help:"Publish to this queue, declared durable if missing. With a delay the way leads over the delayed exchange duepost.delayed, declared and bound if missing; without one straight to the queue."`
	Exchange string            `name:"exchange" xor:"target" placeholder:"NAME" help:"Publish to this exchange, which must exist. A delay only works if it is of type x-delayed-message."`
	Declare  string            `name:"declare" enum:",direct,fanout,topic,headers" default:"" placeholder:"TYPE" help:"Declare --exchange as a durable delayed exchange of this inner type: direct, fanout, topic or headers."`
	Key      string            `name:"key" placeholder:"KEY" help:"Routing key for --exchange."`
	In       delayFlag         `name:"in" xor:"due" placeholder:"DELAY" help:"Hand over after this long: 5s, 90m, 7d."`
	At       dueFlag           `name:"at" xor:"due" placeholder:"TIME" help:"Hand over at this time: 2027-01-31T09:00:00+01:00, '2027-01-31 09:00' or the next 09:00 (local)."`
	Header   map[string]string `name:"header" short:"H" mapsep:"none" placeholder:"NAME=VALUE" help:"Header with a string value; repeatable."`
	Persist  bool              `name:"persistent" default:"true" negatable:"" help:"Keep over a broker restart (default); --no-persistent for a transient message."`
	Count    int               `name:"count" short:"n" default:"1" help:"Publish so many times."`
	Body     string            `arg:"" optional:"" help:"The message; read from standard input when absent or -."`
}

// Run publishes and waits until the broker has confirmed everything.
func (c *publishCmd) Run(ctx context.Context, p process) error {
	body, err := c.check(p.stdin)
	if err != nil {
		return err
	}
	conn, err := c.dial("publish")
	if err != nil {
		return err
	}
	defer conn.Close()
	exchange, key, err := c.target(conn)
	if err != nil {
		return err
	}
	if d := c.delay(time.Now()); d > pluginMaxDelay && isPlugin(conn) {
		return &hintedError{fmt.Errorf("delay of %v: RabbitMQ's plugin would hand it over at once", d),
			fmt.Sprintf("its longest is %v", pluginMaxDelay), exitFailed}
	}
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	if err := c.publishAll(ctx, ch, exchange, key, body); err != nil {
		return fmt.Errorf("publish to %s: %w", place(exchange, key), err)
	}
	fmt.Fprintf(p.stdout, "published %d to %s, confirmed%s\n",
		c.Count, place(exchange, key), c.dueText(time.Now()))
	return nil
}

// check finds faults of the command line that the parser cannot see, and reads the body.
func (c *publishCmd) check(stdin io.Reader) ([]byte, error) {
	switch {
	case c.To == "" && c.Exchange == "":
		return nil, &usageError{errors.New("publish needs --to QUEUE or --exchange NAME"),
			"duepost publish --in 5s --to orders hello"}
	case c.To != "" && (c.Key != "" || c.Declare != ""):
		return nil, &usageError{errors.New("--key and --declare go with --exchange, not with --to"), ""}
	case c.Count < 1:
		return nil, &usageError{fmt.Errorf("--count: is %d, must be at least 1", c.Count), ""}
	case c.Body != "" && c.Body != "-":
		return []byte(c.Body), nil
	}
	if f, ok := stdin.(*os.File); ok && c.Body == "" && isTerminal(f) {
		return nil, &usageError{errors.New("publish needs a body"),
			"give it as the last argument, or on standard input (- reads it from the terminal)"}
	}
	body, err := io.ReadAll(stdin)
	if err != nil {
		return nil, fmt.Errorf("read body from standard input: %w", err)
	}
	return body, nil
}

// target declares what --to or --declare ask for and says where to publish.
func (c *publishCmd) target(conn *amqp.Connection) (exchange, key string, err error) {
	if c.To != "" {
		if err := declareQueue(conn, c.To); err != nil {
			return "", "", err
		}
		if !c.delayed() {
			return "", c.To, nil
		}
	}
	ch, err := conn.Channel()
	if err != nil {
		return "", "", fmt.Errorf("open channel: %w", err)
	}
	defer ch.Close()
	if c.To == "" {
		if c.Declare == "" {
			return c.Exchange, c.Key, nil
		}
		return c.Exchange, c.Key, declareDelayed(ch, c.Exchange, c.Declare)
	}
	if err := declareDelayed(ch, conventionExchange, "direct"); err != nil {
		return "", "", err
	}
	if err := ch.QueueBind(c.To, c.To, conventionExchange, false, nil); err != nil {
		return "", "", fmt.Errorf("bind queue %q to %s: %w", c.To, conventionExchange, err)
	}
	return conventionExchange, c.To, nil
}

// publishAll publishes in windows: send, wait for all confirms, look at what came back.
func (c *publishCmd) publishAll(ctx context.Context, ch *amqp.Channel, exchange, key string, body []byte) error {
	if err := ch.Confirm(false); err != nil {
		return err
	}
	returns := ch.NotifyReturn(make(chan amqp.Return, confirmWindow))
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	pending := make([]*amqp.DeferredConfirmation, 0, confirmWindow)
	for left := c.Count; left > 0; left -= len(pending) {
		pending = pending[:0]
		for range min(left, confirmWindow) {
			// RabbitMQ's plugin returns every delayed mandatory message although it will be
			// delivered, so only messages that are routed at once are mandatory.
			d, err := ch.PublishWithDeferredConfirmWithContext(ctx, exchange, key, !c.delayed(), false, c.message(body))
			if err != nil {
				return channelError(err, closed)
			}
			pending = append(pending, d)
		}
		for _, d := range pending {
			acked, err := d.WaitContext(ctx)
			if err != nil || !acked && ch.IsClosed() {
				return channelError(err, closed)
			}
			if !acked {
				return errors.New("the broker refused a message (basic.nack)")
			}
		}
		// A return precedes its confirm [amqp basic.return] [rmq confirms], so all are here.
		if n := len(returns); n > 0 {
			r := <-returns
			return fmt.Errorf("%d of %d came back: %d %s", n, c.Count, r.ReplyCode, r.ReplyText)
		}
	}
	return nil
}

// channelError prefers what the broker said over how the client library noticed.
func channelError(err error, closed <-chan *amqp.Error) error {
	select {
	case said := <-closed:
		if said != nil {
			return said
		}
	default:
	}
	if err == nil {
		err = amqp.ErrClosed
	}
	return err
}

// message stamps and addresses one message.
func (c *publishCmd) message(body []byte) amqp.Publishing {
	now := time.Now()
	m := amqp.Publishing{
		DeliveryMode: amqp.Transient,
		Timestamp:    now,
		Headers:      amqp.Table{publishedHeader: now.UnixMilli()},
		Body:         body,
	}
	if c.Persist {
		m.DeliveryMode = amqp.Persistent
	}
	for k, v := range c.Header {
		m.Headers[k] = v
	}
	if c.delayed() {
		// Rounded up, so that a broker that rounds down is not early for it.
		m.Headers[delayHeader] = ceilMillis(c.delay(now))
	}
	if t := time.Time(c.At); !t.IsZero() {
		// The absolute time wins where it is known; elsewhere x-delay serves.
		m.Headers[deliveryTimeHeader] = t.UnixMilli()
	}
	return m
}

func (c *publishCmd) delayed() bool { return c.In > 0 || !time.Time(c.At).IsZero() }

// delay is how long after now the message is due; 0 if it already is.
func (c *publishCmd) delay(now time.Time) time.Duration {
	if t := time.Time(c.At); !t.IsZero() {
		return max(0, t.Sub(now))
	}
	return time.Duration(c.In)
}

func (c *publishCmd) dueText(now time.Time) string {
	if !c.delayed() {
		return ""
	}
	due := now.Add(c.delay(now))
	layout := "2006-01-02 15:04:05"
	if due.Sub(now) < 12*time.Hour {
		layout = "15:04:05"
	}
	return fmt.Sprintf(", due at %s (in %v)", due.Format(layout), c.delay(now).Round(time.Millisecond))
}

// place names an exchange and a key, or the queue that the default exchange leads to.
func place(exchange, key string) string {
	if exchange == "" {
		return fmt.Sprintf("queue %q", key)
	}
	return fmt.Sprintf("exchange %q, key %q", exchange, key)
}

func ceilMillis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
