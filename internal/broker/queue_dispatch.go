package broker

import (
	"errors"

	"github.com/duepost/duepost/internal/store"
)

const (
	// claimBatch is how many messages are claimed before the lock is given up to deliver
	// them: enough to make the lock cheap, few enough to keep the order fair.
	claimBatch = 32

	// claimBytes bounds the records of a batch, give or take one: a consumer is asked for
	// credit message by message and does not know their sizes, so what is claimed at once
	// must not be much more than its connection may gather.
	claimBytes = 256 << 10

	// keepBuffer is the largest buffer for records that is kept for the next dispatch.
	keepBuffer = 1 << 20

	// maxRounds is how many batches one goroutine delivers before the rest goes to the
	// worker: it came to publish or to ack, and has a client of its own to serve.
	maxRounds = 64
)

// claim is a message that was taken for a consumer.
type claim struct {
	pos         uint64
	ref         store.Ref
	consumer    *Consumer
	redelivered bool
	deliveries  int
	outcome     claimOutcome
}

type claimOutcome uint8

const (
	delivered claimOutcome = iota
	refused                // the consumer is gone: back to its place
	damaged                // the record cannot be read: gone
)

// dispatch is the working space of one run over a queue.
type dispatch struct {
	claims   []claim
	expired  []uint64 // held: their time has ended
	overflow []uint64 // held: the queue has too many
	rejected []uint64 // held: could not be dead-lettered before
	limited  []uint64 // held: the same, came back too often
	settled  settlement
	delivery Delivery
	buf      []byte // for records that are no longer in memory

	// absent is a position whose entry must be loaded before anything else, if isAbsent.
	absent   uint64
	isAbsent bool

	// known is the record of the message at knownPos, if whoever dispatches has it in hand.
	known    *store.Record
	knownPos uint64
}

func newDispatch() any {
	return &dispatch{claims: make([]claim, 0, claimBatch)}
}

func (d *dispatch) isEmpty() bool {
	return len(d.claims)+len(d.expired)+len(d.overflow)+len(d.rejected)+len(d.limited) == 0
}

// miss says that the entry of a position is not in memory.
func (d *dispatch) miss(pos uint64) { d.absent, d.isAbsent = pos, true }

// dispatchLocked does all that can be done with the queue's messages: expires, delivers, lets
// go of what is too much. The caller holds q.mu, has found q.dispatching false, and has lost
// the lock when it returns.
//
// Whoever finds dispatching true leaves its message or credit behind and goes: the goroutine
// that dispatches looks again, under the lock, before it says that it has ended. So there is
// one at a time, which keeps the order, and nothing is left behind.
func (q *Queue) dispatchLocked() { q.dispatchKnownLocked(0, nil) }

// dispatchKnownLocked is dispatchLocked by someone who has the record of the message at pos in
// hand, if known is not nil, which saves reading it.
func (q *Queue) dispatchKnownLocked(pos uint64, known *store.Record) {
	q.dispatching = true
	d := q.broker.dispatches.Get().(*dispatch)
	d.known, d.knownPos = known, pos
	ended := q.runRounds(d)
	d.settled.flush(q)
	d.known = nil
	if cap(d.buf) > keepBuffer {
		d.buf = nil
	}
	q.broker.dispatches.Put(d)
	if !ended {
		q.broker.worker.add(q)
	}
}

// resume goes on where another goroutine left the dispatch to the worker.
func (q *Queue) resume() {
	q.mu.Lock()
	q.dispatchLocked()
}

// runRounds claims and delivers until there is nothing left to do, and reports false if it
// gave up before with dispatching still true. It is called with q.mu and returns without.
func (q *Queue) runRounds(d *dispatch) (ended bool) {
	for range maxRounds {
		d.isAbsent = false
		q.fillLocked(d)
		if d.isEmpty() && d.isAbsent && q.loadAbsentLocked(d) {
			continue
		}
		if d.isEmpty() {
			q.dispatching = false
			q.armLocked()
			q.mu.Unlock()
			return true
		}
		q.mu.Unlock()
		d.settled.flush(q)
		for i := range d.claims {
			q.deliver(d, &d.claims[i])
		}
		q.deadLetter(d.expired, expired)
		q.deadLetter(d.overflow, maxLen)
		q.deadLetter(d.rejected, rejected)
		q.deadLetter(d.limited, deliveryLimit)
		q.mu.Lock()
		q.finishLocked(d)
	}
	q.mu.Unlock()
	return false
}

