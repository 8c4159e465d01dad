package store

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Flushing moves the delayed entries that wait in full segments from the log into
// a run. It is work of the cleaner's goroutine, so that no segment is emptied
// meanwhile:
//
//  1. list what waits in them, in key order;
//  2. write the run; sync file and directory;
//  3. in one group of the log: what waited in these segments is in that run now;
//     and at the same instant the index serves it from there.
//
// Nothing refers to the run before step 3, so until then a crash leaves a file
// that the next start removes. What was popped since step 1 is the front of the
// run, because nothing can come to wait in a full segment. If it is still in
// flight it is made to refer to the run. What was in flight at step 1 is not in
// the run, and stays in the log until it ends.

// planned is an entry on its way into a run.
type planned struct {
	key      Key
	off      uint32 // in its segment
	length   uint32
	exchange uint32
	segment  uint32 // in flush.segs
	to       uint32 // offset in the run, 0 = not in it
}

type flush struct {
	c       *cleaner
	segs    []*segment
	images  [][]byte
	read    []bool   // which of images came from the disk
	mapped  [][]byte // those of images that are to be unmapped
	touched byte
	list    []planned
	bytes   int64
}

// flushDue returns the oldest full segments when so much waits in full ones that
// a run is to be written.
func (c *cleaner) flushDue() []*segment {
	segs, bytes := c.waitingSegments()
	if bytes <= c.log.o.FreshBytes {
		return nil
	}
	return c.enough(segs, c.log.o.RunBytes)
}

// waitingSegments returns the full, durable segments in which delayed entries
// wait, oldest first, and their bytes.
func (c *cleaner) waitingSegments() (segs []*segment, bytes int64) {
	l := c.log
	l.mu.Lock()
	for _, g := range l.order[:max(0, len(l.order)-1)] {
		if g.flushed < g.end {
			break
		}
		segs = append(segs, g)
	}
	l.mu.Unlock()
	for _, g := range segs {
		g.pins.Wait()
	}
	x := c.s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	segs = slices.DeleteFunc(segs, func(g *segment) bool {
		f := g.fresh
		if f == nil {
			return true
		}
		if f.waiting+f.flying == 0 {
			x.forgetFresh(f)
			return true
		}
		bytes += f.bytes
		g.waits.Store(f.bytes > g.size/4)
		return f.waiting == 0
	})
	return segs, bytes
}

// enough returns the first segments whose entries fill a run.
func (c *cleaner) enough(segs []*segment, want int64) []*segment {
	x := c.s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, g := range segs {
		if want -= g.fresh.bytes; want <= 0 {
			return segs[:i+1]
		}
	}
	return segs
}

// flush writes one run of what waits in segs.
func (c *cleaner) flush(segs []*segment) error {
	f := &flush{c: c, segs: segs, list: c.plan[:0]}
	f.plan()
	defer f.end()
	w, err := newRunWriter(c.log, f.bytes)
	if err != nil {
		return f.failed(err)
	}
	r, err := f.write(w)
	if err != nil {
		w.abandon()
		return f.failed(err)
	}
	err = f.install(r)
	if err != nil || r.count == 0 {
		w.abandon()
	}
	if err != nil {
		return f.failed(err)
	}
	return nil
}

// failed takes note of an error: publishers are told to wait until a run can be
// written. Only failed syncs stop the store.
func (f *flush) failed(err error) error {
	l, x := f.c.log, f.c.s.index
	if isFailed(err) {
		l.mu.Lock()
		l.failLocked(err)
		l.mu.Unlock()
		return err
	}
	l.logger.Warn("cannot write a run", "err", err)
	l.setNoRuns(true)
	x.mu.Lock()
	x.calm.Broadcast()
	x.mu.Unlock()
	return errors.Join(ErrFull, err)
}

