package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// replay reads the segments of a directory in log order and hands every intact
// record to a rebuild.
//
// Which damage is which: a frame says up to which LSN the log was durable when
// it was written. A bad frame at or below what a later valid frame says was
// durable is corruption: it is reported and skipped. A bad frame above that was
// never confirmed: it is the torn tail, cut together with all that follows,
// because unsynced sectors reach the disk in any order. All segments but the
// last were synced in full before the next was begun, and the next one's header
// says where they end.
type replay struct {
	log   *log
	files []*scanned // every log file
	used  []*scanned // those that hold part of the log, in log order
	out   *Recovery

	// visit takes in one record and reports whether it makes sense.
	visit func(rec []byte, ref Ref) bool
	// begin, if set, is called with the LSN of the frame before its records.
	begin func(LSN)

	maxLSN  LSN
	nextSeq uint64
	buf     []byte
}

// scanned is one log file found at Open.
type scanned struct {
	seg    *segment
	header segmentHeader
	intact bool // the header
	frames int
	start  int64 // of the first frame
	end    int64
}

// load opens and classifies the log files.
func (r *replay) load(names []string) error {
	for _, name := range names {
		id, ok := parseSegmentName(name)
		if !ok {
			continue
		}
		f, err := r.log.fs.Open(r.log.path(name))
		if err != nil {
			return fmt.Errorf("open segment: %w", err)
		}
		g := &segment{id: id, name: name, file: f, warm: true}
		r.files = append(r.files, &scanned{seg: g})
		if g.size, err = f.Size(); err != nil {
			return fmt.Errorf("open segment: %w", err)
		}
	}
	for _, c := range r.files {
		if err := r.readHeader(c); err != nil {
			return err
		}
	}
	for _, c := range r.files {
		if err := r.classify(c); err != nil {
			return err
		}
	}
	slices.SortFunc(r.used, func(a, b *scanned) int { return cmp.Compare(a.header.firstLSN, b.header.firstLSN) })
	return nil
}

func (r *replay) readHeader(c *scanned) error {
	b := make([]byte, min(segmentHeaderBytes, c.seg.size))
	if _, err := c.seg.file.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read segment header of %s: %w", c.seg.name, err)
	}
	h, ok := parseSegmentHeader(b, r.log.table)
	if !ok || h.id != c.seg.id {
		return nil // never written, damaged, or left from an earlier use
	}
	if h.version > formatVersion {
		return &VersionError{File: c.seg.name, Got: h.version, Want: formatVersion}
	}
	c.header, c.intact, c.start = h, true, segmentHeaderBytes
	r.log.nonce = h.nonce
	return nil
}

// classify finds out whether the file holds part of the log. A file whose
// header is bad may still: its frames tell.
func (r *replay) classify(c *scanned) error {
	c.seg.salt = c.seg.id ^ r.log.nonce
	r.log.nextID = max(r.log.nextID, c.seg.id+1)
	if c.intact {
		r.maxLSN = max(r.maxLSN, c.header.firstLSN)
		r.nextSeq = max(r.nextSeq, c.header.nextSeq)
		r.used = append(r.used, c)
		return nil
	}
	b, err := r.content(c)
	if err != nil {
		return err
	}
	if len(r.used) == 0 && r.log.nonce == 0 && len(b) > segmentHeaderBytes+frameHeaderBytes {
		// No header gave the nonce; the first frame of the file may.
		salt := le.Uint32(b[segmentHeaderBytes+8:])
		if _, ok := frameAt(b[segmentHeaderBytes:], salt, r.log.table); ok {
			c.seg.salt, r.log.nonce = salt, salt^c.seg.id
		}
	}
	if at, h := r.nextFrame(c, b, segmentHeaderBytes, 0); at >= 0 && r.provenDurable(c, b, at, h) {
		c.header = segmentHeader{id: c.seg.id, nonce: r.log.nonce, firstLSN: h.lsn}
		c.start = at
		r.used = append(r.used, c)
	}
	return nil
}

