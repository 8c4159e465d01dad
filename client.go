package duepost

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Client is a connection to a broker that comes back by itself. Made by Connect; its methods may
// be called concurrently.
//
// There are two connections, so that a broker which takes no messages can still be told what
// was consumed: the second is made by the first Consume.
type Client struct {
	options Options
	log     *slog.Logger
	plan    *waitPlan

	publisher *publisher
	broker    atomic.Pointer[Broker]
	declared  declarations

	kinds        kinds   // of exchanges
	ready        nameSet // tiers, and the delayed exchange for queues
	readyHops    hopSet  // between levels
	readyQueues  nameSet // queues that due messages get to by name
	readyTargets nameSet // exchanges that due messages get to

	closing  atomic.Bool // Publish and Declare are refused
	close    sync.Once
	closeErr error

	consumers consumers
}

// Connect returns a client that is connected. It tries all addresses until ctx ends, or for
// [Options.ConnectTimeout] if ctx has no deadline; refused credentials end it at once.
//
// When the connection is lost later, the client connects again with growing pauses for as long
// as it is open, declares again what was declared through it, and resumes its consumers.
func Connect(ctx context.Context, o Options) (*Client, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	plan, err := newWaitPlan(o.Wait)
	if err != nil {
		return nil, err
	}
	d, err := newDialer(o)
	if err != nil {
		return nil, err
	}
	c := &Client{options: o, log: o.Logger.With("part", "sdk"), plan: plan}
	c.publisher = newPublisher(newLink("publish", d, o.Reconnect, c.log, c.prepare), o.MaxInFlight)
	c.consumers.init(func() *link { return newLink("consume", d, o.Reconnect, c.log, c.awaitTopology) })
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.ConnectTimeout)
		defer cancel()
	}
	if err := c.publisher.link.open(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// prepare finds out about the broker behind a new connection and declares again what was
// declared before.
func (c *Client) prepare(ctx context.Context, s *session) error {
	b, err := c.detect(ctx, s.conn)
	if err != nil {
		return err
	}
	if last := c.broker.Swap(&b); last != nil && last.Mode != b.Mode {
		c.forget()
	}
	c.log.Debug("connected", "product", b.Product, "version", b.Version, "mode", string(b.Mode))
	return c.declared.repeat(ctx, s, b.Mode, func(d declaration, err error) {
		c.log.Error("declare again", "what", d.text, "err", err)
		c.forget() // who needs it tries again and is told
	})
}

// awaitTopology keeps consumers back until the topology is declared again.
func (c *Client) awaitTopology(ctx context.Context, _ *session) error {
	_, err := c.publisher.link.session(ctx)
	return err
}

// forget makes the client look again at what it believed to be there.
func (c *Client) forget() {
	c.kinds.clear()
	c.ready.clear()
	c.readyHops.clear()
	c.readyQueues.clear()
	c.readyTargets.clear()
}

// makeReady declares what stands behind a name and notes that it is there.
func (c *Client) makeReady(ctx context.Context, name string, all []declaration) error {
	err := c.declare(ctx, all...)
	if err == nil {
		c.ready.add(name)
	}
	return err
}

func (c *Client) now() time.Time { return c.options.Now() }

// Close lets handlers return and then confirms come, each for at most [Options.DrainTimeout], and
// closes the connections. Publishes are refused as soon as the handlers have returned. What has no
// confirm by the end is [ErrUnconfirmed]. A second call waits for the first.
func (c *Client) Close() error {
	c.close.Do(func() {
		// 1. Handlers finish what they began, and may publish for it. Consumers end their handlers'
		// contexts when the time is over, and wait a little longer themselves.
		faults := []error{c.consumers.drain(c.options.DrainTimeout + 2*handlerGrace)}
		// 2. Nothing new, and what is under way gets its answer.
		c.closing.Store(true)
		faults = append(faults, c.publisher.drain(c.options.DrainTimeout))
		// 3. The connections. Who still waits gets ErrUnconfirmed or ErrClosed.
		c.consumers.close()
		c.publisher.link.close()
		c.closeErr = errors.Join(faults...)
	})
	return c.closeErr
}

// withDefaults fills in what is not set.
func (o Options) withDefaults() Options {
	fill(&o.URL, defaultURL)
	fill(&o.Name, programName())
	fill(&o.ConnectTimeout, 30*time.Second)
	fill(&o.Heartbeat, 10*time.Second)
	fill(&o.MaxInFlight, 1000)
	fill(&o.DrainTimeout, 30*time.Second)
	fill(&o.Wait.Prefix, "duepost")
	fill(&o.Wait.Type, Quorum)
	o.Reconnect = o.Reconnect.withDefaults(100*time.Millisecond, 10*time.Second)
	if o.Wait.Tiers == nil {
		o.Wait.Tiers = []time.Duration{
			time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 24 * time.Hour,
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// check refuses what cannot be.
func (o Options) check() error {
	return errors.Join(
		refuse(o.Mode != ModeAuto && o.Mode != ModeNative && o.Mode != ModeWaitQueues, "mode is %q", o.Mode),
		refuse(o.MaxInFlight < 1, "max in flight is %d, must be at least 1", o.MaxInFlight),
		refuse(o.ConnectTimeout < 0, "connect timeout is negative: %v", o.ConnectTimeout),
		refuse(o.DrainTimeout < 0, "drain timeout is negative: %v", o.DrainTimeout),
		refuse(o.Heartbeat < time.Second, "heartbeat is %v, must be at least 1s", o.Heartbeat),
	)
}

// fill sets what is zero.
func fill[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}
