package store

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
)

// Report is what Check found in a directory: counts of what a start would find
// there, and all damage.
type Report struct {
	Segments    int                 `json:"segments"` // files that hold part of the log
	LogBytes    int64               `json:"logBytes"` // of these files
	Spares      int                 `json:"spares"`   // log files that hold nothing
	Runs        int                 `json:"runs"`
	RunBytes    int64               `json:"runBytes"`
	BodyFiles   int                 `json:"bodyFiles"`
	Bodies      int                 `json:"bodies"`            // large ones that are needed
	BodyBytes   int64               `json:"bodyBytes"`         // of these
	Unnamed     []string            `json:"unnamed,omitempty"` // run files that the log does not tell of; the next start removes them
	Frames      uint64              `json:"frames"`
	Records     uint64              `json:"records"` // of the log
	RunRecords  uint64              `json:"runRecords"`
	Pending     Pending             `json:"pending"`
	Exchanges   map[uint32]Pending  `json:"exchanges"` // pending, by exchange incarnation
	Queues      map[uint32]QueueSum `json:"queues"`    // ready, by queue
	Definitions int                 `json:"definitions"`
	Cut         *Cut                `json:"cut,omitempty"` // the torn tail; no damage
	Damages     []Damage            `json:"damages"`
}

// QueueSum sums up what is ready in one queue.
type QueueSum struct {
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"` // of the records and large bodies
}

// inspection is a directory that is looked at: a store that has no roles and
// writes nothing.
type inspection struct {
	s      *Store
	names  []string
	replay *replay
	runs   []*run
	large  map[Target]BodyRef // of all messages that the log put into queues
	left   map[Target]bool    // those of them that are still there
}

// inspect locks a directory and lists it.
func inspect(fs FS, dir string) (*inspection, error) {
	lock, err := fs.Lock(dir)
	if err != nil {
		return nil, err
	}
	l := newLog(fs, dir, Options{GatherBytes: -1}.withDefaults())
	s := &Store{log: l, index: newIndex(), lock: lock}
	s.bodies = l.bodies
	s.cleaner = newCleaner(s)
	l.cleaner = s.cleaner
	in := &inspection{s: s, replay: &replay{log: l, out: &Recovery{}, nextSeq: 1}}
	if in.names, err = fs.List(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("list files: %w", err), lock.Close())
	}
	return in, nil
}

func (in *inspection) close() error {
	var errs []error
	for _, c := range in.replay.files {
		errs = append(errs, c.seg.file.Close())
	}
	for _, r := range in.runs {
		errs = append(errs, r.file.Close())
	}
	in.s.bodies.release()
	return errors.Join(append(errs, in.s.lock.Close())...)
}

func (in *inspection) damage(d Damage) {
	in.replay.out.Damages = append(in.replay.out.Damages, d)
}

// Check reads all of a directory and verifies every checksum in it and what its
// files say of each other. It changes nothing; with [ReadOnly] it could not. A
// directory in use is ErrLocked, one of a newer format a *VersionError.
func Check(fs FS, dir string) (_ *Report, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("check store in %s: %w", dir, err)
		}
	}()
	in, err := inspect(fs, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	state, err := in.s.read(in.replay, in.names)
	in.runs = in.s.log.files
	if err != nil {
		return nil, err
	}
	in.large, in.left = state.large.queued, map[Target]bool{}
	rep := in.count(state)
	for _, r := range in.runs {
		if err := in.checkRun(r, rep); err != nil {
			return nil, err
		}
	}
	if err := in.checkQueues(rep); err != nil {
		return nil, err
	}
	if err := in.checkBodies(rep); err != nil {
		return nil, err
	}
	out := in.replay.out
	rep.Damages, rep.Cut = out.Damages, out.Cut
	slices.SortStableFunc(rep.Damages, func(a, b Damage) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset))
	})
	return rep, nil
}

// count takes the counts from what was read.
func (in *inspection) count(state *rebuild) *Report {
	out, x := in.replay.out, in.s.index
	rep := &Report{
		Segments: len(in.replay.used), Spares: len(in.replay.files) - len(in.replay.used),
		Runs: len(in.runs), Unnamed: state.unnamed, Frames: out.Frames, Records: out.Records,
		Pending: in.s.PendingTotal(), Exchanges: map[uint32]Pending{}, Queues: map[uint32]QueueSum{},
		Definitions: len(out.Definitions),
	}
	for _, c := range in.replay.used {
		rep.LogBytes += c.seg.size
	}
	for _, r := range in.runs {
		rep.RunBytes += r.size
	}
	for ex, p := range x.pending {
		if p.Count > 0 {
			rep.Exchanges[ex] = in.s.Pending(ex)
		}
	}
	return rep
}

// checkRun reads what waits in a run, and compares it with its index and with
// what the log says. What is before that may have been given back.
func (in *inspection) checkRun(r *run, rep *Report) error {
	if r.consumed() {
		return nil
	}
	before := len(in.replay.out.Damages)
	var m image
	left := map[uint32]Pending{}
	last := Key{Due: -1}
	for i := max(0, r.blockOf(r.state.done)); i < len(r.blocks); i++ {
		err := r.read(&m, i, in.s.log, func(off, n int64) {
			in.damage(Damage{File: r.name, Offset: off, Length: n, Reason: "checksum mismatch"})
		})
		if err != nil {
			return err
		}
		for _, f := range m.records {
			rep.RunRecords++
			if !last.Less(f.key) {
				in.damage(Damage{File: r.name, Offset: int64(f.off) * 8, Length: int64(f.length), Reason: "record out of order"})
			}
			last = f.key
			if f.off >= r.state.done && f.off < r.state.stop && !r.isSkipped(&f) {
				p := left[f.exchange]
				left[f.exchange] = Pending{p.Count + 1, p.Bytes + uint64(f.length)}
			}
		}
	}
	if err := in.checkSections(r); err != nil {
		return err
	}
	if len(in.replay.out.Damages) == before && !maps.Equal(left, r.state.left) {
		in.damage(Damage{
			File: r.name, Control: true,
			Reason: fmt.Sprintf("%s wait, the log says %s", describe(left), describe(r.state.left)),
		})
	}
	return nil
}

