package broker

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// ledger knows what became of each message of the concurrency test.
type ledger struct {
	mu        sync.Mutex
	delivered map[string]int // how often
	settled   map[string]int
	faults    []string
}

func (l *ledger) fault(format string, a ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, a...))
}

func (l *ledger) deliver(body string, redelivered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delivered[body]++
	if l.delivered[body] > 1 && !redelivered {
		l.fault("%s: delivery %d is not marked redelivered", body, l.delivered[body])
	}
	if l.delivered[body] == 1 && redelivered {
		l.fault("%s: the first delivery is marked redelivered", body)
	}
	if l.settled[body] > 0 {
		l.fault("%s: delivered after it was settled", body)
	}
}

func (l *ledger) settle(body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled[body]++
}

// busyReceiver holds what it gets until its goroutine settles it at random.
type busyReceiver struct {
	ledger *ledger
	credit atomic.Int64
	gone   atomic.Bool
	wake   chan struct{}

	mu   sync.Mutex
	held []heldMessage
}

type heldMessage struct {
	pos  uint64
	body string
}

func (b *busyReceiver) Reserve() bool {
	if b.gone.Load() {
		return false
	}
	for {
		n := b.credit.Load()
		if n <= 0 {
			return false
		}
		if b.credit.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

func (b *busyReceiver) Release() { b.credit.Add(1) }

func (b *busyReceiver) Deliver(d *Delivery) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone.Load() {
		return false
	}
	body := string(d.Record.Body)
	b.ledger.deliver(body, d.Redelivered)
	b.held = append(b.held, heldMessage{d.Pos, body})
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return true
}

func (b *busyReceiver) Cancelled() {}

func (b *busyReceiver) take() []heldMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := b.held
	b.held = nil
	return held
}

// consumeUntil consumes with a random credit, settles at random and begins anew now and then.
func consumeUntil(q *Queue, l *ledger, seed uint64, quit <-chan struct{}) {
	rng := rand.New(rand.NewPCG(seed, 7))
	for {
		b := &busyReceiver{ledger: l, wake: make(chan struct{}, 1)}
		b.credit.Store(1 + rng.Int64N(50))
		c, err := q.Consume(ConsumerSpec{Receiver: b})
		if err != nil {
			l.fault("consume: %v", err)
			return
		}
		c.Wake()
		ended := false
		for range 1 + rng.IntN(400) {
			select {
			case <-b.wake:
			case <-quit:
				ended = true
			}
			if ended {
				break
			}
			settleAtRandom(q, l, rng, b.take(), func(n int) {
				b.credit.Add(int64(n))
				c.Wake()
			})
		}
		b.mu.Lock()
		b.gone.Store(true)
		b.mu.Unlock()
		c.Cancel()
		var back []uint64
		for _, h := range b.take() {
			back = append(back, h.pos)
		}
		q.Requeue(back)
		if ended {
			return
		}
	}
}

func settleAtRandom(q *Queue, l *ledger, rng *rand.Rand, held []heldMessage, credit func(n int)) {
	var ack, reject, requeue []uint64
	for _, h := range held {
		switch n := rng.IntN(20); {
		case n == 0:
			requeue = append(requeue, h.pos)
		case n == 1:
			l.settle(h.body)
			reject = append(reject, h.pos)
		default:
			l.settle(h.body)
			ack = append(ack, h.pos)
		}
	}
	q.Ack(ack)
	q.Reject(reject)
	q.Requeue(requeue)
	credit(len(held))
}

