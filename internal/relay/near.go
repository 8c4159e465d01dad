package relay

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/relay/topology"
)

const (
	// nearLead is how long before its beginning a slot of the finest level is taken into memory.
	nearLead = 3 * time.Second
	// nearTail is how long after its beginning it is listened to at least: for what is late, and to
	// stand by for a relay that dies with what it holds of it.
	nearTail = 10 * time.Second
	// nearEvery is how often slots are opened, nearSweepEvery how often those are looked at that
	// have passed for longer than nearTail.
	nearEvery, nearSweepEvery = 250 * time.Millisecond, 15 * time.Second
	// nearShares is how many slots may be in memory with all that a relay holds of one: those of
	// nearLead, and those on either side.
	nearShares = 5
	// probePrefetch is for slots of which it is not known whether they have passed: what has not
	// goes back.
	probePrefetch = 20
)

// near takes the slots of the finest level into memory as their time comes, the earliest first. While
// the relay holds as much as it may, the next ones wait in RabbitMQ.
type near struct {
	s    *session
	w    *worker
	ring nearRing // the seconds
	cut  cutting
}

// beginNear consumes the finest level: at once what may be overdue, then what comes near. Seconds that
// are too full are cut by the worker turner. All queues of the level are made before: RabbitMQ makes
// none, and takes long to say so, while a node is away.
func (s *session) beginNear(ctx context.Context, turner *worker) error {
	for number := range int64(ring) {
		if err := s.ensure(slot{0, number}); err != nil {
			return err
		}
	}
	w, err := s.newWorker(s.releasing)
	if err != nil {
		return err
	}
	s.serve(ctx, w)
	n := &near{s: s, w: w, ring: nearRing{level: 0}, cut: cutting{turner: turner, ring: nearRing{level: fine}}}
	n.ring.next = n.ring.at(s.now() - nearTail.Milliseconds())
	n.cut.ring.next = n.cut.ring.at(s.now())
	for number := range int64(ring) { // so that those of other relays are found
		if err := s.ensure(slot{fine, number}); err != nil {
			return err
		}
	}
	if err := n.sweep(ctx, drainPrefetch); err != nil {
		return err
	}
	if err := n.advance(ctx, &n.ring); err != nil {
		return err
	}
	s.start(func() error { return n.run(ctx) })
	return nil
}

func (n *near) run(ctx context.Context) error {
	turn, sweep := time.NewTicker(nearEvery), time.NewTicker(nearSweepEvery)
	defer turn.Stop()
	defer sweep.Stop()
	clock := newClockWatch(n.s.r.clock)
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-turn.C:
			if err = clock.look(); err == nil {
				err = n.turn(ctx)
			}
		case <-sweep.C:
			err = n.sweep(ctx, probePrefetch)
		}
		if err != nil {
			return err
		}
	}
}

func (n *near) turn(ctx context.Context) error {
	if err := n.cutFull(ctx); err != nil {
		return err
	}
	if err := n.advanceCut(ctx); err != nil {
		return err
	}
	return n.advance(ctx, &n.ring)
}

// share is how much is held of one slot at most.
func (n *near) share() int { return n.s.r.hold / nearShares }

// nearRing is a ring of slots that are opened as their time comes.
type nearRing struct {
	level int
	next  int64 // number of the slot to be opened next
}

// at is the number of the slot of an instant.
func (r *nearRing) at(millis int64) int64 {
	if r.level == fine {
		return millis / fineWidth
	}
	return millis / widths()[r.level]
}

// last is the number of the last slot whose time comes.
func (r *nearRing) last(nowMillis int64) int64 { return r.at(nowMillis + nearLead.Milliseconds()) }

// advance opens the slots of a ring whose time comes, as far as there is room for what they have. A fine
// one is opened only if it has something: nothing comes to it any more.
func (n *near) advance(ctx context.Context, r *nearRing) error {
	for last := r.last(n.s.now()); r.next <= last; r.next++ {
		at := slot{r.level, r.next}
		if err := n.s.ensure(at); err != nil {
			return err
		}
		ready, _, err := topology.Count(n.s.consuming, at.queue())
		if err != nil {
			return err
		}
		if ready == 0 && r.level == fine {
			continue
		}
		src := n.source(at)
		src.untilMillis = at.begin() + nearTail.Milliseconds()
		src.expected = min(ready, n.share())
		if held := n.w.load(); held > 0 && held+src.expected > n.s.r.hold-n.share() {
			return nil
		}
		if err := n.w.enter(ctx, src, n.share()); err != nil {
			return err
		}
	}
	return nil
}

func (n *near) source(at slot) *source {
	return &source{queue: at.queue(), read: readNear, finite: true, level: at.level}
}

// sweep opens slots that advance has passed and that are not empty. What is in them may have passed, or
// be of the next round of the ring: then they are left again.
func (n *near) sweep(ctx context.Context, prefetch int) error {
	last := n.ring.last(n.s.now())
	for number := last - ring + 1; number < min(n.ring.next, last+1); number++ {
		if err := n.look(ctx, slot{0, number}, prefetch); err != nil {
			return err
		}
	}
	if n.s.now() < n.cut.until {
		return nil // they come round again in seconds
	}
	for number := range int64(ring) {
		if err := n.look(ctx, slot{fine, number}, prefetch); err != nil {
			return err
		}
	}
	return nil
}

// look opens a slot that is not empty.
func (n *near) look(ctx context.Context, at slot, prefetch int) error {
	queue := at.queue()
	if n.w.has(queue) {
		return nil
	}
	ready, found, err := topology.Count(n.s.consuming, queue)
	if err != nil {
		return err
	}
	n.s.know(queue, found)
	if ready == 0 {
		return nil
	}
	if at.level == fine {
		n.cut.begun(n.s.now()) // by another relay, maybe
	}
	return n.w.enter(ctx, n.source(at), prefetch)
}

// readNear reads what is held until it is due.
func readNear(d amqp.Delivery, _ int64) *item {
	it := unwrap(d)
	it.at = it.due
	if it.reason != "" {
		it.at = 0
	}
	return it
}
