package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/management"
	"github.com/duepost/duepost/internal/relay/topology"
)

const (
	// heartbeat decides how long a relay whose machine vanished keeps its messages: RabbitMQ
	// notices after two of them. A process that dies is noticed at once.
	heartbeat   = 3 * time.Second
	dialTimeout = 5 * time.Second
)

const (
	// intakePrefetch keeps what is open on a channel short: acknowledging something costs RabbitMQ
	// more the more is. So that what is urgent is seen behind much that is not, the intake is consumed
	// over intakeChannels, each if those before it are full.
	intakePrefetch, intakeChannels = 1000, 16
	// window is how much a worker has on its way. A relay shares a busy RabbitMQ with publishers, each
	// with a window of its own: with less than they it falls behind them.
	window = 4000
)

// session is a relay from one connection to the next fault. Publishing has connections of its own:
// RabbitMQ stops reading from one that publishes while it is short of memory or disk, and
// acknowledgements must get through. It slows one down that publishes much, which what arrives may
// be and what is due must not wait for.
type session struct {
	r                     *Relay
	user                  string
	impersonates          bool
	guard                 guard
	consuming             *amqp.Connection
	publishing, releasing *amqp.Connection

	cancel  context.CancelCauseFunc
	work    sync.WaitGroup
	blocked atomic.Int32 // connections that RabbitMQ does not read from, for want of memory or disk

	mu        sync.Mutex      // guards what follows
	queues    map[string]bool // of the wheel, known to be there
	exchanges map[string]bool // known to be there
}

// newSession connects to the node that answered last, else to the one after it.
func newSession(r *Relay) (*session, error) {
	var all []error
	for range r.cfg.URLs {
		s, err := newSessionAt(r, r.cfg.URLs[r.node])
		if err == nil {
			return s, nil
		}
		all = append(all, err)
		r.node = (r.node + 1) % len(r.cfg.URLs)
	}
	return nil, errors.Join(all...)
}

// newSessionAt connects to a node.
func newSessionAt(r *Relay, url string) (*session, error) {
	uri, err := amqp.ParseURI(url)
	if err != nil {
		return nil, fmt.Errorf("read URL: %w", err)
	}
	s := &session{
		r: r, user: uri.Username, guard: guard{Management(uri, r.cfg.Management), uri.Vhost},
		queues: map[string]bool{}, exchanges: map[string]bool{},
	}
	for _, one := range []struct {
		conn **amqp.Connection
		name string
	}{{&s.consuming, "duepost relay"}, {&s.publishing, "duepost relay, publishing"}, {&s.releasing, "duepost relay, releasing"}} {
		if *one.conn, err = dial(url, one.name); err != nil {
			for _, open := range s.connections() {
				err = errors.Join(err, open.Close())
			}
			return nil, err
		}
	}
	return s, nil
}

// connections are those that are there, in the order in which they are given up.
func (s *session) connections() (all []*amqp.Connection) {
	for _, conn := range []*amqp.Connection{s.releasing, s.publishing, s.consuming} {
		if conn != nil {
			all = append(all, conn)
		}
	}
	return all
}

// dial connects to a RabbitMQ as a relay does.
func dial(url, name string) (*amqp.Connection, error) {
	props := amqp.NewConnectionProperties()
	props.SetClientConnectionName(name)
	conn, err := amqp.DialConfig(url, amqp.Config{Heartbeat: heartbeat, Properties: props,
		Dial: amqp.DefaultDial(dialTimeout)})
	if err != nil {
		return nil, fmt.Errorf("connect to RabbitMQ: %w", err)
	}
	return conn, nil
}

func (s *session) now() int64 { return s.r.clock().UnixMilli() }

// start runs f; its error ends the session.
func (s *session) start(f func() error) {
	s.work.Go(func() {
		if err := f(); err != nil {
			s.cancel(err)
		}
	})
}

// run works until ctx ends or something fails, which it returns.
//
//  1. Policies of others are kept away from the queues, and what all delayed exchanges share is declared.
//  2. The finest level is consumed, all of it: what is overdue there goes out first.
//  3. All slots above are looked at, whatever their time: this relay does not know which have passed
//     while there was none.
//  4. Then come the intake and the rescue.
func (s *session) run(ctx context.Context) error {
	ctx, s.cancel = context.WithCancelCause(ctx)
	// RabbitMQ may answer nothing, for want of memory or disk.
	giveUp := context.AfterFunc(ctx, func() {
		for _, conn := range s.connections() {
			conn.CloseDeadline(time.Now()) // the error is that of what waits
		}
	})
	begun := s.begin(ctx)
	giveUp()
	if begun != nil {
		s.cancel(begun)
	} else {
		s.r.log.Info("relay at work", "user", s.user, "impersonator", s.impersonates,
			"interceptor", s.r.stamping.Load())
		s.r.atWork.Store(true)
		s.r.signal()
		<-ctx.Done()
		s.r.atWork.Store(false)
	}
	s.hangUp(ctx)
	if hasFailed(ctx) {
		return context.Cause(ctx)
	}
	return nil
}

// hasFailed reports whether a session has ended by itself and not on demand.
func hasFailed(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.Canceled)
}

// hangUp lets the workers finish, unless something failed, and closes the connections.
func (s *session) hangUp(ctx context.Context) {
	failed := hasFailed(ctx)
	if !failed {
		s.await(2 * farewell)
	}
	for _, conn := range s.connections() {
		if err := conn.CloseDeadline(time.Now().Add(farewell)); err != nil && !failed {
			s.r.log.Warn("connection not closed in order", "err", err)
		}
	}
	s.work.Wait()
}

