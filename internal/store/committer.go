package store

import (
	"errors"
	"slices"
)

// runCommitter is the group commit: it takes everything appended since the last
// commit, writes and syncs it, and tells those who wait. While it does so the
// next group gathers.
func (l *log) runCommitter() {
	var parts []part
	for {
		select {
		case <-l.kick:
		case <-l.quit:
			return
		}
		parts = l.commit(parts[:0])
	}
}

// part is a stretch of one segment to be written.
type part struct {
	seg      *segment
	from, to int64
}

// commit makes everything appended so far durable. Only the committer
// goroutine (or Close after its end) calls it.
func (l *log) commit(parts []part) []part {
	l.mu.Lock()
	l.closeFrameLocked()
	parts = l.takeLocked(parts)
	upTo := l.lsn - 1
	failedBefore := l.err != nil && !errors.Is(l.err, ErrClosed)
	l.mu.Unlock()

	var err error
	if len(parts) > 0 && !failedBefore {
		err = l.write(parts)
	}

	l.mu.Lock()
	if err != nil {
		l.failLocked(err)
	} else if !failedBefore {
		l.durable.Store(uint64(upTo))
		l.settleLocked(parts)
	}
	told, err := l.takeWaitersLocked()
	l.space.Broadcast()
	l.mu.Unlock()
	for _, w := range told {
		w.w.Committed(l.Durable(), err)
	}
	return parts
}

func (l *log) takeLocked(parts []part) []part {
	l.armed = false
	l.lazy.Stop()
	for _, g := range l.dirty {
		if g.taken < g.end {
			parts = append(parts, part{g, g.taken, g.end})
			g.taken = g.end
		}
	}
	l.dirty = l.dirty[:0]
	return parts
}

// write syncs segment by segment: if a later one has anything, all of the
// earlier ones is durable, so only the last can have a torn tail.
func (l *log) write(parts []part) error {
	for _, p := range parts {
		b := (*p.seg.buf.Load())[p.from:p.to]
		frames := b
		if p.from == 0 {
			frames = b[segmentHeaderBytes:]
		}
		sealFrames(frames, p.seg.salt, l.Durable(), l.table)
		if n, err := p.seg.file.WriteAt(b, p.from); err != nil || n < len(b) {
			return failed("write", orShort(err))
		}
		if err := p.seg.file.Datasync(); err != nil {
			return failed("sync", err)
		}
	}
	return nil
}

func orShort(err error) error {
	if err == nil {
		return errors.New("short write")
	}
	return err
}

func (l *log) settleLocked(parts []part) {
	if len(parts) > 0 {
		l.stats.Commits++
	}
	for _, p := range parts {
		p.seg.flushed = p.to
		if p.seg != l.active() && p.to == p.seg.end {
			wake(l.cleaner.kick) // a run may be written of it
		}
		l.unflushed -= p.to - p.from
		l.stats.WrittenBytes += uint64(p.to - p.from)
	}
	l.evictLocked()
}

// takeWaitersLocked removes those whose LSN is durable, or all if the log stopped.
func (l *log) takeWaitersLocked() ([]waiting, error) {
	durable := l.Durable()
	if l.err != nil && !errors.Is(l.err, ErrClosed) {
		durable = ^LSN(0)
	}
	var told []waiting
	rest := l.waiters[:0]
	for _, w := range l.waiters {
		if w.lsn <= durable {
			told = append(told, w)
		} else {
			rest = append(rest, w)
		}
	}
	clear(l.waiters[len(rest):])
	l.waiters = rest
	if durable == ^LSN(0) {
		return told, l.err
	}
	return told, nil
}

// Durable returns the highest durable LSN.
func (l *log) Durable() LSN { return LSN(l.durable.Load()) }

func (l *log) notify(lsn LSN, w Waiter) {
	if lsn <= l.Durable() {
		w.Committed(l.Durable(), nil)
		return
	}
	l.mu.Lock()
	if lsn > l.Durable() && l.err == nil {
		l.waiters = append(l.waiters, waiting{lsn, w})
		l.mu.Unlock()
		wake(l.kick)
		return
	}
	err := l.err
	l.mu.Unlock()
	if lsn <= l.Durable() {
		err = nil
	}
	w.Committed(l.Durable(), err)
}

// forget removes w, so that it is not called any more unless it is being called
// right now.
func (l *log) forget(w Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiters = slices.DeleteFunc(l.waiters, func(x waiting) bool { return x.w == w })
}