// plan is step 1.
func (f *flush) plan() {
	x := f.c.s.index
	for i, g := range f.segs {
		x.mu.Lock()
		g.fresh.flushing = true
		g.fresh.cancelled, g.fresh.dropped = nil, nil
		f.list = slices.Grow(f.list, g.fresh.waiting)
		g.fresh.each(func(seq uint64, e entry) {
			if e.state == entryWaits {
				f.list = append(f.list, planned{
					key: Key{e.due, seq}, off: e.off, length: e.length, exchange: e.exchange, segment: uint32(i),
				})
				f.bytes += align(int64(e.length))
			}
		})
		x.mu.Unlock()
	}
	if len(f.c.spare) < len(f.list) {
		f.c.spare = make([]planned, len(f.list))
	}
	sortPlanned(f.list, f.c.spare)
}

// end is after step 3, or instead of it.
func (f *flush) end() {
	f.unmap()
	f.c.plan = f.list
	x := f.c.s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, g := range f.segs {
		if g.fresh != nil {
			g.fresh.flushing = false
			g.fresh.cancelled, g.fresh.dropped = nil, nil
		}
	}
}

// write is step 2.
func (f *flush) write(w *runWriter) (*run, error) {
	if err := f.readSegments(); err != nil {
		return nil, err
	}
	for i := range f.list {
		p := &f.list[i]
		if i%aheadRecords == 0 {
			f.touch(f.list[i:min(len(f.list), i+aheadRecords)])
		}
		rec, ok := f.record(p)
		if !ok {
			f.c.s.noteDamage(f.segs[p.segment].name, int64(p.off)*8, int64(p.length))
			continue
		}
		off, err := w.add(p.key, rec)
		if err != nil {
			return nil, err
		}
		p.to = off
	}
	f.unmap()
	if w.run.count == 0 {
		return w.run, nil
	}
	return w.finish()
}

// aheadRecords is how many records are brought near at once.
const aheadRecords = 16

// touch reads the beginnings of records that lie anywhere in many MiB, so that
// the processor waits for all of them at once and not for one after the other.
func (f *flush) touch(list []planned) {
	var sum byte
	for i := range list {
		p := &list[i]
		if b, at := f.images[p.segment], int64(p.off)*8; at+int64(p.length) <= int64(len(b)) {
			sum += b[at] + b[at+int64(p.length)-1]
		}
	}
	f.touched = sum
}

func (f *flush) unmap() {
	f.images, f.read = nil, nil
	for _, b := range f.mapped {
		if err := unix.Munmap(b); err != nil {
			f.c.log.logger.Warn("cannot unmap memory", "err", err)
		}
	}
	f.mapped = nil
}

func (f *flush) readSegments() error {
	for _, g := range f.segs {
		if p := g.buf.Load(); p != nil {
			f.images, f.read = append(f.images, *p), append(f.read, false)
			continue
		}
		b := f.outside(g.size)
		if err := readFull(g.file, b[:g.end], 0); err != nil {
			return fmt.Errorf("read segment %s: %w", g.name, err)
		}
		f.images, f.read = append(f.images, b), append(f.read, true)
	}
	return nil
}

// outside returns memory outside the garbage collector's heap, which would take
// long to give it back.
func (f *flush) outside(n int64) []byte {
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return make([]byte, n)
	}
	f.mapped = append(f.mapped, b)
	return b
}

// record returns the record of an entry, verified if it came from the disk: what
// is damaged must not get a new checksum.
func (f *flush) record(p *planned) ([]byte, bool) {
	g, off := f.segs[p.segment], int64(p.off)*8
	b := f.images[p.segment]
	if off+int64(p.length) > int64(len(b)) {
		return nil, false
	}
	rec, ok := recordAt(b[off : off+int64(p.length)])
	ok = ok && len(rec) == int(p.length) && len(rec) >= delayedFixed && kind(rec[12]) == kindDelayed
	return rec, ok && (!f.read[p.segment] || recordValid(rec, g.salt, f.c.log.table))
}
