package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Flushing moves delayed entries that wait long from the log into a run. It is
// work of the cleaner's goroutine, so that no segment is emptied meanwhile:
//
//  1. choose entries of sealed, durable segments that are not due soon;
//  2. sort them and write the run; sync file and directory;
//  3. let the entries be served from the run, piece by piece: each piece is one
//     record of the log and one change of the index, under both locks.
//
// Nothing refers to the run before step 3, so until then a crash leaves a file
// that is deleted, and an entry is in the run exactly from the record that says
// so. What ended since step 1 is just not taken over.

const (
	coverPiece = 512 // entries per record of step 3
	writePiece = 1 << 20
	syncPiece  = 4 << 20
)

// flushed is an entry on its way into a run.
type flushed struct {
	entry
	to Ref // in the run
}

// flushDue reports whether enough has gathered.
func (c *cleaner) flushDue() bool {
	x := c.s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.fresh >= c.log.o.RunBytes
}

// flush writes one run, if there is enough for one.
func (c *cleaner) flush() error {
	x, l := c.s.index, c.log
	segs := c.sealed()
	defer func() {
		x.mu.Lock()
		x.flushing = false
		x.calm.Broadcast()
		x.mu.Unlock()
	}()
	x.mu.Lock()
	x.fresh, x.flushing = 0, true
	bound := x.now + l.o.Near.Milliseconds()
	x.mu.Unlock()
	list, bytes := c.choosePending(segs, bound)
	if bytes < l.o.RunBytes/4 || len(list) == 0 {
		return nil
	}
	r, err := c.writeRun(segs, list)
	if r == nil || err != nil {
		return err
	}
	return c.takeOver(r, list)
}

// sealed returns the segments that are durable to their end, by id.
func (c *cleaner) sealed() map[uint32]*segment {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	segs := map[uint32]*segment{}
	for _, g := range l.order[:max(0, len(l.order)-1)] {
		if g.flushed >= g.end {
			segs[g.id] = g
		}
	}
	return segs
}

// choosePending collects what waits in these segments and is due after bound.
// The index lock is held for a part of the table at a time: what changes
// afterwards is noticed in takeOver.
func (c *cleaner) choosePending(segs map[uint32]*segment, bound int64) (list []flushed, bytes int64) {
	x := c.s.index
	for i := range x.table.shards {
		x.mu.Lock()
		for j := range x.table.shards[i].slots {
			e := &x.table.shards[i].slots[j]
			if e.seq == 0 || e.inFlight() || e.due>>1 <= bound || segs[e.file] == nil || x.isDropped(e.exchange) {
				continue
			}
			list = append(list, flushed{entry: *e})
			bytes += align(int64(e.length))
		}
		x.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b flushed) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.seq, b.seq))
	})
	return list, bytes
}

// writeRun writes the records of list, with the keys that the entries have now,
// and makes the file durable. Records that cannot be read are left out. It
// returns nil if the file could not be written: there is nothing to undo.
func (c *cleaner) writeRun(segs map[uint32]*segment, list []flushed) (*run, error) {
	l := c.log
	l.mu.Lock()
	id := l.nextID
	l.nextID++
	l.mu.Unlock()
	w := &runWriter{log: l, segs: segs, images: map[uint32][]byte{}}
	w.run = &run{segment: &segment{id: id, name: runName(id)}, left: map[uint32]Pending{}}
	w.run.segment.run = w.run
	defer w.release()
	if !w.plan(list) {
		return nil, nil
	}
	err := w.write(list)
	if err == nil {
		return w.run, nil
	}
	if isFailed(err) {
		l.mu.Lock()
		l.failLocked(err)
		l.mu.Unlock()
		return nil, err
	}
	l.logger.Warn("cannot write a run", "err", err)
	if w.run.file != nil {
		w.run.file.Close()
		if err := l.fs.Remove(l.path(w.run.name)); err != nil {
			l.logger.Warn("cannot remove an unfinished run", "err", err)
		}
	}
	return nil, nil
}