// checkSections verifies what is behind the records of a run but for its index,
// which was verified when it was opened. Damage there makes look-ups slow, no more.
func (in *inspection) checkSections(r *run) error {
	if r.keys.lost {
		return nil // with the index
	}
	l := in.s.log
	for n := range r.keys.pages() {
		_, err := r.page(n, l)
		if IsCorruption(err) {
			in.damage(Damage{File: r.name, Offset: r.keys.at + int64(n)*keyPageBytes, Length: keyPageBytes, Reason: "page of keys"})
		} else if err != nil {
			return err
		}
	}
	trailer := make([]byte, runTrailerBytes)
	if err := readFull(r.file, trailer, r.size-runTrailerBytes); err != nil {
		return fmt.Errorf("read index of %s: %w", r.name, err)
	}
	filterAt := r.listsAt + int64(le.Uint32(trailer[60:]))
	for _, e := range r.exchanges {
		if err := in.checkSum(r, r.listsAt+int64(e.at), int64(e.length), e.crc, "list of blocks"); err != nil {
			return err
		}
	}
	return in.checkSum(r, filterAt, int64(le.Uint32(trailer[64:])), le.Uint32(trailer[68:]), "filter of keys")
}

// checkSum verifies one stretch of a run.
func (in *inspection) checkSum(r *run, off, n int64, sum uint32, what string) error {
	if off+n > r.size {
		in.damage(Damage{File: r.name, Offset: off, Length: n, Reason: what + " beyond the end"})
		return nil
	}
	b := make([]byte, n)
	if err := readFull(r.file, b, off); err != nil {
		return fmt.Errorf("read %s: %w", r.name, err)
	}
	if crc32.Checksum(b, in.s.log.table) != sum {
		in.damage(Damage{File: r.name, Offset: off, Length: n, Reason: what})
	}
	return nil
}

// describe shows how much waits, by exchange.
func describe(left map[uint32]Pending) string {
	var parts []string
	for _, ex := range slices.Sorted(maps.Keys(left)) {
		parts = append(parts, fmt.Sprintf("%d of exchange %d", left[ex].Count, ex))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// checkQueues counts the ready messages and checks them.
func (in *inspection) checkQueues(rep *Report) error {
	var piece [1024]Entry
	var v messageView
	for _, q := range in.replay.out.Queues {
		var sum QueueSum
		for {
			n, err := in.replay.out.Entries(q.ID, piece[:])
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			for i := range n {
				sum.Count++
				sum.Bytes += uint64(piece[i].Ref.Len) + uint64(piece[i].Body)
				in.checkLarge(Target{q.ID, piece[i].Pos})
				if err := in.checkMoved(q.ID, &piece[i], &v); err != nil {
					return err
				}
			}
		}
		if sum.Count > 0 {
			rep.Queues[q.ID] = sum
		}
	}
	return nil
}

// checkMoved reads a ready message if it was delayed: what puts it into its queue
// stands apart from it.
func (in *inspection) checkMoved(queue uint32, e *Entry, v *messageView) error {
	g := in.s.log.segment(e.Ref.File)
	if g != nil && g.run == nil && !e.moved {
		return nil
	}
	err := in.s.log.read(e.Ref, v.Buf, v)
	if err == nil {
		return nil
	}
	if !IsCorruption(err) && !errors.Is(err, ErrMoved) {
		return err
	}
	in.damage(Damage{
		File: in.fileName(e.Ref.File), Offset: int64(e.Ref.Off) * 8, Length: int64(e.Ref.Len), Records: 1,
		Reason: fmt.Sprintf("message of queue %d, position %d, cannot be read", queue, e.Pos),
	})
	return nil
}

// checkLarge notes that the body of a ready message is needed, if it is large.
func (in *inspection) checkLarge(t Target) {
	ref, ok := in.large[t]
	if !ok {
		return
	}
	in.left[t] = true
	if _, err := in.s.bodies.locate(ref); err != nil {
		in.damage(Damage{
			File: bodyName(ref.File), Offset: ref.offset(), Length: int64(ref.Length), Records: 1,
			Reason: "body is missing",
		})
	}
}

// checkBodies reads the large bodies that are needed.
func (in *inspection) checkBodies(rep *Report) error {
	b := in.s.bodies
	for t := range in.large {
		if !in.left[t] {
			b.settled(t.Queue, t.Pos)
		}
	}
	for _, y := range b.dead {
		delete(y.file.bodies, y.ref.Block)
	}
	rep.BodyFiles = len(b.files)
	for _, id := range slices.Sorted(maps.Keys(b.files)) {
		f := b.files[id]
		for _, block := range slices.Sorted(maps.Keys(f.bodies)) {
			y := f.bodies[block]
			rep.Bodies++
			rep.BodyBytes += int64(y.ref.Length)
			ok, err := f.isIntact(y.ref, in.s.log.table)
			if err != nil {
				return err
			}
			if !ok {
				in.damage(Damage{
					File: f.name, Offset: y.ref.offset(), Length: int64(y.ref.Length), Records: y.claims,
					Reason: "checksum mismatch",
				})
			}
		}
	}
	return nil
}

// fileName names the file with an id, also one that is not there.
func (in *inspection) fileName(id uint32) string {
	if g := in.s.log.segment(id); g != nil {
		return g.name
	}
	return segmentName(id)
}
