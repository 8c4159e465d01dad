package store

import (
	"fmt"
	"maps"
	"slices"
)

// loadBodies opens all body files there are. Which bodies of them are needed the
// log tells.
func (b *bodies) load(names []string) error {
	l := b.log
	for _, name := range names {
		id, ok := parseBodyName(name)
		if !ok {
			continue
		}
		l.nextID = max(l.nextID, id+1)
		f := newBodyFile(id)
		var err error
		if f.file, err = l.fs.Open(l.path(name)); err != nil {
			return fmt.Errorf("open body file: %w", err)
		}
		b.files[id] = f
		if f.size, err = f.file.Size(); err != nil {
			return fmt.Errorf("open body file: %w", err)
		}
		f.full, f.end = true, f.size
		b.found = append(b.found, f)
		if err := f.checkVersion(l); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion reads the header, which nothing else depends on.
func (f *bodyFile) checkVersion(l *log) error {
	head := make([]byte, min(segmentHeaderBytes, f.size))
	if err := readFull(f.file, head, 0); err != nil {
		return fmt.Errorf("read header of %s: %w", f.name, err)
	}
	if h, ok := parseHeader(bodyMagic, head, l.table); ok && h.version > formatVersion {
		return &VersionError{File: f.name, Got: h.version, Want: formatVersion}
	}
	return nil
}

// foundLocked returns a body that the log names, or nil if its file does not have
// it. Nothing else is running yet.
func (b *bodies) foundLocked(ref BodyRef) *body {
	f := b.files[ref.File]
	if f == nil {
		return nil
	}
	y := f.bodies[ref.Block]
	if y == nil {
		y = &body{ref: ref, file: f}
		if y.end() > f.size {
			return nil
		}
		f.bodies[ref.Block] = y
	}
	return y
}

// claimedBodies are the large bodies that replay met.
type claimedBodies struct {
	queued  map[Target]BodyRef
	waiting map[uint64]claimedBody
}

type claimedBody struct {
	claimRecord
	in     uint32
	record int64 // bytes of a claim record, 0 for another
}

func newClaimedBodies() claimedBodies {
	return claimedBodies{map[Target]BodyRef{}, map[uint64]claimedBody{}}
}

func (c *claimedBodies) queue(targets []Target, ref BodyRef) {
	for _, t := range targets {
		c.queued[t] = ref
	}
}

// claimRecord takes in a kindClaim record.
func (s *rebuild) claimRecord(r *reader, ref Ref) {
	c := r.claimRecord()
	if !r.bad {
		s.seenID(c.ref.File)
		s.large.waiting[c.seq] = claimedBody{c, ref.File, claimBytes}
	}
}

// claimQueued claims the bodies of all messages that the log put into queues. Which
// of them have been settled is not known before all is read; the owner will tell.
func (s *rebuild) claimQueued() {
	for t, ref := range s.large.queued {
		if s.noQueue[t.Queue] {
			continue
		}
		if y := s.bodies.foundLocked(ref); y != nil {
			s.bodies.claimLocked(y, t)
		}
	}
}

// claimWaiting claims the bodies of entries that wait, and reports what is missing.
func (s *rebuild) claimWaiting() {
	missing := map[uint32]int{}
	for seq, c := range s.large.waiting {
		if s.noEx[c.exchange] {
			continue
		}
		y := s.bodies.foundLocked(c.ref)
		if y == nil {
			missing[c.ref.File]++
			continue
		}
		s.bodies.waitLocked(y, seq, c.exchange, c.in)
		if g := s.log.segment(c.in); c.record > 0 && g != nil {
			s.bodies.waits[seq].claimIn = c.in
			g.live.Add(c.record)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(missing)) {
		s.damages = append(s.damages, Damage{
			File: bodyName(id), Reason: "bodies are missing", Records: missing[id],
		})
	}
}
