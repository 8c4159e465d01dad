package store

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// staleFile is a file whose content is not needed any more.
type staleFile struct {
	seg  *segment
	fits bool // of the ordinary size
}

// keepRecycled is how many recycled files are kept beyond those that are made:
// the cleaner gives files back a few at a time, and making and zeroing one that
// it is about to give back costs as much as everything else the log does.
const keepRecycled = 4

// runPreparer keeps files ready for the log: recycled ones first, then new
// ones. A file in use was written before, so a sync of it needs no journal
// commit; a new one is filled with zeros for the same reason, once the active
// segment fills and it can be seen that it will be needed.
func (l *log) runPreparer() {
	retry := time.NewTimer(l.o.SpaceRetry)
	retry.Stop()
	defer retry.Stop()
	for {
		select {
		case <-l.want:
		case <-retry.C:
		case <-l.quit:
			return
		}
		if full := l.prepare(); full {
			retry.Reset(l.o.SpaceRetry)
		}
	}
}

// prepare does everything there is to do and reports whether the disk is full.
func (l *log) prepare() (full bool) {
	for {
		l.mu.Lock()
		if l.err != nil {
			l.mu.Unlock()
			return false
		}
		lacking := len(l.spares) < l.o.ReserveSegments+2
		wanted := lacking
		var old *staleFile
		if len(l.stale) > 0 {
			f := l.stale[0]
			old = &f
			l.stale = l.stale[1:]
			wanted = f.fits && len(l.spares) < l.o.ReserveSegments+2+keepRecycled
		}
		id := l.nextID
		if wanted {
			l.nextID++
		}
		l.mu.Unlock()

		var g *segment
		var err error
		switch {
		case old != nil && wanted:
			g, err = l.recycle(old.seg, id)
		case old != nil:
			err = l.remove(old.seg)
		case lacking:
			g, err = l.createSegment(id, l.o.SegmentBytes)
		default:
			l.warm()
			return false
		}
		if old != nil && !isFailed(err) {
			l.mu.Lock()
			if l.staleStuck = err != nil; l.staleStuck {
				l.stale = append([]staleFile{*old}, l.stale...) // strictly oldest first
			}
			l.mu.Unlock()
		}
		if stop := l.prepared(g, err); stop {
			return !isFailed(err)
		}
	}
}

// prepared takes in the result of one step and reports whether to stop.
func (l *log) prepared(g *segment, err error) bool {
	l.mu.Lock()
	was := l.shortLocked()
	switch {
	case isFailed(err):
		l.failLocked(err)
	case err != nil:
		l.logger.Warn("disk full: cannot prepare a log file", "err", err)
		l.full = len(l.spares) <= l.o.ReserveSegments
	case g != nil:
		l.spares = append(l.spares, g)
		l.full = l.full && len(l.spares) <= l.o.ReserveSegments
	}
	is := l.shortLocked()
	l.space.Broadcast()
	wake(l.cleaner.kick)
	l.mu.Unlock()
	l.tellSpace(was, is)
	return err != nil
}

// refusesLocked reports whether all new messages are refused: there is no room for
// the log, or for a run of what waits in it.
func (l *log) refusesLocked() bool { return l.full || l.noRuns }

// shortLocked reports whether publishers are to be held back: some or all new
// messages are refused.
func (l *log) shortLocked() bool { return l.refusesLocked() || l.noBodies }

// setNoRuns notes whether the last run could be written.
func (l *log) setNoRuns(is bool) { l.setShort(&l.noRuns, is) }

// setNoBodies notes whether the last file for large bodies could be made.
func (l *log) setNoBodies(is bool) { l.setShort(&l.noBodies, is) }

// setShort changes one of the reasons to refuse new messages.
func (l *log) setShort(reason *bool, is bool) {
	l.mu.Lock()
	before := l.shortLocked()
	if *reason != is {
		*reason = is
		l.space.Broadcast()
	}
	after := l.shortLocked()
	l.mu.Unlock()
	l.tellSpace(before, after)
}

func (l *log) tellSpace(was, is bool) {
	if was == is {
		return
	}
	l.logger.Info("space for new messages", "full", is)
	if l.o.SpaceChanged != nil {
		l.o.SpaceChanged(is)
	}
}

func isFailed(err error) bool {
	var f *FailedError
	return errors.As(err, &f)
}

// recycle gives an old file a new name. Its old content never validates under
// the new id. The directory is synced before the file is written to, and before
// the next older file goes: what vanishes, vanishes oldest first.
func (l *log) recycle(old *segment, id uint32) (*segment, error) {
	name := segmentName(id)
	if err := l.fs.Reuse(l.path(old.name), l.path(name)); err != nil {
		return nil, fmt.Errorf("recycle segment: %w", err)
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return nil, failed("sync directory of the", err)
	}
	return &segment{id: id, name: name, file: old.file, size: old.size, warm: true}, nil
}

func (l *log) remove(old *segment) error {
	if err := l.fs.Remove(l.path(old.name)); err != nil {
		return fmt.Errorf("remove segment: %w", err)
	}
	old.file.Close()
	if err := l.fs.SyncDir(l.dir); err != nil {
		return failed("sync directory of the", err)
	}
	return nil
}

const (
	zeroChunk = 256 << 10
	zeroRate  = 64 << 20 // bytes per second
)

// warm readies what is next in line: an image for the first spare, and, when
// there is nothing else to do, zeros in the files of the others.
func (l *log) warm() {
	l.mu.Lock()
	if len(l.spares) == 0 || l.active().end < l.active().size/8 {
		l.mu.Unlock()
		return
	}
	first := l.spares[0]
	l.mu.Unlock()
	if first.buf.Load() == nil {
		b := l.buffers.get(first.size)
		first.buf.CompareAndSwap(nil, &b) // it may have become active meanwhile
	}
	if g := l.takeCold(); g != nil {
		err := l.zero(g)
		l.mu.Lock()
		if err != nil {
			l.failLocked(failed("sync", err))
		}
		l.spares = append(l.spares, g)
		l.space.Broadcast()
		l.mu.Unlock()
	}
}

// takeCold takes a spare whose file was never written to out of the list, so
// that nobody uses it meanwhile. The first stays.
func (l *log) takeCold() *segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.spares) - 1; i > 0; i-- {
		if g := l.spares[i]; !g.warm {
			l.spares = slices.Delete(l.spares, i, i+1)
			return g
		}
	}
	return nil
}

// zero fills the file, slowly, and gives up as soon as there is something else
// to do; the next call goes on from there. A failed write is no harm, the file
// has no content yet; a failed sync is.
func (l *log) zero(g *segment) error {
	zeros := make([]byte, zeroChunk)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for ; g.zeroed < g.size; g.zeroed += zeroChunk {
		select {
		case <-l.quit:
			return nil
		case <-l.want:
			wake(l.want) // for runPreparer
			return nil
		case <-pause.C:
		}
		if _, err := g.file.WriteAt(zeros[:min(zeroChunk, g.size-g.zeroed)], g.zeroed); err != nil {
			l.logger.Warn("cannot zero a log file", "err", err)
			return nil
		}
		pause.Reset(time.Second * zeroChunk / zeroRate)
	}
	g.warm = true
	return g.file.Datasync()
}
