package relay

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/relay/topology"
)

const (
	// turnEvery is how often the slots are looked at whose time comes or has just passed, sweepEvery
	// how often all are that have a queue: another relay may have died with what it held of one that
	// passed long ago.
	turnEvery  = time.Second
	sweepEvery = time.Minute
)

// beginTurning moves messages down from the slots above the finest, by the worker w.
func (s *session) beginTurning(ctx context.Context, w *worker) error {
	if err := s.look(ctx, w, above()); err != nil {
		return err
	}
	s.start(func() error { return s.turn(ctx, w) })
	return nil
}

// turn looks at slots as their time comes.
func (s *session) turn(ctx context.Context, w *worker) error {
	turn, sweep := time.NewTicker(turnEvery), time.NewTicker(sweepEvery)
	defer turn.Stop()
	defer sweep.Stop()
	looked := map[slot]bool{}
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-turn.C:
			err = s.look(ctx, w, s.worthwhile(turning(s.now()), looked))
		case <-sweep.C:
			clear(looked) // for one that was made late
			err = s.look(ctx, w, s.worthwhile(above(), nil))
		}
		if err != nil {
			return err
		}
	}
}

// turning are the slots above the finest that are open at an instant, or will be if they are not
// empty by then: the one whose time comes and those before it whose queues are not used again yet.
func turning(nowMillis int64) (all []slot) {
	for level, width := range widths() {
		if level == 0 {
			continue
		}
		newest := (nowMillis + lead.Milliseconds()) / width
		for number := newest - (ring - farthest - 1); number <= newest; number++ {
			all = append(all, slot{level, number})
		}
	}
	return all
}

// above are all slots above the finest. Which round of the ring a message belongs to its header
// says: what is first in a queue was put there first.
func above() (all []slot) {
	for level := 1; level < topology.Levels; level++ {
		for number := range int64(ring) {
			all = append(all, slot{level, number})
		}
	}
	return all
}

// worthwhile are the slots whose queue is known to be there, and those that were not looked at
// before: nothing is put into a slot that is open already. Looking for a queue that is not there
// costs RabbitMQ a channel and a line in its log. Without looked it is the former alone.
func (s *session) worthwhile(slots []slot, looked map[slot]bool) (some []slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range slots {
		if s.queues[at.queue()] || looked != nil && !looked[at] {
			some = append(some, at)
		}
		if looked != nil {
			looked[at] = true
		}
	}
	return some
}

// look opens those that have messages.
func (s *session) look(ctx context.Context, w *worker, slots []slot) error {
	for _, at := range slots {
		ready, found, err := topology.Count(s.consuming, at.queue())
		if err != nil {
			return err
		}
		s.know(at.queue(), found)
		if ready == 0 {
			continue
		}
		src := &source{queue: at.queue(), read: readTurning, finite: true, level: at.level}
		if err := w.enter(ctx, src, drainPrefetch); err != nil {
			return err
		}
	}
	return nil
}

// readTurning reads what is moved down at once.
func readTurning(d amqp.Delivery, nowMillis int64) *item {
	it := unwrap(d)
	it.at = nowMillis
	it.hurry(nowMillis)
	return it
}