type runWriter struct {
	log    *log
	run    *run
	segs   map[uint32]*segment
	images map[uint32][]byte
	mapped [][]byte // those of images to be unmapped
	view   messageView
	buf    []byte
	at     int64 // of buf in the file
	synced int64
}

// plan gives every record its place. Only then is the size of the file known.
func (w *runWriter) plan(list []flushed) bool {
	at := int64(0)
	r := w.run
	for i := range list {
		f := &list[i]
		rec := w.record(f, true)
		if rec == nil {
			continue // to stays zero: not in the run
		}
		if at >= 1<<34 {
			break
		}
		f.to = Ref{File: r.id, Off: uint32(at / 8), Len: uint32(len(rec))}
		key := f.key()
		if k := len(r.blocks); k == 0 || int64(f.to.Off-r.blocks[k-1].off)*8 >= w.log.o.RunBlockBytes {
			r.blocks = append(r.blocks, block{key, f.to.Off})
		}
		r.note(key)
		at += align(int64(len(rec)))
	}
	r.end = uint32(at / 8)
	r.size = at + r.tailBytes()
	return at > 0
}

// image returns the content of a segment.
func (w *runWriter) image(id uint32) []byte {
	if b, ok := w.images[id]; ok {
		return b
	}
	g := w.segs[id]
	var b []byte
	if p := g.buf.Load(); p != nil {
		b = *p
	} else {
		b = w.outside(g.size)
		if err := readFull(g.file, b, 0); err != nil {
			w.log.logger.Warn("cannot read a segment", "file", g.name, "err", err)
			b = nil
		}
	}
	w.images[id] = b
	return b
}

// outside returns memory outside the garbage collector's heap, which would take
// two cycles to give it back.
func (w *runWriter) outside(n int64) []byte {
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return make([]byte, n)
	}
	w.mapped = append(w.mapped, b)
	return b
}

// release gives back the images; nothing refers to them any more.
func (w *runWriter) release() {
	w.images = nil
	for _, b := range w.mapped {
		unix.Munmap(b)
	}
}

// record returns the record of an entry as it goes into the run: as it is in the
// log, unless the entry got another due since. It is checked once.
func (w *runWriter) record(f *flushed, check bool) []byte {
	g, off := w.segs[f.file], int64(f.off)*8
	b := w.image(f.file)
	if off+int64(f.length) > int64(len(b)) {
		return nil
	}
	rec, ok := recordAt(b[off : off+int64(f.length)])
	if !ok || len(rec) != int(f.length) || len(rec) < delayedFixed ||
		(check && !recordValid(rec, g.salt, w.log.table)) {
		return nil // damaged: the cleaner reports it
	}
	if int64(le.Uint64(rec[delayedSeqOffset-8:])) == f.key().Due {
		return rec
	}
	if !parseMessage(rec, &w.view) {
		return nil
	}
	return rekeyed(rec, &w.view, f.key(), g.salt, w.log)
}

// rekeyed returns the record under another key, sealed.
func rekeyed(rec []byte, v *messageView, key Key, salt uint32, l *log) []byte {
	p := messageParts{kind: kindDelayed, flags: flagCopy, key: key, origin: v.Key.Due}
	if v.flags&flagOrigin != 0 {
		p.origin = v.origin
	}
	if p.origin != key.Due {
		p.flags |= flagOrigin
	}
	size, err := messageSize(kindDelayed, &v.Message, 0, p.flags&flagOrigin != 0)
	if err != nil {
		return nil
	}
	b := make([]byte, size)
	putMessage(b, &v.Message, &p)
	sealRecord(b, salt, l.table)
	return b
}

