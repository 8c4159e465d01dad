package duepost

import (
	"context"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Topology is what a program needs on the broker before it can publish or consume. Everything in
// it is durable.
type Topology struct {
	Exchanges []Exchange
	Queues    []Queue
	Bindings  []Binding
}

// Exchange is where messages are published and routed.
type Exchange struct {
	Name string
	// Kind says how bindings are compared. Default Direct.
	Kind ExchangeKind
	// Delayed makes it an exchange of type x-delayed-message in ModeNative, for publishers
	// that are not this client, and has no effect otherwise. Messages of this client can be
	// delayed for any exchange.
	Delayed bool
	// Args are further arguments, such as alternate-exchange.
	Args map[string]any
}

// ExchangeKind is how an exchange routes.
type ExchangeKind string

// The kinds of exchanges.
const (
	Direct  ExchangeKind = "direct"  // binding key and routing key are equal
	Fanout  ExchangeKind = "fanout"  // every binding
	Topic   ExchangeKind = "topic"   // * is a word of the routing key, # any number of words
	Headers ExchangeKind = "headers" // headers of the message, by Args of the binding
)

// Queue keeps messages until a consumer has dealt with them.
type Queue struct {
	Name string
	// Type is Quorum or Classic; empty takes the default of the virtual host.
	Type QueueType
	// Args are further arguments, such as x-max-length.
	Args map[string]any
}

// Binding sends messages of an exchange to a queue, or to another exchange.
type Binding struct {
	Exchange   string // the source
	Queue      string // where messages go
	ToExchange string // where they go instead of a queue
	Key        string
	Args       map[string]any // for exchanges of kind Headers
}

// Declare makes what is not there yet and remembers it: after a reconnect it is declared again,
// before anything is published or consumed. What is there with other properties is an error that
// wraps the broker's *amqp091.Error, and is not remembered. Declaring twice does no harm.
func (c *Client) Declare(ctx context.Context, t Topology) error {
	if c.closing.Load() {
		return fmt.Errorf("declare: %w", ErrClosed)
	}
	var all []declaration
	for _, x := range t.Exchanges {
		d, err := declareExchange(x, c.Broker().Mode)
		if err != nil {
			return err
		}
		all = append(all, d)
	}
	for _, q := range t.Queues {
		d, err := declareQueue(q)
		if err != nil {
			return err
		}
		all = append(all, d)
	}
	for _, b := range t.Bindings {
		d, err := declareBinding(b)
		if err != nil {
			return err
		}
		all = append(all, d)
	}
	if err := c.declare(ctx, all...); err != nil {
		return err
	}
	for _, x := range t.Exchanges {
		c.kinds.note(x.Name, x.Delayed && c.Broker().Mode == ModeNative)
	}
	return nil
}

// declaration is one thing to declare. Two with the same text declare the same.
type declaration struct {
	text string // for errors: queue "orders"
	run  func(*amqp.Channel) error
	// delays says that it can only be declared in ModeNative. RabbitMQ 3 would close the
	// connection.
	delays bool
}

func declareExchange(x Exchange, mode Mode) (declaration, error) {
	args, err := toTable(x.Args, 1)
	if err != nil {
		return declaration{}, err
	}
	kind := string(x.Kind)
	if kind == "" {
		kind = string(Direct)
	}
	if x.Delayed && mode == ModeNative {
		args["x-delayed-type"] = kind
		kind = delayedType
	}
	return exchangeDeclaration(x.Name, kind, args), nil
}

func declareQueue(q Queue) (declaration, error) {
	if q.Name == "" {
		return declaration{}, invalid("declare queue: its name is empty")
	}
	args, err := toTable(q.Args, 1)
	if err != nil {
		return declaration{}, err
	}
	if q.Type != "" {
		args["x-queue-type"] = string(q.Type)
	}
	return queueDeclaration(q.Name, args), nil
}

func declareBinding(b Binding) (declaration, error) {
	args, err := toTable(b.Args, 0)
	if err != nil {
		return declaration{}, err
	}
	if b.ToExchange != "" {
		text := fmt.Sprintf("binding of exchange %q to exchange %q with key %q and %v", b.ToExchange, b.Exchange, b.Key, args)
		return declaration{text: text, run: func(ch *amqp.Channel) error {
			return ch.ExchangeBind(b.ToExchange, b.Key, b.Exchange, false, args)
		}}, nil
	}
	text := fmt.Sprintf("binding of queue %q to exchange %q with key %q and %v", b.Queue, b.Exchange, b.Key, args)
	return declaration{text: text, run: func(ch *amqp.Channel) error {
		return ch.QueueBind(b.Queue, b.Key, b.Exchange, false, args)
	}}, nil
}

// declare declares and remembers what the broker accepted. It stops at the first refusal.
func (c *Client) declare(ctx context.Context, all ...declaration) error {
	return c.publisher.link.ask(ctx, c.declaring(all...))
}

func (c *Client) declaring(all ...declaration) func(*amqp.Channel) error {
	return func(ch *amqp.Channel) error {
		for _, d := range all {
			if err := d.run(ch); err != nil {
				return fmt.Errorf("declare %s: %w", d.text, err)
			}
			c.declared.add(d)
		}
		return nil
	}
}

// declarations is what was declared, in its order.
type declarations struct {
	mu    sync.Mutex
	texts map[string]bool // guarded by mu
	all   []declaration   // guarded by mu
}

func (d *declarations) add(one declaration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.texts[one.text] {
		return
	}
	if d.texts == nil {
		d.texts = map[string]bool{}
	}
	d.texts[one.text] = true
	d.all = append(d.all, one)
}

// repeat declares everything again. What the broker refuses is told to refused and left out:
// somebody has made something else of it, and the rest is still of use.
func (d *declarations) repeat(ctx context.Context, s *session, mode Mode, refused func(declaration, error)) error {
	d.mu.Lock()
	left := d.all[:len(d.all):len(d.all)]
	d.mu.Unlock()
	for len(left) > 0 {
		err := s.scratch(func(ch *amqp.Channel) error {
			for len(left) > 0 {
				one := left[0]
				left = left[1:]
				if one.delays && mode != ModeNative {
					refused(one, ErrNotSupported)
					continue
				}
				if err := one.run(ch); err != nil {
					if !s.isEnd(ctx, err) {
						refused(one, err)
					}
					return err
				}
			}
			return nil
		})
		if s.isEnd(ctx, err) {
			return err
		}
	}
	return nil
}