func TestConcurrentUseLosesNothingAndDoublesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const queues, publishers, each = 3, 4, 3000
	l := &ledger{delivered: map[string]int{}, settled: map[string]int{}}
	quit := make(chan struct{})
	var publishing, consuming, other sync.WaitGroup
	for i := range queues {
		name := fmt.Sprint("q", i)
		q := r.queue(name, nil, []string{"durable", "", ""}[i])
		r.bind(name, "amq.topic", fmt.Sprintf("*.%d.#", i))
		for j := range 3 {
			consuming.Go(func() { consumeUntil(q, l, uint64(i*10+j), quit) })
		}
		consuming.Go(func() { getUntil(q, l, uint64(i), quit) })
	}
	for i := range publishers {
		publishing.Go(func() {
			p := r.connect("guest").NewPublisher()
			for n := range each {
				q := n % queues
				m := newMessage("amq.topic", fmt.Sprintf("k.%d", q), fmt.Sprintf("%d-%d", i, n))
				if _, err := p.Publish(m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	other.Go(func() { churn(r, quit) })
	publishing.Wait()
	for left := true; left; {
		left = false
		for i := range queues {
			q := r.find(fmt.Sprint("q", i))
			left = left || q.Messages() > 0
		}
	}
	close(quit)
	consuming.Wait()
	other.Wait()
	for i := range queues { // what was held when the consumers ended came back
		q := r.find(fmt.Sprint("q", i))
		for {
			d, _, ok, err := q.Get(true)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			l.deliver(string(d.Record.Body), d.Redelivered)
			l.settle(string(d.Record.Body))
		}
		if n := q.Unacknowledged(); n != 0 {
			t.Errorf("queue %d: %d are still held", i, n)
		}
	}
	for _, f := range l.faults[:min(len(l.faults), 10)] {
		t.Error(f)
	}
	if len(l.settled) != publishers*each {
		t.Errorf("got %d messages settled, want %d", len(l.settled), publishers*each)
	}
	for body, n := range l.settled {
		if n != 1 {
			t.Errorf("%s was settled %d times", body, n)
		}
	}
}

// orderedReceiver checks that what it gets from each publisher comes in order.
type orderedReceiver struct {
	last    map[byte]int
	faults  int
	missing atomic.Int64
	done    chan struct{}
}

func (*orderedReceiver) Reserve() bool { return true }
func (*orderedReceiver) Release()      {}
func (*orderedReceiver) Cancelled()    {}

// Deliver uses no lock: one goroutine at a time delivers, or the race detector finds out.
func (o *orderedReceiver) Deliver(d *Delivery) bool {
	var n int
	var publisher byte
	if _, err := fmt.Sscanf(string(d.Record.Body), "%c %d", &publisher, &n); err != nil || n <= o.last[publisher] {
		o.faults++
	}
	o.last[publisher] = n
	if o.missing.Add(-1) == 0 {
		close(o.done)
	}
	return true
}

func TestOneDispatchAtATimeKeepsEachPublishersOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const publishers, each = 4, 3000
	q := r.queue("q", nil, "durable")
	o := &orderedReceiver{last: map[byte]int{}, done: make(chan struct{})}
	o.missing.Store(publishers * each)
	c, err := q.Consume(ConsumerSpec{NoAck: true, Receiver: o})
	if err != nil {
		t.Fatal(err)
	}
	c.Wake()
	var publishing sync.WaitGroup
	for i := range publishers {
		publishing.Go(func() {
			p := r.connect("guest").NewPublisher()
			for n := range each {
				body := fmt.Sprintf("%c %d", 'a'+i, n+1)
				if _, err := p.Publish(newMessage("", "q", body)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	publishing.Wait()
	<-o.done
	if o.faults > 0 {
		t.Errorf("%d deliveries were out of order", o.faults)
	}
}

// getUntil takes messages one by one, and gives some back.
func getUntil(q *Queue, l *ledger, seed uint64, quit <-chan struct{}) {
	rng := rand.New(rand.NewPCG(seed, 9))
	for {
		select {
		case <-quit:
			return
		default:
		}
		d, _, ok, err := q.Get(false)
		if err != nil {
			l.fault("get: %v", err)
			return
		}
		if !ok {
			continue
		}
		body := string(d.Record.Body)
		l.deliver(body, d.Redelivered)
		settleAtRandom(q, l, rng, []heldMessage{{d.Pos, body}}, func(int) {})
	}
}

// churn declares, binds, publishes to, consumes from and deletes queues beside the others, which
// changes the topology all the time.
func churn(r *rig, quit <-chan struct{}) {
	s := r.connect("guest")
	p := s.NewPublisher()
	for i := 0; ; i++ {
		select {
		case <-quit:
			s.Close()
			return
		default:
		}
		name := fmt.Sprint("churn", i%3)
		_, err := s.QueueDeclare(QueueSpec{Name: name, Exclusive: i%2 == 0})
		if err != nil {
			r.t.Error(err)
			return
		}
		_ = s.QueueBind(Binding{Source: "amq.topic", Destination: name, RoutingKey: "churn.#"})
		f := &fakeReceiver{credit: 3}
		q, err := s.Queue(name)
		if err != nil {
			r.t.Error(err)
			return
		}
		if c, err := q.Consume(ConsumerSpec{Receiver: f}); err == nil {
			c.Wake()
		}
		for range 5 {
			_, _ = p.Publish(newMessage("amq.topic", "churn.x", "noise", transient))
		}
		for _, d := range f.take() {
			q.Ack([]uint64{d.pos})
		}
		if _, err := s.QueueDelete(name, false, false); err != nil {
			r.t.Error(err)
			return
		}
	}
}
