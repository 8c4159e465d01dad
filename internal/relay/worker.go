package relay

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/relay/topology"
)

const (
	// longestSleep bounds how long a worker trusts its timer: the wall clock may be set meanwhile.
	longestSleep = time.Second
	// firstRetry and longestRetry are how long a refused message waits for its next try.
	firstRetry, longestRetry = 50 * time.Millisecond, 5 * time.Second
	// farewell is how long a worker that is stopped waits for what is on its way.
	farewell = 2 * time.Second
	// tellEvery and tellMost are after how long, and how many messages, what is done is acknowledged.
	// RabbitMQ writes an acknowledgement to its log whether it is of one message or of many. What is
	// not acknowledged comes again after a crash.
	tellEvery, tellMost = 50 * time.Millisecond, 250
	// gather is how long what arrives waits at most for what else arrives, so that RabbitMQ writes it
	// to the wheel at once, and gatherMost how many are enough.
	gather, gatherMost = 100 * time.Millisecond, 250
	// quiet is how long nothing has come from a finite source before it is left.
	quiet = time.Second
	// drainPrefetch is for finite sources, which are moved on at once.
	drainPrefetch = 500
)

// worker hands on the messages of its sources: holds each until it may go, publishes it, and
// acknowledges it when it was taken. Everything but arrivals and the opening of sources happens on
// the goroutine of run.
type worker struct {
	s      *session
	outlet *outlet
	in     chan arrival
	held   atomic.Int64 // messages taken in and not handed on yet, and those that sources expect

	waiting waiting
	came    uint64
	flying  map[*item]struct{} // messages on their way that count towards the window
	stuck   int                // those that do not any more
	heard   int64              // when RabbitMQ answered last, in milliseconds since 1970
	window  int
	ahead   time.Duration    // by how much a message may go before its time if there are many
	dirty   map[*source]bool // sources with something to acknowledge
	untold  int              // how many are done and not acknowledged, in order
	tellAt  int64            // when they will be, if there are any

	mu   sync.Mutex         // guards what follows
	open map[string]*source // finite sources, by queue, and their untilMillis
}

// newWorker makes a worker that publishes on a connection.
func (s *session) newWorker(on *amqp.Connection) (*worker, error) {
	outlet, err := newOutlet(on, window)
	if err != nil {
		return nil, err
	}
	return &worker{
		s: s, outlet: outlet, window: window, in: make(chan arrival),
		open: map[string]*source{}, dirty: map[*source]bool{}, flying: map[*item]struct{}{},
	}, nil
}

// has reports whether a finite source is open.
func (w *worker) has(queue string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open[queue] != nil
}

// load is how many messages the worker has and expects.
func (w *worker) load() int { return int(w.held.Load()) }

// enter opens a finite source, or keeps the one that is open for as long. A queue is entered by one
// goroutine only.
func (w *worker) enter(ctx context.Context, src *source, prefetch int) error {
	if w.extend(src) {
		return nil
	}
	src.heard = w.s.now()
	w.held.Add(int64(src.expected))
	deliveries, err := src.open(w.s.consuming, w.s.r.Name(), prefetch)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.open[src.queue] = src
	w.mu.Unlock()
	w.s.start(func() error { src.forward(ctx, deliveries, w.in); return nil })
	return nil
}

func (w *worker) extend(src *source) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	there := w.open[src.queue]
	if there != nil {
		there.untilMillis = max(there.untilMillis, src.untilMillis)
	}
	return there != nil
}

// add begins to consume a queue for good.
func (w *worker) add(ctx context.Context, src *source, prefetch int) error {
	deliveries, err := src.open(w.s.consuming, w.s.r.Name(), prefetch)
	if err != nil {
		return err
	}
	w.s.start(func() error { src.forward(ctx, deliveries, w.in); return nil })
	return nil
}

// run works until ctx ends, then finishes what is on its way unless the session has failed.
func (w *worker) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	tick := time.NewTicker(openHead)
	defer tick.Stop()
	defer func() { w.s.r.stats.Held.Add(-int64(w.waiting.len() + len(w.flying) + w.stuck)) }()
	for {
		if err := w.sendDue(); err != nil {
			return err
		}
		if err := w.tellInTime(); err != nil {
			return err
		}
		w.arm(timer)
		select {
		case <-ctx.Done():
			if hasFailed(ctx) {
				return nil // what is open returns with the end of the connection
			}
			return w.finish()
		case a := <-w.in:
			if err := w.arrived(a); err != nil {
				return err
			}
		case r := <-w.outlet.results:
			w.answered(r)
			for len(w.outlet.results) > 0 {
				w.answered(<-w.outlet.results)
			}
		case <-tick.C:
			if err := w.round(); err != nil {
				return err
			}
		case <-timer.C:
		}
	}
}

// arm sets the timer to the next message that may go.
func (w *worker) arm(timer *time.Timer) {
	sleep := longestSleep
	if at, ok := w.waiting.next(); ok && len(w.flying) < w.window {
		sleep = min(sleep, w.until(at))
	}
	if w.s.blocked.Load() > 0 {
		sleep = openHead
	}
	if w.untold > 0 {
		sleep = min(sleep, w.until(w.tellAt))
	}
	timer.Reset(max(sleep, 0))
}

func (w *worker) until(millis int64) time.Duration { return time.UnixMilli(millis).Sub(w.s.r.clock()) }

