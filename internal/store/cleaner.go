package store

import (
	"errors"
	"math"
	"sync"
	"time"
)

// cleaner gives back the space of what is not needed any more. It works on the
// oldest segment only: what is still needed in it is appended to the log again,
// and when that is durable the file goes. Moves, cancels and most settles in it
// need no copy, because what they are about is in it or older.
//
// A message may be settled while it is being copied, so that the settle stands
// before the copy. Recovery does not mind the order, but the settle's segment is
// older than the copy's and goes first. Therefore settles that may have a copy
// behind them are copied too (see echo).
type cleaner struct {
	s     *Store
	log   *log
	kick  chan struct{}
	quit  chan struct{}
	roles sync.WaitGroup

	mu    sync.Mutex
	owner Owner // guarded by mu

	// Of the segment being cleaned; only the cleaner's goroutine touches them.

	seg    *segment
	err    error // the first append that failed
	ask    Owner
	view   messageView
	held   []Target
	moved  []movedEntry // of seg, by offset
	plan   []planned    // scratch of flushes
	spare  []planned
	move   Move // scratch
	second bool // pass
	// runsHold says that a message is in a queue whose record is in a run. What this
	// segment moved there it moved before that was asked.
	runsHold bool
	first    LSN // of seg
	// On a full disk: how many segments may still be cleaned, and what was live
	// when that was granted.
	granted int
	lowest  int64
	// copied says, by queue, which positions have copies in the log.
	copied map[uint32]*copiedRange
	echoes map[uint32][]stretch // settles of seg to be logged again
}

func newCleaner(s *Store) *cleaner {
	return &cleaner{s: s, log: s.log, lowest: math.MaxInt64, copied: map[uint32]*copiedRange{}, kick: make(chan struct{}, 1), quit: make(chan struct{})}
}

func (c *cleaner) start() { c.roles.Go(c.run) }

func (c *cleaner) stop() {
	close(c.quit)
	c.roles.Wait()
}

func (c *cleaner) setOwner(o Owner) {
	c.mu.Lock()
	c.owner = o
	c.mu.Unlock()
	wake(c.kick)
}

func (c *cleaner) run() {
	retry := time.NewTimer(c.log.o.SpaceRetry)
	retry.Stop()
	defer retry.Stop()
	for {
		select {
		case <-c.kick:
		case <-retry.C:
		case <-c.quit:
			return
		}
		if err := c.log.failure(); err != nil {
			c.s.index.stop(err)
			continue
		}
		if err := c.writeRuns(); err != nil {
			c.tell(err)
			retry.Reset(c.log.o.SpaceRetry)
		}
		c.mu.Lock()
		c.ask = c.owner
		c.mu.Unlock()
		if c.ask == nil {
			continue
		}
		c.thin()
		for g := c.choose(); g != nil; g = c.choose() {
			if err := c.clean(g); err != nil {
				c.tell(err)
				break
			}
			c.tell(c.writeRuns())
		}
		c.tell(c.tidyRuns())
	}
}

func (c *cleaner) tell(err error) {
	if err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrFull) {
		c.log.logger.Error("cannot clean the store", "err", err)
	}
}

// writeRuns flushes and merges what is due.
func (c *cleaner) writeRuns() error {
	for segs := c.flushDue(); len(segs) > 0; segs = c.flushDue() {
		if err := c.flush(segs); err != nil {
			return err
		}
		if err := c.stopped(); err != nil {
			return err
		}
	}
	c.log.setNoRuns(false) // whatever has to be in runs is
	for runs := c.mergeDue(); len(runs) > 1; runs = c.mergeDue() {
		if err := c.mergeRuns(runs); err != nil {
			return err
		}
		if err := c.stopped(); err != nil {
			return err
		}
	}
	return nil
}

func (c *cleaner) stopped() error {
	select {
	case <-c.quit:
		return ErrClosed
	default:
		return nil
	}
}

// choose returns the oldest segment if it pays to clean it: when there is more
// garbage than live data and slack, or as hard says.
func (c *cleaner) choose() *segment {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || len(l.order) < 2 || l.order[0].flushed < l.order[0].end {
		return nil
	}
	size, live := l.neededLocked()
	if !l.full {
		c.granted = 0
		c.lowest = size
	}
	if size-live > live+l.o.SlackBytes || (l.full && c.hard(size, live, len(l.order))) {
		return l.order[0]
	}
	return nil
}

// hard decides on a full disk, where every file counts: garbage worth two files
// pays. But some of what looks like garbage is headers and unused ends, which
// come back with every copy, so there is one round through the log, and another
// each time that more has ended.
func (c *cleaner) hard(size, live int64, segments int) bool {
	file := c.log.o.SegmentBytes
	if size-live <= 2*file {
		return false
	}
	if live <= c.lowest-file/2 {
		c.lowest, c.granted = live, segments
	}
	if c.granted == 0 {
		return false
	}
	c.granted--
	return true
}