// fillLocked decides what to do next, in this order: what has expired goes, what can be
// delivered is claimed, and what is too much after that goes.
func (q *Queue) fillLocked(d *dispatch) {
	if q.deleted {
		return
	}
	s := q.settings.Load()
	q.takeStuckLocked(d)
	q.endRetriesLocked()
	if q.expireIfDueLocked(d) || d.isAbsent {
		return // what is behind them may have expired as well
	}
	for claimed := uint32(0); len(d.claims) < claimBatch && claimed < claimBytes; {
		pos, ok := q.index.nextReady()
		if !ok {
			break
		}
		if q.index.isPaged(pos) {
			d.miss(pos)
			break
		}
		q.readAheadLocked(pos)
		c := q.pickLocked()
		if c == nil {
			break
		}
		e := q.index.hold(pos)
		claimed += min(max(e.ref.Len, e.body), claimBytes)
		q.noteDeliveredLocked(pos)
		d.claims = append(d.claims, claim{
			pos: pos, ref: e.ref, consumer: c,
			redelivered: e.has(flagRedelivered), deliveries: e.deliveries(),
		})
	}
	if len(d.claims) > 0 {
		return // there may be credit for more: the next round looks
	}
	q.expireZeroLocked(d)
	for len(d.overflow) < claimBatch && s.isExceeded(&q.index.index) {
		pos, _ := q.index.nextReady()
		if q.index.isPaged(pos) {
			d.miss(pos)
			break
		}
		q.index.hold(pos)
		d.overflow = append(d.overflow, pos)
	}
}

// pickLocked returns the next consumer in turn that has credit, of which it has taken one
// unit, or nil if none has. Those that have none are not asked again before they say so.
func (q *Queue) pickLocked() *Consumer {
	for len(q.active) > 0 {
		if q.turn >= q.firstRankLocked() {
			q.turn = 0
		}
		c := q.active[q.turn]
		if c.receiver.Reserve() {
			q.turn++
			return c
		}
		c.starved.Store(true)
		if c.receiver.Reserve() { // see Consumer.starved
			c.starved.Store(false)
			q.turn++
			return c
		}
		q.active = append(q.active[:q.turn], q.active[q.turn+1:]...)
	}
	return nil
}

// firstRankLocked returns how many of the active consumers have the highest priority.
func (q *Queue) firstRankLocked() int {
	if !q.isRanked {
		return len(q.active)
	}
	n := 1
	for n < len(q.active) && q.active[n].priority == q.active[0].priority {
		n++
	}
	return n
}

// deliver reads one claimed message and hands it over.
func (q *Queue) deliver(d *dispatch, c *claim) {
	rec, err := d.record(q, c)
	if err != nil {
		c.outcome = damaged
		c.consumer.receiver.Release()
		q.broker.noteUnreadable(q, c.pos, err)
		return
	}
	hideBCC(&rec.Message)
	if q.quorum && c.deliveries > 0 {
		q.countedFor(&rec, c.deliveries)
	}
	d.delivery = Delivery{
		Queue: q, Pos: c.pos, Redelivered: c.redelivered, Deliveries: c.deliveries, Record: rec,
	}
	if !c.consumer.receiver.Deliver(&d.delivery) {
		c.outcome = refused
	}
}

// record returns the record of a claimed message, which may be in hand already.
func (d *dispatch) record(q *Queue, c *claim) (store.Record, error) {
	if d.known != nil && d.knownPos == c.pos {
		return *d.known, nil
	}
	return q.read(c.pos, c.ref, &d.buf)
}

// read returns the record of a held message. The cleaner may have moved it since ref was
// looked up.
func (q *Queue) read(pos uint64, ref store.Ref, buf *[]byte) (store.Record, error) {
	return q.readBy((*store.Store).Read, pos, ref, buf)
}

// readHead is read without a large body.
func (q *Queue) readHead(pos uint64, ref store.Ref, buf *[]byte) (store.Record, error) {
	return q.readBy((*store.Store).ReadHead, pos, ref, buf)
}

// storeRead is a way to read a record.
type storeRead func(s *store.Store, ref store.Ref, buf []byte) (store.Record, error)

func (q *Queue) readBy(
	read storeRead, pos uint64, ref store.Ref, buf *[]byte,
) (store.Record, error) {
	for {
		rec, err := read(q.broker.store, ref, *buf)
		if !errors.Is(err, store.ErrMoved) {
			*buf = rec.Buf
			return rec, err
		}
		q.mu.Lock()
		e := q.index.at(pos)
		if e == nil || e.ref == ref {
			q.mu.Unlock()
			return store.Record{}, err
		}
		ref = e.ref
		q.mu.Unlock()
	}
}

// finishLocked brings the index up to date with what became of a batch.
func (q *Queue) finishLocked(d *dispatch) {
	for i := range d.claims {
		c := &d.claims[i]
		switch {
		case q.deleted || !q.index.isHeld(c.pos): // the queue or, already, the ack was quicker
		case c.outcome == refused:
			q.index.unhold(c.pos)
			q.retireLocked(c.consumer)
		case c.outcome == damaged || c.consumer.spec.NoAck:
			d.settled.add(c.pos, q.index.remove(c.pos))
		}
	}
	clear(d.claims)
	d.claims = d.claims[:0]
	d.expired = d.expired[:0]
	d.overflow = d.overflow[:0]
	d.rejected = d.rejected[:0]
	d.limited = d.limited[:0]
	d.delivery = Delivery{}
}

// retireLocked stops asking a consumer that has said it is gone.
func (q *Queue) retireLocked(c *Consumer) {
	c.gone = true
	for i, a := range q.active {
		if a == c {
			q.active = append(q.active[:i], q.active[i+1:]...)
			return
		}
	}
}
