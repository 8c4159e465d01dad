package store

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Giving back what large bodies took.

// run gives back what is not needed any more, whenever there is something.
func (b *bodies) run() {
	retry := time.NewTimer(b.log.o.SpaceRetry)
	retry.Stop()
	defer retry.Stop()
	for {
		select {
		case <-b.kick:
		case <-retry.C:
			b.renewIfShort()
		case <-b.quit:
			return
		}
		if b.noteShort() {
			retry.Reset(b.log.o.SpaceRetry)
		}
		b.seal()
		if err := b.collect(); err != nil && !errors.Is(err, ErrClosed) {
			b.log.logger.Warn("cannot give back space of large messages", "err", err)
		}
	}
}

// noteShort has publishers held back while there is no room for a file, and
// reports whether that is so.
func (b *bodies) noteShort() bool {
	b.mu.Lock()
	short := b.short
	b.mu.Unlock()
	b.log.setNoBodies(short)
	return short
}

// renewIfShort tries again to make the file that could not be made.
func (b *bodies) renewIfShort() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.short && !b.creating {
		_ = b.renewLocked(b.log.o.BodyFileBytes) // create has told why not
	}
}

// seal cuts files to their length that are not appended to any more.
func (b *bodies) seal() {
	b.mu.Lock()
	sealed := b.sealed
	b.sealed = nil
	b.mu.Unlock()
	for _, f := range sealed {
		if err := f.file.Truncate(f.end); err != nil && !f.retired.Load() {
			b.log.logger.Warn("cannot cut body file", "file", f.name, "err", err)
			continue
		}
		b.mu.Lock()
		f.size = f.end
		b.mu.Unlock()
	}
}

// askOwner ends the claims of positions that recovery found and that the owner let
// go of without a word, which it may do before it is known to the store. It is asked
// before it goes on: what it lets go of afterwards it tells, and where that cannot
// be logged the message comes back, and needs its body.
func (b *bodies) askOwner(owner Owner) {
	b.mu.Lock()
	var held []Target
	for queue, q := range b.queues {
		for pos := range q {
			held = append(held, Target{queue, pos})
		}
	}
	b.mu.Unlock()
	for _, t := range held {
		if !owner.Holds(t.Queue, t.Pos) {
			b.settled(t.Queue, t.Pos)
		}
	}
	wake(b.kick)
}

// extent is a part of a file.
type extent struct {
	file     *bodyFile
	from, to int64
}

// collect gives back the bodies that nobody claims. What ended their claims is in
// the log; it must be durable first, or a crash would bring back messages without
// their bodies.
func (b *bodies) collect() error {
	b.mu.Lock()
	dead, found := b.dead, b.found
	b.dead, b.found = nil, nil
	b.mu.Unlock()
	if len(dead)+len(found) == 0 {
		return nil
	}
	if err := b.log.awaitLast(b.quit); err != nil {
		return err // the next start finds them
	}
	holes, gone := b.freed(dead, found)
	for _, h := range holes {
		err := h.file.file.PunchHole(h.from, h.to-h.from)
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			b.log.logger.Warn("cannot give back a large body", "file", h.file.name, "err", err)
		}
	}
	var errs []error
	for _, f := range gone {
		f.file.Close()
		errs = append(errs, b.log.fs.Remove(b.log.path(f.name))) // else the next start does
	}
	return errors.Join(errs...)
}

// freed takes dead bodies out of their files and returns which files are not
// needed any more, and the holes in the others.
func (b *bodies) freed(dead []*body, found []*bodyFile) (holes []extent, gone []*bodyFile) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, y := range dead {
		delete(y.file.bodies, y.ref.Block)
	}
	for _, y := range dead {
		if f := y.file; !b.removeLocked(f, &gone) && !f.retired.Load() {
			holes = append(holes, extent{f, y.ref.offset(), y.end()})
		}
	}
	for _, f := range found {
		if !b.removeLocked(f, &gone) && !f.retired.Load() {
			holes = f.gapsLocked(holes)
		}
	}
	return holes, gone
}

// removeLocked takes a file out of the store if nothing is in it any more.
func (b *bodies) removeLocked(f *bodyFile, gone *[]*bodyFile) bool {
	if !f.full || len(f.bodies) > 0 || f.retired.Load() {
		return false
	}
	f.retired.Store(true)
	delete(b.files, f.id)
	*gone = append(*gone, f)
	return true
}

func (y *body) end() int64 { return y.ref.offset() + alignBlock(int64(y.ref.Length)) }

// gapsLocked appends the parts of a file between its bodies.
func (f *bodyFile) gapsLocked(holes []extent) []extent {
	var list []*body
	for _, y := range f.bodies {
		list = append(list, y)
	}
	slices.SortFunc(list, func(a, b *body) int { return cmp.Compare(a.ref.Block, b.ref.Block) })
	at := int64(bodyBlock)
	for _, y := range list {
		if at < y.ref.offset() {
			holes = append(holes, extent{f, at, y.ref.offset()})
		}
		at = y.end()
	}
	if at < f.size {
		holes = append(holes, extent{f, at, f.size})
	}
	return holes
}

// awaitLast waits until all that was appended so far is durable.
func (l *log) awaitLast(quit chan struct{}) error {
	l.mu.Lock()
	lsn := l.lastLocked()
	l.mu.Unlock()
	w := make(waitOnce, 1)
	l.notify(lsn, w)
	select {
	case err := <-w:
		return err
	case <-quit:
		l.forget(w)
		return ErrClosed
	}
}

// sizes returns how many body files there are, what they take of the disk at
// most, and how much of that is needed.
func (b *bodies) sizes() (files int, size, live int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.files {
		for _, y := range f.bodies {
			live += alignBlock(int64(y.ref.Length))
		}
		size += f.size - f.end
	}
	return len(b.files), size + live + int64(len(b.files))*bodyBlock, live
}
