package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
)

// Open locks dir, replays the log and returns the store. A directory in use is
// ErrLocked, one of a newer format a *VersionError.
func Open(fs FS, dir string, o Options) (*Store, error) {
	lock, err := fs.Lock(dir)
	if err != nil {
		return nil, fmt.Errorf("open store in %s: %w", dir, err)
	}
	s, err := open(fs, dir, o.withDefaults())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store in %s: %w", dir, err), lock.Close())
	}
	s.lock = lock
	return s, nil
}

func open(fs FS, dir string, o Options) (*Store, error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, scratchPrefix) {
			if err := fs.Remove(dir + "/" + name); err != nil {
				return nil, fmt.Errorf("remove scratch file: %w", err)
			}
		}
	}
	l := newLog(fs, dir, o)
	s := &Store{log: l}
	s.index = newIndex()
	s.bodies = l.bodies
	s.memory = newMemory(fs, dir, o)
	s.cleaner = newCleaner(s)
	l.cleaner = s.cleaner
	r := &replay{log: l, out: &Recovery{}, nextSeq: 1}
	if err := s.recover(r, names); err != nil {
		if s.unread != nil {
			s.unread.Close()
		}
		for _, c := range r.files {
			c.seg.file.Close()
		}
		for _, f := range l.files {
			f.file.Close()
		}
		s.bodies.release()
		return nil, err
	}
	l.start()
	s.memory.start()
	s.bodies.start()
	s.cleaner.start()
	return s, nil
}

// recover replays and opens a fresh segment for what comes:
//
//  1. find the files and their order;
//  2. open the runs and replay the log, which tells what of them is pending;
//  3. sync the last one: after a kill, unlike after a power cut, what was read
//     from it may be in the page cache only; remove runs that it does not need;
//  4. hand unused files to the log, under new names;
//  5. begin a new segment, whose header says where the log ended.
func (s *Store) recover(r *replay, names []string) error {
	state, err := s.read(r, names)
	if err != nil {
		return err
	}
	if k := len(r.used); k > 0 {
		if err := r.used[k-1].seg.file.Datasync(); err != nil {
			return fmt.Errorf("sync segment %s: %w", r.used[k-1].seg.name, err)
		}
	}
	if err := s.removeUnnamed(state); err != nil {
		return err
	}
	l := s.log
	l.lsn = r.maxLSN + 1
	l.durable.Store(uint64(r.maxLSN))
	l.nextSeq = max(r.nextSeq, state.nextSeq)
	s.damages.Store(int64(len(r.out.Damages)))
	s.recovered.Store(r.out)
	r.tell()
	return s.begin(r)
}

// read is the part of recovery that changes nothing on the disk: steps 1 and 2.
func (s *Store) read(r *replay, names []string) (*rebuild, error) {
	l := s.log
	if err := r.load(names); err != nil {
		return nil, err
	}
	if len(r.used) == 0 {
		l.nonce = freshNonce()
	}
	r.dropEmpty()
	for _, c := range r.used {
		l.order = append(l.order, c.seg)
	}
	state := newRebuild(l, s.index)
	s.unread = state.gather.scratch
	if err := state.loadRuns(names); err != nil {
		return nil, err
	}
	if err := s.bodies.load(names); err != nil {
		return nil, err
	}
	l.publishLocked()
	r.visit = state.apply
	r.begin = func(lsn LSN) { state.lsn = lsn }
	if err := r.run(); err != nil {
		return nil, err
	}
	for _, c := range r.used {
		g := c.seg
		g.end, g.taken, g.flushed = c.end, c.end, c.end
		g.first = c.header.firstLSN
	}
	var oldest LSN
	if len(r.used) > 0 {
		oldest = r.used[0].header.firstLSN
	}
	if err := state.adopt(r.out.Damages, oldest); err != nil {
		return nil, err
	}
	r.out.Queues, r.out.entries = state.finish()
	r.out.Damages = append(r.out.Damages, state.damages...)
	r.out.Definitions = sortedDefinitions(l.defs)
	return state, nil
}

// removeUnnamed removes the run files that the log does not tell of: they were
// never finished, or are not needed any more. What says so is durable by now.
func (s *Store) removeUnnamed(state *rebuild) error {
	for _, r := range state.unnamed {
		if err := s.log.fs.Remove(s.log.path(r)); err != nil {
			return fmt.Errorf("remove run: %w", err)
		}
	}
	if len(state.unnamed) == 0 {
		return nil
	}
	if err := s.log.fs.SyncDir(s.log.dir); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// dropEmpty sets aside segments that were begun but never got a frame, unless
// another follows them.
func (r *replay) dropEmpty() {
	follows := map[uint32]bool{}
	for _, c := range r.used {
		follows[c.header.prevID] = true
	}
	kept := r.used[:0]
	for i, c := range r.used {
		last := i == len(r.used)-1
		if last && c.intact && !follows[c.seg.id] && r.isEmpty(c) {
			continue
		}
		kept = append(kept, c)
	}
	r.used = kept
}

func (r *replay) isEmpty(c *scanned) bool {
	b, err := r.content(c)
	if err != nil {
		return false
	}
	at, _ := r.nextFrame(c, b, segmentHeaderBytes, 0)
	return at < 0
}

func (r *replay) tell() {
	for _, d := range r.out.Damages {
		r.log.logger.Error("damage skipped", "file", d.File, "offset", d.Offset,
			"bytes", d.Length, "reason", d.Reason, "records", d.Records, "control", d.Control)
	}
	if c := r.out.Cut; c != nil {
		r.log.logger.Info("torn tail cut", "file", c.File, "offset", c.Offset)
	}
}

func (s *Store) begin(r *replay) error {
	l := s.log
	used := map[*segment]bool{}
	for _, g := range l.order {
		used[g] = true
	}
	recycled := false
	for _, c := range r.files {
		g := c.seg
		switch {
		case used[g]:
		case g.size != l.o.SegmentBytes || len(l.spares) > l.o.ReserveSegments+2:
			l.stale = append(l.stale, staleFile{seg: g})
		default:
			name := segmentName(l.nextID)
			if err := l.fs.Reuse(l.path(g.name), l.path(name)); err != nil {
				return fmt.Errorf("recycle segment: %w", err)
			}
			g.id, g.name = l.nextID, name
			l.nextID++
			l.spares = append(l.spares, g)
			recycled = true
		}
	}
	if recycled {
		if err := l.fs.SyncDir(l.dir); err != nil {
			return fmt.Errorf("sync directory: %w", err)
		}
	}
	if len(l.spares) == 0 {
		g, err := l.createSegment(l.nextID, l.o.SegmentBytes)
		if err != nil {
			return err
		}
		l.nextID++
		l.spares = append(l.spares, g)
		r.files = append(r.files, &scanned{seg: g})
	}
	g := l.spares[0]
	l.spares = l.spares[1:]
	l.activateLocked(g)
	return nil
}

func freshNonce() uint32 {
	var b [4]byte
	rand.Read(b[:])
	return le.Uint32(b[:])
}
