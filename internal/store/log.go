package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// priority says how far into the reserve of prepared files an append may go.
type priority int

const (
	forCleaner   priority = iota // to the last file: it is what frees others
	forControl                   // acknowledgements, moves, cancels
	forPublisher                 // new messages and definitions
)

// log is the write-ahead log: an open frame at the end of the active segment,
// a committer that makes it durable, and files prepared ahead.
type log struct {
	fs     FS
	dir    string
	o      Options
	table  *crc32.Table
	logger *slog.Logger
	nonce  uint32

	segs    atomic.Pointer[segmentTable]
	durable atomic.Uint64 // LSN
	buffers *buffers
	images  images
	near    images        // pieces of files, see readNear
	kick    chan struct{} // wakes the committer
	want    chan struct{} // wakes the preparer
	lazy    *time.Timer   // kicks when a record has waited long enough
	quit    chan struct{}
	roles   sync.WaitGroup
	bodies  *bodies
	cleaner *cleaner // told when there may be garbage

	filterBytes atomic.Int64 // of the filters of runs that are in memory

	mu    sync.Mutex
	space sync.Cond // on mu: a spare is ready, a commit ended, or the log stopped

	// The fields below are guarded by mu.

	err        error      // set once: nothing more is appended
	order      []*segment // log order, the last is active
	files      []*run     // all run files that are needed
	dirty      []*segment // those with bytes to commit, in log order
	unflushed  int64      // bytes appended and not yet durable
	frame      int64      // offset of the open frame in the active segment, -1 = none
	count      int        // records in it
	lsn        LSN        // of the open frame, or of the next
	nextSeq    uint64
	nextID     uint32
	armed      bool // lazy is running
	waiters    []waiting
	spares     []*segment  // prepared files, used from the front
	stale      []staleFile // files to recycle or remove, in this order
	staleStuck bool        // the last attempt at that failed
	waitSpare  int         // appends that wait for a spare
	full       bool        // the last attempt to create a file failed
	noRuns     bool        // the last run could not be written
	noBodies   bool        // the last file for large bodies could not be made
	defs       map[string]definition
	stats      Stats
}

type waiting struct {
	lsn LSN
	w   Waiter
}

func newLog(fs FS, dir string, o Options) *log {
	l := &log{
		fs: fs, dir: dir, o: o, table: crcTable(), logger: o.Logger,
		buffers: &buffers{size: o.SegmentBytes},
		kick:    make(chan struct{}, 1), want: make(chan struct{}, 1), quit: make(chan struct{}),
		frame: -1, lsn: 1, nextSeq: 1, nextID: 1, defs: map[string]definition{},
	}
	l.space.L = &l.mu
	l.bodies = newBodies(l)
	l.segs.Store(newSegmentTable(nil, nil))
	return l
}

// start begins the background roles; a segment is active.
func (l *log) start() {
	l.lazy = time.AfterFunc(time.Hour, func() { wake(l.kick) })
	l.lazy.Stop()
	l.roles.Go(l.runCommitter)
	l.roles.Go(l.runPreparer)
	wake(l.want)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// tryReserveLocked is reserveLocked for callers that must not wait: errNoRoom
// means that they have to, with awaitRoom, without their other locks.
func (l *log) tryReserveLocked(n int64, records int, who priority) ([]byte, Ref, error) {
	if l.err != nil {
		return nil, Ref{}, l.err
	}
	if !l.hasRoomLocked(n, who) {
		return nil, Ref{}, errNoRoom
	}
	return l.reserveLocked(n, records, who)
}

// hasRoomLocked reports whether n bytes can be placed without waiting.
func (l *log) hasRoomLocked(n int64, who priority) bool {
	g := l.active()
	need := n
	if l.frame < 0 || g.end-l.frame >= int64(l.o.FrameBytes) {
		need += frameHeaderBytes
	}
	return g.end+need <= g.size ||
		(len(l.spares) > l.keep(who) && segmentHeaderBytes+frameHeaderBytes+n <= l.o.SegmentBytes)
}

var errNoRoom = errors.New("reserve: no room yet")

// awaitRoom waits until n bytes may well find room.
func (l *log) awaitRoom(n int64, who priority) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if l.err != nil {
			return l.err
		}
		if l.hasRoomLocked(n, who) {
			return nil
		}
		if err := l.makeRoomLocked(n, who); err != nil {
			return err
		}
	}
}

