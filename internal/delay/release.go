package delay

import (
	"errors"
	"fmt"
	"time"

	"github.com/duepost/duepost/internal/store"
)

// fullRetry is how long the engine waits when the disk has no room for its moves. The store
// keeps a reserve for them, so this means that the disk has been full for long.
const fullRetry = time.Second

// release is what the goroutine of the engine works with. What was popped and is not yet
// committed stays in batch: normally nothing is left when releaseDue returns, but on a full
// disk the batch is held and committed later.
type release struct {
	sink  Sink
	max   int
	retry backOff

	batch []store.Due // views of due and out
	outs  []Outcome
	limit int  // how many entries the next group may have; see commit
	held  bool // the disk is full, and that was logged

	due   []store.Due // scratch space
	out   []Outcome
	group store.Batch
	move  store.Move
}

// releaseAll releases batch after batch until nothing is due, then sets the alarm.
func (e *Engine) releaseAll() error {
	e.mu.Lock()
	e.nextDue.Store(working) // spares Add the trouble of setting the alarm
	e.mu.Unlock()
	n, err := 1, error(nil)
	for n > 0 && err == nil && !e.held.Load() {
		n, err = e.releaseDue(e.clock.Now().UnixMilli())
	}
	full := errors.Is(err, store.ErrFull)
	e.noteFull(full)
	if err != nil && !full {
		return err
	}
	// From here on Add sets the alarm itself. An entry it put in before is seen by NextDue.
	e.mu.Lock()
	e.nextDue.Store(notArmed)
	e.alarm.Clear()
	e.mu.Unlock()
	if full {
		e.Expect(e.clock.Now().Add(fullRetry).UnixMilli())
	} else if due, ok := e.store.NextDue(); ok {
		e.Expect(due)
	}
	return nil
}

// releaseDue releases at most one batch of what is due at now and reports how much. After
// store.ErrFull it may be called again; after any other error what it had taken out is
// neither released nor pending until the store is opened anew.
func (e *Engine) releaseDue(now int64) (int, error) {
	if err := e.store.Err(); err != nil {
		return 0, err
	}
	r := &e.release
	if len(r.batch) == 0 {
		// 1. Take out what is due.
		r.due = e.store.PopDue(now, r.max, r.due[:0])
		if len(r.due) == 0 {
			return 0, nil
		}
		// 2. Ask where it goes.
		r.batch, r.outs, r.limit = r.due, r.outcomes(len(r.due), now), len(r.due)
		r.sink.Route(r.batch, r.outs)
	}
	// 3. Make that one atomic group: an entry ends where its message begins.
	n, err := e.commit(now)
	if err != nil {
		return 0, err
	}
	// 4. Hand over. A delivery does not wait for the group to be synced: a crash before
	// that repeats it, which at-least-once allows.
	r.sink.Push(r.batch[:n], r.outs[:n])
	e.counters.count(r.batch[:n], r.outs[:n], e.clock.Now())
	r.batch, r.outs = r.batch[n:], r.outs[n:]
	return n, nil
}

// commit writes the outcomes of the first entries of the batch, normally all of them, as one
// atomic group and returns how many.
//
// An entry that is to be retried is written again. If its record turns out to be damaged the
// store refuses the whole group. So the next group has one entry; if that is the damaged one it
// is Dropped, and if not the groups grow again.
func (e *Engine) commit(now int64) (int, error) {
	r := &e.release
	n := min(r.limit, len(r.batch))
	r.group.Reset()
	for i := range n {
		r.record(&r.batch[i], &r.outs[i], now)
	}
	_, err := e.store.Commit(&r.group)
	switch {
	case store.IsCorruption(err) && n > 1:
		r.limit = 1
		return e.commit(now)
	case store.IsCorruption(err) && r.outs[0].Verdict == Retry:
		e.log.Error("delayed message lost: record unreadable", "id", r.batch[0].Key.Seq, "due", r.batch[0].Key.Due, "err", err)
		r.outs[0].Verdict = Dropped
		return e.commit(now)
	case err != nil:
		return 0, fmt.Errorf("commit release: %w", err)
	}
	r.limit = 2 * n
	r.relocate(n)
	return n, nil
}

// outcomes returns n outcomes as Route finds them, whose Targets keep their capacity.
func (r *release) outcomes(n int, now int64) []Outcome {
	for len(r.out) < n {
		r.out = append(r.out, Outcome{})
	}
	out := r.out[:n]
	for i := range out {
		out[i] = Outcome{Targets: out[i].Targets[:0], Arrived: now, TTL: -1}
	}
	return out
}

// record writes the outcome of one entry into the group.
func (r *release) record(d *store.Due, o *Outcome, now int64) {
	o.Holds = max(o.Holds, len(o.Targets))
	if o.Verdict == Moved && o.Holds == 0 {
		o.Verdict = Dropped
	}
	if o.Verdict == Retry {
		if o.RetryAt == 0 {
			o.RetryAt = r.retry.next(d.Key.Seq, now)
		}
		o.RetryAt = max(o.RetryAt, now+1) // else this round would never end
		r.group.Retry(d.Key, d.Ref, o.RetryAt)
		return
	}
	r.retry.end(d.Key.Seq)
	if o.Verdict == Dropped || o.Verdict == Copied {
		r.group.Discard(d.Key, d.Ref)
		return
	}
	r.move = store.Move{
		Key: d.Key, Ref: d.Ref, Targets: o.Targets, Holds: o.Holds,
		Arrived: o.Arrived, TTL: o.TTL, Persistent: o.Persistent,
	}
	r.group.Move(&r.move)
}

// relocate puts where the messages are now into the first n entries.
func (r *release) relocate(n int) {
	refs := r.group.Refs
	for i := range n {
		if v := r.outs[i].Verdict; v == Moved || v == Parked {
			r.batch[i].Ref, refs = refs[0], refs[1:]
		}
	}
}

// noteFull says once when the disk becomes too full to release, and when that is over.
func (e *Engine) noteFull(full bool) {
	if full == e.release.held {
		return
	}
	e.release.held = full
	e.counters.held.Store(full)
	if full {
		e.log.Error("release held: no room on the disk", "n", len(e.release.batch), "delay", fullRetry)
	} else {
		e.log.Info("release goes on: there is room on the disk again")
	}
}