func (w *runWriter) write(list []flushed) error {
	l, r := w.log, w.run
	f, err := l.fs.Create(l.path(r.name), r.size)
	if err != nil {
		return fmt.Errorf("create run: %w", err)
	}
	r.file = f
	for i := range list {
		if list[i].to.Len == 0 {
			continue
		}
		rec := w.record(&list[i], false)
		if len(rec) != int(list[i].to.Len) {
			return errors.New("record changed while it was copied")
		}
		w.buf = appendPad(append(w.buf, rec...))
		if err := w.drain(writePiece); err != nil {
			return err
		}
	}
	w.buf = r.appendTail(w.buf, l)
	if err := w.drain(0); err != nil {
		return err
	}
	if err := f.Datasync(); err != nil {
		return failed("sync run of the", err)
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return failed("sync directory of the", err)
	}
	return nil
}

// drain writes out if there is more than limit, and syncs every few MiB, so that
// the log's syncs never find much to do before them.
func (w *runWriter) drain(limit int) error {
	if len(w.buf) <= limit {
		return nil
	}
	if n, err := w.run.file.WriteAt(w.buf, w.at); err != nil || n < len(w.buf) {
		return fmt.Errorf("write run: %w", orShort(err))
	}
	w.at += int64(len(w.buf))
	w.buf = w.buf[:0]
	if w.at-w.synced >= syncPiece {
		w.synced = w.at
		if err := w.run.file.Datasync(); err != nil {
			return failed("sync run of the", err)
		}
	}
	w.log.mu.Lock()
	err := w.log.err
	w.log.mu.Unlock()
	return err
}

// takeOver is step 3. Without room in the log it stops, and the rest stays where
// it is.
func (c *cleaner) takeOver(r *run, list []flushed) error {
	x, l := c.s.index, c.log
	x.mu.Lock()
	x.runs = append(x.runs, r)
	x.publishLocked()
	x.mu.Unlock()
	var err error
	for len(list) > 0 && err == nil {
		n := min(coverPiece, len(list))
		err = c.coverPiece(r, list[:n])
		list = list[n:]
	}
	x.mu.Lock()
	x.sweepLocked()
	x.mu.Unlock()
	l.mu.Lock()
	l.stats.FlushedBytes += uint64(r.size)
	l.mu.Unlock()
	return err
}

func (c *cleaner) coverPiece(r *run, list []flushed) error {
	x, l := c.s.index, c.log
	x.mu.Lock()
	defer x.mu.Unlock()
	cov := cover{run: r.id, left: map[uint32]Pending{}}
	kept := list[:0]
	for _, f := range list {
		e := x.table.get(f.seq)
		if f.to.Len == 0 || e == nil || *e != f.entry || x.isDropped(e.exchange) {
			continue // ended, popped, re-timed or copied meanwhile
		}
		kept = append(kept, f)
		cov.rest = cov.rest.add(recordSpan(f.to))
		cov.seqs = append(cov.seqs, f.seq)
		p := cov.left[f.exchange]
		cov.left[f.exchange] = Pending{p.Count + 1, p.Bytes + uint64(f.to.Len)}
	}
	if len(kept) == 0 {
		return nil
	}
	sortedSeqs(cov.seqs)
	rec := appendRecord(nil, kindCover, 0, cov.append)
	l.mu.Lock()
	buf, _, err := l.reserveLocked(int64(len(rec)), 1, forCleaner)
	if err != nil {
		l.mu.Unlock()
		return err
	}
	copy(buf, rec)
	l.stats.Flushed += uint64(len(kept))
	l.mu.Unlock()

	for _, f := range kept {
		e := f.entry
		x.relocateLocked(&e, f.to) // the counters, if the length changed
		x.table.remove(f.seq)
		x.gone(f.ref())
	}
	st := runState{r.rest, r.left}
	st.cover(&cov)
	r.rest, r.left = st.rest, st.left
	for _, p := range cov.left {
		r.live.Add(int64(p.Bytes))
	}
	r.next = min(r.next, max(0, r.blockOf(kept[0].to.Off)))
	x.boundLocked()
	return nil
}