// reserveLocked makes room for n bytes (records records, already padded) in one
// frame and returns them, of arbitrary content but for the last 8, with their
// place. The frame's LSN is l.lsn
// until the caller unlocks. It may block, with mu released meanwhile.
func (l *log) reserveLocked(n int64, records int, who priority) ([]byte, Ref, error) {
	for {
		if l.err != nil {
			return nil, Ref{}, l.err
		}
		if who == forPublisher && l.refusesLocked() {
			return nil, Ref{}, ErrFull
		}
		g := l.active()
		if l.frame >= 0 && g.end-l.frame >= int64(l.o.FrameBytes) {
			l.closeFrameLocked()
		}
		need := n
		if l.frame < 0 {
			need += frameHeaderBytes
		}
		if g.end+need <= g.size {
			return l.placeLocked(g, n, records)
		}
		if err := l.makeRoomLocked(n, who); err != nil {
			return nil, Ref{}, err
		}
	}
}

func (l *log) placeLocked(g *segment, n int64, records int) ([]byte, Ref, error) {
	before := g.end
	if l.frame < 0 {
		l.frame, l.count = g.end, 0
		g.end += frameHeaderBytes
		l.markDirtyLocked(g)
	}
	buf := (*g.buf.Load())[g.end : g.end+n : g.end+n]
	le.PutUint64(buf[n-8:], 0) // padding
	ref := Ref{File: g.id, Off: uint32(g.end / 8)}
	g.end += n
	l.count += records
	g.records += records
	l.stats.Appended += uint64(records)
	l.stats.AppendedBytes += uint64(n)
	l.unflushed += g.end - before
	if ready := g.size / 8; before < ready && g.end >= ready {
		wake(l.want) // another will be needed
	}
	if l.unflushed >= kickBytes {
		wake(l.kick)
	} else if !l.armed {
		l.armed = true
		l.lazy.Reset(l.o.LazyCommit)
	}
	return buf, ref, nil
}

// kickBytes is how much is gathered at most before the committer is woken even
// though nobody waits: large enough for few system calls, small enough for a
// steady stream to the disk.
const kickBytes = 1 << 20

func (l *log) active() *segment { return l.order[len(l.order)-1] }

func (l *log) markDirtyLocked(g *segment) {
	if k := len(l.dirty); k == 0 || l.dirty[k-1] != g {
		l.dirty = append(l.dirty, g)
	}
}

func (l *log) closeFrameLocked() {
	if l.frame < 0 {
		return
	}
	g := l.active()
	putFrame((*g.buf.Load())[l.frame:], int(g.end-l.frame), l.count, l.lsn)
	l.frame = -1
	l.lsn++
}

// lastLocked returns the LSN of the last frame that has a record.
func (l *log) lastLocked() LSN {
	if l.frame >= 0 {
		return l.lsn
	}
	return l.lsn - 1
}

// makeRoomLocked activates another segment that has room for n bytes, or waits
// for something that may make that possible.
func (l *log) makeRoomLocked(n int64, who priority) error {
	if segmentHeaderBytes+frameHeaderBytes+n > l.o.SegmentBytes {
		return l.oversizeLocked(n)
	}
	if who == forPublisher && l.unflushed >= 2*l.o.SegmentBytes+kickBytes {
		wake(l.kick)
		l.space.Wait()
		return nil
	}
	if len(l.spares) <= l.keep(who) {
		if l.full && (len(l.stale) == 0 || l.staleStuck) {
			return ErrFull // else a file is about to be recycled
		}
		l.waitSpare++
		wake(l.want)
		l.space.Wait()
		l.waitSpare--
		return nil
	}
	g := l.spares[0]
	l.spares = append(l.spares[:0], l.spares[1:]...)
	l.activateLocked(g)
	wake(l.want)
	return nil
}

// keep is how many spares are not for who.
func (l *log) keep(who priority) int {
	switch who {
	case forPublisher:
		return l.o.ReserveSegments
	case forControl:
		return l.o.ReserveSegments / 2
	}
	return 0
}

// oversizeLocked creates and activates a segment for one batch of n bytes that
// no ordinary segment can hold. The lock is released while the file is made.
func (l *log) oversizeLocked(n int64) error {
	id := l.nextID
	l.nextID++
	l.mu.Unlock()
	g, err := l.createSegment(id, segmentHeaderBytes+frameHeaderBytes+n)
	if err == nil {
		l.allocate(g)
	}
	l.mu.Lock()
	if err != nil {
		l.logger.Warn("no room for a large message", "bytes", n, "err", err)
		if isFailed(err) {
			l.failLocked(err)
			return l.err
		}
		return ErrFull
	}
	if l.err != nil {
		g.file.Close()
		return l.err
	}
	l.activateLocked(g)
	return nil
}