// provenDurable reports whether the frames of a file without a header were ever
// confirmed: one of them says that the first was durable, or there is a later
// file. Else they and the header are one torn first write.
func (r *replay) provenDurable(c *scanned, b []byte, at int64, first frameHeader) bool {
	if r.syncedAfter(c, b, at) >= first.lsn {
		return true
	}
	for _, o := range r.files {
		if o.intact && o.header.prevID == c.seg.id {
			return true
		}
	}
	return false
}

func (r *replay) content(c *scanned) ([]byte, error) {
	r.buf = sized(r.buf, int(c.seg.size))
	if _, err := c.seg.file.ReadAt(r.buf, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read segment %s: %w", c.seg.name, err)
	}
	return r.buf, nil
}

// run replays everything.
func (r *replay) run() error {
	for i := range r.used {
		if err := r.runOne(i); err != nil {
			return err
		}
	}
	return nil
}

// runOne replays one of the used files.
func (r *replay) runOne(i int) error {
	b, err := r.content(r.used[i])
	if err != nil {
		return err
	}
	var next *scanned
	if i+1 < len(r.used) {
		next = r.used[i+1]
	}
	r.checkChain(i)
	r.segment(r.used[i], next, b)
	return nil
}

// checkChain reports a segment that is missing between two others.
func (r *replay) checkChain(i int) {
	if i == 0 || !r.used[i].intact {
		return
	}
	want, got := r.used[i].header.prevID, r.used[i-1].seg.id
	if want != got && want != 0 && r.used[i-1].frames > 0 {
		r.damage(Damage{File: segmentName(want), Reason: "segment is missing", Control: true})
	}
}

func (r *replay) damage(d Damage) { r.out.Damages = append(r.out.Damages, d) }

// segment replays one file. If the next one's header names it, the log goes
// exactly to the offset given there; in the last one the tail may be torn.
func (r *replay) segment(c, next *scanned, b []byte) {
	limit, last := int64(len(b)), next == nil
	exact := next != nil && next.intact && next.header.prevID == c.seg.id
	if exact {
		limit = min(limit, max(next.header.prevEnd, segmentHeaderBytes))
	}
	if !c.intact {
		r.damage(Damage{
			File: c.seg.name, Length: c.start, Reason: "segment header",
			Control: c.start > segmentHeaderBytes,
		})
	}
	pos, want := c.start, c.header.firstLSN
	c.end, want = r.scan(c, b, pos, limit, want, exact, last)
	r.maxLSN = max(r.maxLSN, want)
}

// scan visits the records from pos to limit, or to where the log ends if the
// limit is not exact. It returns where that is and the next LSN.
func (r *replay) scan(c *scanned, b []byte, pos, limit int64, want LSN, exact, last bool) (int64, LSN) {
	for pos < limit {
		h, ok := frameAt(b[pos:limit], c.seg.salt, r.log.table)
		ok = ok && h.lsn == want
		if r.begin != nil {
			r.begin(max(want, h.lsn))
		}
		if ok && frameIntact(b[pos:], h, c.seg.salt, r.log.table) {
			r.frame(c, b, pos, h)
			pos += int64(h.length)
			want = h.lsn + 1
			continue
		}
		to, after := r.nextFrame(c, b[:limit], pos+8, want)
		if !exact && r.isEnd(c, last, b[:limit], pos, want, to) {
			break
		}
		switch {
		case ok:
			to, after.lsn = pos+int64(h.length), want+1
			r.salvage(c, b, pos, to, h.count)
		case to < 0:
			to, after.lsn = limit, want
			r.salvage(c, b, pos, to, 0)
		default:
			r.salvage(c, b, pos, to, 0)
		}
		pos, want = to, after.lsn
	}
	return pos, want
}

