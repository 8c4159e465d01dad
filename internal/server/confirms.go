package server

import (
	"sync"

	"github.com/duepost/duepost/internal/store"
	"github.com/duepost/duepost/internal/wire"
)

// notifier is the part of the store that confirms wait for.
type notifier interface {
	// Notify calls w.Committed once lsn is durable, from the committer's goroutine,
	// or at once if it is already.
	Notify(lsn store.LSN, w store.Waiter)
}

// run is consecutive publishes of one channel that are confirmed together.
type run struct {
	last uint64    // number of the last publish
	lsn  store.LSN // what must be durable; 0 for nothing
	nack bool
}

// confirmer is the confirms one channel owes.
type confirmer struct {
	number uint16 // of the channel

	// The reader's: publishes since the last flush.
	published uint64 // number of the last publish
	fresh     []run

	// Guarded by confirms.mu.
	answered uint64 // every publish up to this one was confirmed
	runs     []run  // in ascending order of last and of lsn
	listed   bool   // in confirms.waiting
}

// record notes the outcome of one publish.
func (k *confirmer) record(lsn store.LSN, nack bool) {
	k.published++
	if n := len(k.fresh); n > 0 && !nack && !k.fresh[n-1].nack {
		r := &k.fresh[n-1]
		r.last = k.published
		r.lsn = max(r.lsn, lsn)
		return
	}
	k.fresh = append(k.fresh, run{last: k.published, lsn: lsn, nack: nack})
}

// confirms is what a connection's channels wait for, behind one registration
// with the store, so that a commit costs one call per connection.
//
// The confirms of a channel leave in the order of its publishes: what needs no
// commit waits for what was published before it. That lets one basic.ack with
// multiple answer all of a commit. [rmq confirms]
type confirms struct {
	out   *output
	store notifier
	tally *tally

	mu      sync.Mutex // guards all below and the marked fields of confirmers
	waiting []*confirmer
	asked   bool // the store will call Committed
}

// flush takes over what the reader recorded for a channel and answers what
// waits for nothing.
func (c *confirms) flush(k *confirmer) {
	if len(k.fresh) == 0 {
		return
	}
	c.mu.Lock()
	k.runs = append(k.runs, k.fresh...)
	k.fresh = k.fresh[:0]
	if k.runs[0].lsn == 0 {
		b := c.out.begin()
		b = c.answer(b, k, 0, false)
		c.out.end(b)
	}
	if len(k.runs) > 0 && !k.listed {
		k.listed = true
		c.waiting = append(c.waiting, k)
	}
	lsn, ask := c.nextLocked()
	c.mu.Unlock()
	if ask {
		c.store.Notify(lsn, c)
	}
}

// nextLocked says what to register for with the store, if anything is waited for
// and not yet asked: the earliest, so that no confirm waits for a later commit
// than its own.
func (c *confirms) nextLocked() (lsn store.LSN, ask bool) {
	if c.asked || len(c.waiting) == 0 {
		return 0, false
	}
	lsn = c.waiting[0].runs[0].lsn
	for _, k := range c.waiting[1:] {
		lsn = min(lsn, k.runs[0].lsn)
	}
	c.asked = true
	return lsn, true
}

// Committed implements store.Waiter.
func (c *confirms) Committed(durable store.LSN, err error) {
	c.mu.Lock()
	c.asked = false
	b := c.out.begin()
	left := c.waiting[:0]
	for _, k := range c.waiting {
		b = c.answer(b, k, durable, err != nil)
		k.listed = len(k.runs) > 0
		if k.listed {
			left = append(left, k)
		}
	}
	clear(c.waiting[len(left):])
	c.waiting = left
	c.out.end(b)
	lsn, ask := c.nextLocked()
	c.mu.Unlock()
	if ask {
		c.store.Notify(lsn, c)
	}
}

// answer appends the confirms of the runs that are durable; of all runs, and
// negative, if the store failed.
func (c *confirms) answer(b []byte, k *confirmer, durable store.LSN, failed bool) []byte {
	n := 0
	for n < len(k.runs) && (failed || k.runs[n].lsn <= durable) {
		r := k.runs[n]
		n++
		nack := failed || r.nack
		if !nack && n < len(k.runs) && !k.runs[n].nack && k.runs[n].lsn <= durable {
			continue // goes out with the next one
		}
		multiple := r.last-k.answered > 1
		if nack {
			c.tally.nacked.Add(r.last - k.answered)
			b = wire.AppendNack(b, k.number, r.last, multiple)
		} else {
			c.tally.confirmed.Add(r.last - k.answered)
			b = wire.AppendAck(b, k.number, r.last, multiple)
		}
		k.answered = r.last
	}
	k.runs = append(k.runs[:0], k.runs[n:]...)
	return b
}

// drop forgets what is owed to a channel that is closed.
func (c *confirms) drop(k *confirmer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.fresh, k.runs, k.listed = nil, nil, false
	for i, o := range c.waiting {
		if o == k {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			return
		}
	}
}