// await waits for the workers, but no longer than limit: RabbitMQ may not read what they publish.
func (s *session) await(limit time.Duration) {
	done := make(chan struct{})
	go func() { defer close(done); s.work.Wait() }()
	select {
	case <-done:
	case <-time.After(limit):
		s.r.log.Warn("RabbitMQ does not take what is on its way, it is given up and comes again")
	}
}

func (s *session) begin(ctx context.Context) error {
	s.r.stalls.begin()
	for _, conn := range s.connections() {
		s.watchConnection(ctx, conn)
	}
	if err := s.guard.check(ctx); err != nil {
		return err
	}
	s.start(func() error { return s.watch(ctx) })
	if err := s.declare(); err != nil {
		return err
	}
	var err error
	if s.impersonates, err = canImpersonate(s.publishing, s.user); err != nil {
		return err
	}
	stamping, err := isStamping(ctx, s.publishing, s.r.name)
	if err != nil {
		return err
	}
	s.r.stamping.Store(stamping)
	turner, err := s.newWorker(s.publishing)
	if err != nil {
		return err
	}
	s.serve(ctx, turner)
	if err := s.beginNear(ctx, turner); err != nil {
		return err
	}
	if err := s.beginTurning(ctx, turner); err != nil {
		return err
	}
	return s.beginIntake(ctx)
}

// declare makes what all delayed exchanges share, and those that are to be kept.
func (s *session) declare() error {
	if err := topology.DeclareShared(s.consuming); err != nil {
		return err
	}
	for _, x := range s.r.cfg.Exchanges {
		if x.VHost != "" && x.VHost != s.guard.vhost {
			continue
		}
		if err := topology.DeclareExchange(s.consuming, x.Exchange); err != nil {
			return err
		}
	}
	return nil
}

// watchConnection ends the session when a connection ends.
func (s *session) watchConnection(ctx context.Context, conn *amqp.Connection) {
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 16))
	s.start(func() error {
		for {
			select {
			case err := <-closed:
				return endOf("connection", err)
			case b, ok := <-blocked:
				if !ok {
					return endOf("connection", <-closed)
				}
				s.block(b)
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// block notes that RabbitMQ stops reading what a connection publishes, or goes on.
func (s *session) block(b amqp.Blocking) {
	if b.Active {
		s.blocked.Add(1)
		s.r.log.Warn("RabbitMQ takes no messages for now; all wait where they are", "reason", b.Reason)
		return
	}
	s.blocked.Add(-1)
	s.r.log.Info("RabbitMQ takes messages again")
}

// serve runs a worker with its outlet. The outlet goes on while the worker finishes.
func (s *session) serve(ctx context.Context, w *worker) {
	answering, enough := context.WithCancel(context.WithoutCancel(ctx))
	s.start(func() error { return w.outlet.run(answering) })
	s.start(func() error {
		defer enough()
		return w.run(ctx)
	})
}

// beginIntake consumes the intake and the rescue. All relays do so at the same time.
func (s *session) beginIntake(ctx context.Context) error {
	for queue, read := range map[string]func(amqp.Delivery, int64) *item{
		topology.Intake: func(d amqp.Delivery, now int64) *item {
			return arrive(d, now, s.r.identity(d)).gathered(now)
		},
		topology.Rescue: func(d amqp.Delivery, now int64) *item {
			d = rescued(d)
			return arrive(d, now, s.r.identity(d))
		},
	} {
		w, err := s.newWorker(s.publishing)
		if err != nil {
			return err
		}
		w.ahead = gather
		s.serve(ctx, w)
		for i := range intakeChannels {
			src := &source{queue: queue, read: read, priority: -i}
			if err := w.add(ctx, src, intakePrefetch); err != nil {
				return err
			}
		}
	}
	return nil
}

// ensure makes the queue of a slot if it is not known to be there.
func (s *session) ensure(at slot) error {
	name := at.queue()
	s.mu.Lock()
	known := s.queues[name]
	s.mu.Unlock()
	if known {
		return nil
	}
	if err := topology.DeclareWheelQueue(s.consuming, name); err != nil {
		return err
	}
	s.know(name, true)
	return nil
}

// know notes whether a queue of the wheel is there.
func (s *session) know(name string, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[name] = there
}

// forgetQueues takes nothing for granted any more.
func (s *session) forgetQueues() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.queues)
}

// obstacle says why a message cannot be released, empty for no reason. It is asked before, because
// RabbitMQ answers with the end of the channel, and of all that is on its way there.
func (s *session) obstacle(it *item) (string, error) {
	if fault := it.faultOf(s.user, s.impersonates); fault != "" {
		return fault, nil
	}
	name := it.dueExchange()
	s.mu.Lock()
	known := s.exchanges[name]
	s.mu.Unlock()
	if known {
		return "", nil
	}
	found, err := topology.HasExchange(s.consuming, name)
	if err != nil {
		return "", err
	}
	if !found {
		return fmt.Sprintf("there is no exchange %q", name), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges[name] = true
	return "", nil
}

// isRefusal reports whether trying again is of no use until somebody does something.
func isRefusal(err error) bool {
	var said *amqp.Error
	var netErr net.Error
	var foreign *ForeignPolicyError
	var refused *management.Refusal
	if errors.As(err, &foreign) || errors.As(err, &refused) && refused.Code/100 == 4 {
		return true
	}
	return errors.As(err, &said) && !errors.As(err, &netErr) &&
		(said.Code == amqp.AccessRefused || said.Code == amqp.NotAllowed || said.Code == amqp.PreconditionFailed)
}
