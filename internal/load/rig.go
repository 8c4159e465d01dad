package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// sampleEvery is how often progress and memory are looked at. Rates do not depend on it: a
// sample is a pair of count and time.
const sampleEvery = 5 * time.Millisecond

// rig is what one run has: its connections, what it declared in the broker, and its workers.
// Workers that fail cancel the run's context with their error as the cause.
type rig struct {
	o        Options
	admin    *amqp.Connection
	conns    []*amqp.Connection
	exchange string
	queues   []string

	steady     *atomic.Bool
	publishers []*publisher
	consumers  []*consumer

	ctx           context.Context
	fail          context.CancelCauseFunc
	stopConsumers context.CancelFunc
	publishing    sync.WaitGroup
	consuming     sync.WaitGroup
	watching      sync.WaitGroup
	rssPeak       atomic.Int64
}

// newRig connects and declares queues, and a delayed exchange if the scenario needs one.
func newRig(ctx context.Context, o Options, delayed bool) (*rig, error) {
	r := &rig{o: o, steady: new(atomic.Bool)}
	r.ctx, r.fail = context.WithCancelCause(ctx)
	err := r.declare(delayed)
	for i := 0; err == nil && i < o.Publishers; i++ {
		err = r.addPublisher(i)
	}
	for i := 0; err == nil && i < o.Consumers; i++ {
		err = r.addConsumer(i)
	}
	for _, pid := range []int{o.PID, o.HelperPID} {
		if err == nil && pid != 0 {
			_, err = readUsage(pid, o.Children)
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.watching.Go(r.watchMemory)
	return r, nil
}

// declare makes things that are ours alone and that close removes.
func (r *rig) declare(delayed bool) (err error) {
	if r.admin, err = r.connect(); err != nil {
		return err
	}
	ch, err := r.admin.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	if r.o.Route != nil {
		r.exchange, r.queues = r.o.Route.Exchange, []string{r.o.Route.Queue}
		return ch.Close()
	}
	name := fmt.Sprintf("duepost.bench.%x", rand.Uint64())
	if delayed {
		err := ch.ExchangeDeclare(name, "x-delayed-message", true, false, false, false,
			amqp.Table{"x-delayed-type": "direct"})
		if err != nil {
			return fmt.Errorf("declare delayed exchange: %w", err)
		}
		r.exchange = name
	}
	for i := range r.o.Queues {
		queue := fmt.Sprintf("%s.%d", name, i)
		if _, err := ch.QueueDeclare(queue, r.o.Persistent, false, false, false, nil); err != nil {
			return fmt.Errorf("declare queue: %w", err)
		}
		r.queues = append(r.queues, queue)
		if !delayed {
			continue
		}
		if err := ch.QueueBind(queue, queue, name, false, nil); err != nil {
			return fmt.Errorf("bind queue: %w", err)
		}
	}
	return ch.Close()
}

func (r *rig) connect() (*amqp.Connection, error) {
	props := amqp.NewConnectionProperties()
	props.SetClientConnectionName("duepost bench")
	conn, err := amqp.DialConfig(r.o.URL, amqp.Config{Properties: props})
	if err != nil {
		return nil, fmt.Errorf("connect to broker: %w", err)
	}
	r.conns = append(r.conns, conn)
	return conn, nil
}

func (r *rig) addPublisher(i int) error {
	conn, err := r.connect()
	if err != nil {
		return err
	}
	p := &publisher{
		id: uint32(i), o: r.o, exchange: r.exchange, key: r.queues[i%len(r.queues)],
		steady: r.steady, confirm: newMeasure(),
	}
	r.publishers = append(r.publishers, p)
	return p.open(conn)
}

func (r *rig) addConsumer(i int) error {
	conn, err := r.connect()
	if err != nil {
		return err
	}
	c := &consumer{
		queue: r.queues[i%len(r.queues)], o: r.o, steady: r.steady,
		ledger: newLedger(), latency: newMeasure(), lateness: newMeasure(),
	}
	r.consumers = append(r.consumers, c)
	return c.open(conn)
}

// broker is the product and version that the broker calls itself.
func (r *rig) broker() string {
	text := func(key string) string { s, _ := r.admin.Properties[key].(string); return s }
	return strings.TrimSpace(text("product") + " " + text("version"))
}

// publish starts the publishers, each with a plan of its own; publishing.Wait waits for them.
func (r *rig) publish(stop context.Context, plans func(p *publisher) plan) {
	for _, p := range r.publishers {
		r.publishing.Go(func() {
			if err := p.run(r.ctx, stop, plans(p)); err != nil {
				r.fail(err)
			}
		})
	}
}

// consume starts the consumers; they end with close or finishConsumers.
func (r *rig) consume() {
	stop, cancel := context.WithCancel(r.ctx)
	r.stopConsumers = cancel
	for _, c := range r.consumers {
		r.consuming.Go(func() {
			if err := c.run(stop); err != nil {
				r.fail(err)
			}
		})
	}
}

// sample is the state of a run at one instant.
type sample struct {
	at                        time.Time
	sent, confirmed, received uint64
	broker, client, helper    time.Duration // CPU
	rssBytes                  int64
}

func (r *rig) sample() sample {
	s := sample{at: time.Now()}
	for _, p := range r.publishers {
		s.sent += p.sent.Load()
		s.confirmed += p.confirmed.Load()
	}
	for _, c := range r.consumers {
		s.received += c.received.Load()
	}
	// An unreadable process has no figures; that the broker has gone shows elsewhere.
	if r.o.PID != 0 {
		u, _ := readUsage(r.o.PID, r.o.Children)
		s.broker, s.rssBytes = u.cpu, u.rssBytes
	}
	if r.o.HelperPID != 0 {
		u, _ := readUsage(r.o.HelperPID, false)
		s.helper = u.cpu
	}
	u, _ := readUsage(os.Getpid(), false)
	s.client = u.cpu
	return s
}

// published is what the broker has taken, as far as this side can know.
func (r *rig) published(s sample) uint64 {
	if r.o.Persistent {
		return s.confirmed
	}
	return s.sent
}

// await looks at the run every sampleEvery until done says so or nothing has changed for the
// given patience.
func (r *rig) await(patience time.Duration, done func(sample) bool) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	var last sample
	for changed := time.Now(); ; {
		var s sample
		for _, p := range r.publishers {
			s.sent += p.sent.Load()
			s.confirmed += p.confirmed.Load()
		}
		for _, c := range r.consumers {
			s.received += c.received.Load()
		}
		if done(s) {
			return nil
		}
		if s != last {
			last, changed = s, time.Now()
		}
		if time.Since(changed) > patience {
			return nil
		}
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
}

// pause waits, unless the run fails before.
func (r *rig) pause(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// watchMemory keeps the highest resident size of the broker.
func (r *rig) watchMemory() {
	if r.o.PID == 0 {
		return
	}
	tick := time.NewTicker(20 * sampleEvery)
	defer tick.Stop()
	for {
		if u, err := readUsage(r.o.PID, r.o.Children); err == nil {
			r.rssPeak.Store(max(r.rssPeak.Load(), u.rssBytes))
		}
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			return
		}
	}
}

// finishConsumers ends the consumers, so that what they noted can be read.
func (r *rig) finishConsumers() {
	if r.stopConsumers != nil {
		r.stopConsumers()
	}
	r.consuming.Wait()
}

// close ends all workers and removes what declare made.
func (r *rig) close() error {
	r.fail(nil)
	r.publishing.Wait()
	r.finishConsumers()
	r.watching.Wait()
	var faults []error
	if r.admin != nil && !r.admin.IsClosed() && r.o.Route == nil {
		faults = append(faults, r.remove())
	}
	for _, conn := range r.conns {
		if !conn.IsClosed() {
			faults = append(faults, conn.Close())
		}
	}
	return errors.Join(faults...)
}

func (r *rig) remove() error {
	ch, err := r.admin.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	if r.exchange != "" {
		if err := ch.ExchangeDelete(r.exchange, false, false); err != nil {
			return fmt.Errorf("delete exchange: %w", err)
		}
	}
	for _, q := range r.queues {
		if _, err := ch.QueueDelete(q, false, false, false); err != nil {
			return fmt.Errorf("delete queue: %w", err)
		}
	}
	return nil
}
