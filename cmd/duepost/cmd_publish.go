package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
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
	Declare  string            `name:"declare" placeholder:"TYPE" help:"Declare --exchange as a durable delayed exchange of this inner type: direct, fanout, topic or headers."`
	Key      string            `name:"key" placeholder:"KEY" help:"Routing key for --exchange."`
	In       delayFlag         `name:"in" xor:"due" placeholder:"DELAY" help:"Hand over after this long: 5s, 1h30m, 7d, 2w, 1y (365 days)."`
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
		return &hintedError{fmt.Errorf("delay of %s: RabbitMQ's plugin would hand it over at once", human(d)),
			fmt.Sprintf("its longest is %s", human(pluginMaxDelay)), exitFailed}
	}
	if err := c.checkDelays(conn, p.stderr); err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	sent := time.Now()
	if n, err := c.publishAll(ctx, ch, exchange, key, body); err != nil {
		return fmt.Errorf("publish to %s: %d of %d confirmed: %w", place(exchange, key), n, c.Count, err)
	}
	fmt.Fprintf(p.stdout, "published %d to %s, confirmed%s\n", c.Count, place(exchange, key), c.dueText(sent))
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
	case c.Declare != "" && !slices.Contains(innerTypes(), c.Declare):
		return nil, &usageError{fmt.Errorf("--declare: %q is not one of %s", c.Declare, strings.Join(innerTypes(), ", ")),
			"it is the type by which the delayed exchange routes"}
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

func innerTypes() []string { return []string{"direct", "fanout", "topic", "headers"} }

// checkDelays refuses a delay that --exchange would ignore: the message would be handed over at
// once. Exchanges that this command has declared itself delay.
func (c *publishCmd) checkDelays(conn *amqp.Connection, stderr io.Writer) error {
	if !c.delayed() || c.To != "" || c.Declare != "" {
		return nil
	}
	does, err := delays(conn, c.Exchange)
	if err != nil {
		return err
	}
	switch does {
	case no:
		return &hintedError{fmt.Errorf("exchange %q does not delay, so nothing was published: it is not of type %s",
			c.Exchange, delayedType), "--declare TYPE declares a new exchange that does, --to QUEUE needs none", exitFailed}
	case unknown:
		fmt.Fprintf(stderr, "whether exchange %q delays cannot be found out: this user may not declare\n", c.Exchange)
	}
	return nil
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

// publishAll publishes in windows: send, wait for all confirms, look at what came back. It
// returns how many were confirmed and not returned, also with an error.
func (c *publishCmd) publishAll(
	ctx context.Context, ch *amqp.Channel, exchange, key string, body []byte,
) (confirmed int, err error) {
	if err := ch.Confirm(false); err != nil {
		return 0, err
	}
	returns := ch.NotifyReturn(make(chan amqp.Return, confirmWindow))
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	pending := make([]*amqp.DeferredConfirmation, 0, confirmWindow)
	for confirmed < c.Count {
		pending = pending[:0]
		for range min(c.Count-confirmed, confirmWindow) {
			if err = ctx.Err(); err != nil {
				break
			}
			// RabbitMQ's plugin returns every delayed mandatory message although it will be
			// delivered, so only messages that are routed at once are mandatory.
			var d *amqp.DeferredConfirmation
			d, err = ch.PublishWithDeferredConfirmWithContext(ctx, exchange, key, !c.delayed(), false, c.message(body))
			if err != nil {
				break
			}
			pending = append(pending, d)
		}
		n, waitErr := awaitConfirms(ctx, pending)
		confirmed += n
		if errors.Is(waitErr, errNacked) && ch.IsClosed() {
			waitErr = amqp.ErrClosed // which is why it was not confirmed
		}
		if err = cmp.Or(err, waitErr); err != nil && (ctx.Err() == nil || ch.IsClosed()) {
			return confirmed, channelError(err, closed)
		} else if err != nil {
			return confirmed, err
		}
		// A return precedes its confirm [amqp basic.return] [rmq confirms], so all are here.
		if n := len(returns); n > 0 {
			r := <-returns
			return confirmed - n, fmt.Errorf("%d came back: %d %s", n, r.ReplyCode, r.ReplyText)
		}
	}
	return confirmed, nil
}

var errNacked = errors.New("the broker refused a message (basic.nack)")

// awaitConfirms waits for all and returns how many are confirmed; after an error it counts those
// that are confirmed already.
func awaitConfirms(ctx context.Context, pending []*amqp.DeferredConfirmation) (confirmed int, err error) {
	for _, d := range pending {
		if err == nil {
			_, err = d.WaitContext(ctx)
		}
		switch {
		case d.Acked():
			confirmed++
		case err == nil:
			err = errNacked // or the channel was closed
		}
	}
	return confirmed, err
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
	if at := time.Time(c.At); at.Before(now) && !at.IsZero() {
		return fmt.Sprintf(", due at %s, in the past: handed over at once", at.Local().Format(layout))
	}
	if due.Sub(now) < 12*time.Hour {
		layout = "15:04:05"
	}
	return fmt.Sprintf(", due at %s (in %s)", due.Format(layout), human(c.delay(now)))
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
