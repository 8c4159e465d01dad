package store

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// tidyRuns gives back what is not needed any more of runs: the front of which all
// has ended, and files of which that is so throughout.
func (c *cleaner) tidyRuns() error {
	gone, fronts := c.idleRuns()
	if len(gone)+len(fronts) == 0 {
		return nil
	}
	for _, r := range gone {
		rec := appendRecord(nil, kindRunGone, 0, func(b []byte) []byte { return le.AppendUint32(b, r.id) })
		if _, ok := c.append(len(rec), func(buf []byte) { copy(buf, rec) }); !ok {
			err := c.err
			c.err = nil
			return err
		}
	}
	if err := c.waitDurable(); err != nil {
		return err
	}
	for _, f := range fronts {
		f.punch(c.log)
	}
	return c.removeRuns(gone)
}

// front is the part of a run before an offset, of which all has ended.
type front struct {
	run      *run
	from, to int64
}

const holeUnit = 4096

// idleRuns returns the runs that are not needed any more, and fronts of others.
func (c *cleaner) idleRuns() (gone []*run, fronts []front) {
	x, l := c.s.index, c.log
	x.mu.Lock()
	defer x.mu.Unlock()
	flying := map[*run]bool{}
	for _, fl := range x.inFlight() {
		flying[fl.from.run] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.files {
		switch held := l.heldLocked(r); {
		case r.consumed() && !flying[r] && held <= 0:
			c.forgetCountsLocked(r)
			gone = append(gone, r)
		case held <= 0 && !flying[r]:
			to := r.endedBlocks() / holeUnit * holeUnit
			if to-r.punched >= l.o.RunBytes/4 {
				fronts = append(fronts, front{r, r.punched, to})
			}
		}
	}
	for _, r := range gone {
		x.runs = slices.DeleteFunc(x.runs, func(o *run) bool { return o == r })
	}
	return gone, fronts
}

// endedBlocks returns where the block begins that the first record that has not
// ended is in. Blocks are read whole, so none may have a hole in its front.
func (r *run) endedBlocks() int64 { return int64(r.blocks[max(0, r.blockOf(r.state.done))].off) * 8 }

// forgetCountsLocked takes out of the counters what should be in a run and is not,
// because it was damaged.
func (c *cleaner) forgetCountsLocked(r *run) {
	x := c.s.index
	for ex, p := range r.state.left {
		x.countLocked(ex, -int(p.Count), 0)
		x.last.Bytes -= p.Bytes
		x.total.Bytes -= p.Bytes
	}
	clear(r.state.left)
}

func (f *front) punch(l *log) {
	from := max(f.from, holeUnit)
	err := f.run.file.PunchHole(from, f.to-from)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		l.logger.Warn("cannot give back space of a run", "file", f.run.name, "err", err)
	}
	l.mu.Lock()
	f.run.punched = f.to // even so: else it would be tried for ever
	l.mu.Unlock()
}

// runGone sees to it that the log says of a run that it is not needed for as long
// as there is a file of it: else it would be served again.
func (c *cleaner) runGone(rec []byte) {
	l := c.log
	r := reader{b: rec[recordHeaderBytes:]}
	err := l.fs.Remove(l.path(runName(r.u32())))
	if err == nil {
		err = l.fs.SyncDir(l.dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.append(len(rec), func(buf []byte) { copy(buf, rec); buf[13] = 0 })
	}
}

func (c *cleaner) removeRuns(gone []*run) error {
	l := c.log
	if len(gone) == 0 {
		return nil
	}
	l.mu.Lock()
	l.files = slices.DeleteFunc(l.files, func(r *run) bool { return slices.Contains(gone, r) })
	for _, r := range gone {
		r.retired.Store(true)
		if g := l.segment(r.stateIn); g != nil {
			g.live.Add(-r.stateBytes)
		}
	}
	l.publishLocked()
	l.mu.Unlock()
	for _, r := range gone {
		l.releaseFilter(r)
		r.file.Close()
		if err := l.fs.Remove(l.path(r.name)); err != nil {
			return fmt.Errorf("remove run: %w", err) // the next start will
		}
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		err = failed("sync directory of the", err)
		l.mu.Lock()
		l.failLocked(err)
		l.mu.Unlock()
		return err
	}
	return nil
}