// arrived takes a delivery in.
func (w *worker) arrived(a arrival) error {
	src := a.from
	if src.leaving {
		return nil // it returns to the queue
	}
	if a.end != nil {
		return a.end
	}
	now := w.s.now()
	it := src.read(a.delivery, now)
	if src.ends(it, now) {
		w.leave(src)
		return nil
	}
	w.came++
	if src.expected > 0 {
		src.expected--
		w.held.Add(-1)
	}
	w.held.Add(1)
	w.s.r.stats.Held.Add(1)
	src.heard = now
	it.from, it.tag, it.came = src, a.delivery.DeliveryTag, w.came
	src.settling.delivered(it.tag)
	w.waiting.add(it)
	return nil
}

// leave takes nothing more from a finite source, and closes it when what it brought is acknowledged. What
// else was delivered returns to the queue then.
func (w *worker) leave(src *source) {
	src.leaving = true
	w.forgo(src)
	w.mu.Lock()
	delete(w.open, src.queue)
	w.mu.Unlock()
	w.dirty[src] = true // tell closes it
}

// forgo expects nothing any more.
func (w *worker) forgo(src *source) {
	w.held.Add(-int64(src.expected))
	src.expected = 0
}

// close closes a source. RabbitMQ's answer is not waited for.
func (w *worker) close(src *source) {
	w.s.start(func() error {
		if err := src.ch.Close(); err != nil {
			return fmt.Errorf("leave queue %q: %w", src.queue, err)
		}
		return nil
	})
}

// round acknowledges also what is done and has something open before it, and leaves finite sources
// that have been quiet. If they are not empty, they are found again.
func (w *worker) round() error {
	if err := w.tell(); err != nil {
		return err
	}
	for _, src := range w.idle(w.s.now()) {
		w.leave(src)
	}
	return w.lookForStalls()
}

// idle are the finite sources that may be left. One that is quiet is not expected to bring what was
// there: another relay has it.
func (w *worker) idle(nowMillis int64) (all []*source) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, src := range w.open {
		if src.settling.pending() > 0 || nowMillis-src.heard < quiet.Milliseconds() {
			continue
		}
		w.forgo(src)
		if nowMillis >= src.untilMillis {
			all = append(all, src)
		}
	}
	return all
}

// sendDue sends what may go.
func (w *worker) sendDue() error {
	ahead := int64(0)
	if w.waiting.len() >= gatherMost {
		ahead = w.ahead.Milliseconds()
	}
	for len(w.flying) < w.window && w.s.blocked.Load() == 0 {
		it := w.waiting.take(w.s.now() + ahead)
		if it == nil {
			return nil
		}
		if err := w.send(it); err != nil {
			return err
		}
	}
	return nil
}

// send publishes a message where it has to go now.
func (w *worker) send(it *item) error {
	now := w.s.now()
	w.flying[it] = struct{}{}
	it.sentAt = now
	if it.reason == "" && it.due <= now {
		reason, err := w.s.obstacle(it)
		if err != nil {
			return err
		}
		it.reason = reason
	}
	switch {
	case it.reason != "":
		it.to = parking
		return w.outlet.send(it, "", topology.Parked, it.parked())
	case it.due <= now && !w.isSetBack(it):
		it.to = release
		return w.outlet.send(it, it.dueExchange(), it.key, it.released())
	}
	slot := slotFor(it.due, now)
	switch {
	case it.due <= now:
		slot = slotFor(now+setBack.Milliseconds(), now)
	case it.cut:
		slot = fineSlot(it.due)
	}
	if err := w.s.ensure(slot); err != nil {
		return err
	}
	it.to = wheel
	return w.outlet.send(it, "", slot.queue(), it.waitsIn(slot))
}

// answered goes on with a message after the answer to its publish.
func (w *worker) answered(r result) {
	it, now := r.item, w.s.now()
	w.landed(it, now)
	switch {
	case r.outcome == taken:
		w.held.Add(-1)
		w.s.r.stats.Held.Add(-1)
		it.from.settling.done(it.tag, now)
		if w.untold++; w.untold == 1 {
			w.tellAt = now + tellEvery.Milliseconds()
		}
		w.dirty[it.from] = true
		w.s.r.count(it, now)
		return
	case r.outcome == unrouted && it.to == release:
		it.reason = "unroutable: no binding of exchange " + it.dueExchange() + " takes it"
		it.at = now
	default:
		if r.outcome == unrouted {
			w.s.forgetQueues() // one was deleted by hand: it is made again
		}
		it.at = now + min(firstRetry<<min(it.tries, 10), longestRetry).Milliseconds()
		it.tries++
	}
	w.waiting.add(it)
}

// landed notes that RabbitMQ has answered for a message.
func (w *worker) landed(it *item, nowMillis int64) {
	if _, ok := w.flying[it]; ok {
		delete(w.flying, it)
	} else {
		w.stuck--
	}
	w.heard = nowMillis
	if it.to == release && w.s.r.stalls.answers(it.place()) {
		w.s.r.log.Info("answers again", "exchange", it.dueExchange(), "key", it.key)
	}
}

// tellInTime acknowledges what is done if it is time or there is much.
func (w *worker) tellInTime() error {
	if w.untold == 0 || w.untold < tellMost && w.s.now() < w.tellAt {
		return nil
	}
	return w.tell()
}

// tell acknowledges what is done.
func (w *worker) tell() error {
	w.untold = 0
	now := w.s.now()
	for src := range w.dirty {
		if err := src.tell(now); err != nil {
			return err
		}
		if src.settling.pending() == 0 {
			delete(w.dirty, src)
			if src.leaving {
				w.close(src)
			}
		}
	}
	return nil
}

// finish waits for what is on its way and acknowledges it.
func (w *worker) finish() error {
	late := time.NewTimer(farewell)
	defer late.Stop()
	for len(w.flying) > 0 {
		select {
		case r := <-w.outlet.results:
			w.answered(r)
		case <-late.C:
			return w.tell()
		}
	}
	return w.tell()
}