// isEnd decides whether the log ends at pos, where the frame want should be.
func (r *replay) isEnd(c *scanned, last bool, b []byte, pos int64, want LSN, to int64) bool {
	if to < 0 && !last {
		return true // the next segment's header is damaged and does not tell
	}
	if !last {
		return false
	}
	if r.syncedAfter(c, b, pos) >= want {
		return false
	}
	torn := to >= 0 || (pos+frameHeaderBytes <= int64(len(b)) && le.Uint32(b[pos+8:]) == c.seg.salt)
	if torn {
		r.out.Cut = &Cut{File: c.seg.name, Offset: pos}
	}
	// Nothing may ever be numbered like what is cut off.
	for at, h := r.nextFrame(c, b, pos, 0); at >= 0; at, h = r.nextFrame(c, b, at+8, 0) {
		r.maxLSN = max(r.maxLSN, h.lsn+1)
	}
	return true
}

// syncedAfter returns the highest "durable" of the valid frames from pos on.
func (r *replay) syncedAfter(c *scanned, b []byte, pos int64) LSN {
	var synced LSN
	for at, h := r.nextFrame(c, b, pos, 0); at >= 0; at, h = r.nextFrame(c, b, at+8, 0) {
		synced = max(synced, h.synced)
	}
	return synced
}

// nextFrame looks for a frame header with an LSN above after, from pos on.
func (r *replay) nextFrame(c *scanned, b []byte, pos int64, after LSN) (int64, frameHeader) {
	for ; pos+frameHeaderBytes <= int64(len(b)); pos += 8 {
		if le.Uint32(b[pos+8:]) != c.seg.salt {
			continue
		}
		if h, ok := frameAt(b[pos:], c.seg.salt, r.log.table); ok && h.lsn > after {
			return pos, h
		}
	}
	return -1, frameHeader{}
}

func (r *replay) frame(c *scanned, b []byte, pos int64, h frameHeader) {
	c.frames++
	r.out.Frames++
	o := pos + frameHeaderBytes
	for range h.count {
		rec, ok := recordAt(b[o:])
		invariant(ok, "record of an intact frame")
		r.record(c, rec, o)
		o += align(int64(len(rec)))
	}
}

func (r *replay) record(c *scanned, rec []byte, off int64) {
	r.out.Records++
	ref := Ref{File: c.seg.id, Off: uint32(off / 8), Len: uint32(len(rec))}
	if !r.visit(rec, ref) {
		r.damage(Damage{
			File: c.seg.name, Offset: off, Length: int64(len(rec)), Records: 1,
			Reason: "record cannot be decoded", Control: kind(rec[12]).isControl(),
		})
	}
}

// salvage serves the intact records of a damaged stretch, except those whose
// atomic group is not complete, and reports the rest. count is how many there
// should be, 0 = not known.
func (r *replay) salvage(c *scanned, b []byte, from, to int64, count int) {
	c.frames++
	d := Damage{File: c.seg.name, Offset: from, Reason: "checksum mismatch", Control: true}
	saved, found := 0, false
	var group []int64 // offsets of an atomic group that is not complete yet
	whole := true     // false after a bad record: what continues its group is dropped
	for o := from; o+recordHeaderBytes <= to; {
		rec, ok := recordAt(b[o:to])
		if !ok || !recordValid(rec, c.seg.salt, r.log.table) {
			if count > 0 && o > from && !found {
				d.Offset, found = o, true // the frame's header is good
			}
			group, whole = group[:0], false
			o += 8
			continue
		}
		if rec[13]&flagCont == 0 {
			group, whole = group[:0], true
		}
		group = append(group, o)
		o += align(int64(len(rec)))
		if whole && rec[13]&flagMore == 0 {
			for _, g := range group {
				rec, _ := recordAt(b[g:to])
				r.record(c, rec, g)
			}
			saved += len(group)
			group = group[:0]
		}
	}
	d.Length = to - d.Offset
	if count > 0 {
		d.Records = count - saved
	}
	r.damage(d)
}
