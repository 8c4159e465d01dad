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
	next int64 // number of the slot to be opened next
}

// beginNear consumes the finest level: at once what may be overdue, then what comes near.
func (s *session) beginNear(ctx context.Context) error {
	w, err := s.newWorker(window)
	if err != nil {
		return err
	}
	s.serve(ctx, w)
	n := &near{s: s, w: w, next: (s.now() - nearTail.Milliseconds()) / widths()[0]}
	if err := n.sweep(ctx, drainPrefetch); err != nil {
		return err
	}
	if err := n.advance(ctx); err != nil {
		return err
	}
	s.start(func() error { return n.run(ctx) })
	return nil
}

func (n *near) run(ctx context.Context) error {
	turn, sweep := time.NewTicker(nearEvery), time.NewTicker(nearSweepEvery)
	defer turn.Stop()
	defer sweep.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-turn.C:
			err = n.advance(ctx)
		case <-sweep.C:
			err = n.sweep(ctx, probePrefetch)
		}
		if err != nil {
			return err
		}
	}
}

// last is the number of the last slot whose time comes.
func (n *near) last() int64 { return (n.s.now() + nearLead.Milliseconds()) / widths()[0] }

// advance opens the slots whose time comes, as far as there is room for what they may have.
func (n *near) advance(ctx context.Context) error {
	share := n.s.r.hold / nearShares
	for last := n.last(); n.next <= last && n.w.held.Load() <= int64(n.s.r.hold-share); n.next++ {
		at := slot{0, n.next}
		if err := n.s.ensure(at); err != nil {
			return err
		}
		src := &source{
			queue: at.queue(), read: readNear, finite: true,
			untilMillis: at.number*widths()[0] + nearTail.Milliseconds(),
		}
		if err := n.w.enter(ctx, src, share); err != nil {
			return err
		}
	}
	return nil
}

// sweep opens slots that advance has passed and that are not empty. What is in them may have passed, or
// be of the next round of the ring: then they are left again.
func (n *near) sweep(ctx context.Context, prefetch int) error {
	last := n.last()
	for number := last - ring + 1; number < min(n.next, last+1); number++ {
		queue := slot{0, number}.queue()
		if n.w.has(queue) {
			continue
		}
		ready, found, err := topology.Count(n.s.consuming, queue)
		if err != nil {
			return err
		}
		n.s.know(queue, found)
		if ready == 0 {
			continue
		}
		if err := n.w.enter(ctx, &source{queue: queue, read: readNear, finite: true}, prefetch); err != nil {
			return err
		}
	}
	return nil
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