// activateLocked seals the active segment and goes on in g.
func (l *log) activateLocked(g *segment) {
	h := segmentHeader{version: formatVersion, id: g.id, nonce: l.nonce, nextSeq: l.nextSeq}
	if len(l.order) > 0 {
		l.closeFrameLocked()
		p := l.active()
		h.prevID, h.prevEnd = p.id, p.end
	}
	l.lsn++ // first LSNs of segments differ even if one stays empty
	h.firstLSN = l.lsn
	g.first = l.lsn
	if g.buf.Load() == nil {
		l.allocate(g)
	}
	h.put(*g.buf.Load(), l.table)
	g.salt = h.salt()
	g.end = segmentHeaderBytes
	l.markDirtyLocked(g)
	l.order = append(l.order, g)
	l.publishLocked()
	wake(l.cleaner.kick)
}

// publishLocked makes the current set of segments and runs visible to readers.
func (l *log) publishLocked() { l.segs.Store(newSegmentTable(l.order, l.files)) }

// evictLocked drops the images of old segments beyond what stays resident. A
// segment in which delayed entries wait is kept for the run that will be written
// of it, while there is room for that.
func (l *log) evictLocked() {
	budget := int64(l.o.ResidentSegments) * l.o.SegmentBytes
	waiting := l.o.FreshBytes + l.o.RunBytes
	for i := len(l.order) - 2; i >= 0; i-- {
		g := l.order[i]
		if g.buf.Load() == nil || g.flushed < g.end {
			continue
		}
		budget -= g.size
		if g.waits.Load() {
			waiting -= g.size
		}
		if budget >= 0 || (g.waits.Load() && waiting >= 0) {
			continue
		}
		g.buf.Store(nil)
	}
}

// failure returns why nothing is appended any more, or nil.
func (l *log) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *log) path(name string) string { return filepath.Join(l.dir, name) }

// failLocked stops the log for good.
func (l *log) failLocked(err error) {
	if l.err != nil && !errors.Is(l.err, ErrClosed) {
		return
	}
	l.err = err
	if !errors.Is(err, ErrClosed) {
		l.logger.Error("store stopped", "err", err)
	}
	l.space.Broadcast()
	wake(l.kick)
	wake(l.cleaner.kick) // it tells those who wait for a run
}

// stop ends the roles; l.err is set already.
func (l *log) stop() {
	close(l.quit)
	l.roles.Wait()
	l.lazy.Stop()
}

// release tells those who still wait and closes all files.
func (l *log) release() {
	l.mu.Lock()
	told := l.waiters
	l.waiters = nil
	for _, g := range l.order {
		g.retired.Store(true)
		g.file.Close()
	}
	for _, g := range l.spares {
		g.file.Close()
	}
	for _, f := range l.stale {
		f.seg.file.Close()
	}
	for _, r := range l.files {
		r.retired.Store(true)
		r.file.Close()
	}
	l.mu.Unlock()
	for _, w := range told {
		w.w.Committed(l.Durable(), ErrClosed)
	}
}

func (l *log) sizesLocked() (size, live int64) {
	for _, g := range l.order {
		size += g.size
		live += g.liveBytes()
	}
	return size, live
}

// neededLocked returns how much of the disk what the cleaner can give back by
// emptying segments is part of, and how much of that is needed: the log, and those
// parts of runs that are consumed but for messages that are still in queues.
func (l *log) neededLocked() (size, live int64) {
	size, live = l.sizesLocked()
	for _, r := range l.files {
		if held := l.heldLocked(r); held > 0 {
			size += max(held, int64(r.state.done)*8-r.punched)
			live += held
		}
	}
	return size, live
}

// heldLocked returns the bytes of a run that messages in queues still need: at most
// these, and none once every move out of it is gone from the log, because what was
// still needed then was copied when its move went.
func (l *log) heldLocked(r *run) int64 {
	if len(l.order) > 0 && l.order[0].first > r.lastMove {
		return 0
	}
	return r.live.Load() - int64(r.state.total().Bytes)
}

// runsHold reports whether messages in queues need any run.
func (l *log) runsHold() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.files, func(r *run) bool { return l.heldLocked(r) > 0 })
}

func failed(op string, err error) error { return &FailedError{Op: op, Err: err} }

// allocate gives the segment an image.
func (l *log) allocate(g *segment) {
	b := l.buffers.get(g.size)
	g.buf.Store(&b)
}

// createSegment makes a new file of its own; durable as a directory entry.
func (l *log) createSegment(id uint32, size int64) (*segment, error) {
	name := segmentName(id)
	f, err := l.fs.Create(l.path(name), size)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		f.Close()
		return nil, failed("sync directory of the", err)
	}
	return &segment{id: id, name: name, file: f, size: size}, nil
}
