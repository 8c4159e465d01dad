package store

import (
	"errors"
	"fmt"
	"slices"
)

// DumpOptions says what to show of a directory. The zero value means all but
// bodies.
type DumpOptions struct {
	File   string   // begin in this file; the log comes first, oldest segment first, then the runs
	Offset int64    // begin here in it
	Limit  int      // show so many records; 0 = all
	Seqs   []uint64 // only records about delayed entries with these sequence numbers; empty = all records
	Bodies bool     // show bodies, and values of definitions
}

// Dumped is one record, or a damaged stretch, as Dump shows it. Which fields are
// set depends on the kind.
type Dumped struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"` // of the record, without padding
	Kind   string `json:"kind"`
	LSN    LSN    `json:"lsn,omitempty"`    // of its frame
	More   bool   `json:"more,omitempty"`   // its atomic group goes on in the next record
	Copy   bool   `json:"copy,omitempty"`   // made by the cleaner, or by a retry
	Reason string `json:"reason,omitempty"` // of damage

	Key        *Key     `json:"key,omitempty"`
	NewKey     *Key     `json:"newKey,omitempty"`   // of a retry
	FirstDue   *int64   `json:"firstDue,omitempty"` // of a retried entry
	ExchangeID uint32   `json:"exchangeID,omitempty"`
	Exchange   *string  `json:"exchange,omitempty"`
	RoutingKey *string  `json:"routingKey,omitempty"`
	Arrived    int64    `json:"arrived,omitempty"` // unix ms
	TTL        *int64   `json:"ttl,omitempty"`     // ms
	Persistent bool     `json:"persistent,omitempty"`
	Targets    []Target `json:"targets,omitempty"`
	PropsBytes *int     `json:"propsBytes,omitempty"`
	BodyBytes  *int     `json:"bodyBytes,omitempty"` // or of the value of a definition
	Body       []byte   `json:"body,omitempty"`
	BodyFile   string   `json:"bodyFile,omitempty"` // that has the body, if it is large
	BodyOffset int64    `json:"bodyOffset,omitempty"`

	Queue    *uint32      `json:"queue,omitempty"`
	Settled  [][2]uint64  `json:"settled,omitempty"` // first position, number
	Moves    []DumpedMove `json:"moves,omitempty"`
	Name     string       `json:"name,omitempty"` // of a definition
	Run      uint32       `json:"run,omitempty"`
	State    *DumpedRun   `json:"state,omitempty"`
	Ordinal  *uint32      `json:"ordinal,omitempty"`
	Flushed  []uint32     `json:"flushed,omitempty"` // segments
	InFlight []uint64     `json:"inFlight,omitempty"`
}

// DumpedMove is one entry of a move record.
type DumpedMove struct {
	Key        Key      `json:"key"`
	File       string   `json:"file"` // where its record is
	Offset     int64    `json:"offset"`
	ExchangeID uint32   `json:"exchangeID,omitempty"`
	Targets    []Target `json:"targets"`
}

// DumpedRun is the state of a run.
type DumpedRun struct {
	Done      int64              `json:"done"` // offsets
	Stop      int64              `json:"stop"`
	Left      map[uint32]Pending `json:"left"`
	Cancelled int                `json:"cancelled"`
	Dropped   []uint32           `json:"dropped,omitempty"`
}

// dump is one walk through a directory.
type dump struct {
	*inspection
	o       DumpOptions
	each    func(*Dumped) error
	err     error // of each, or errDumped
	shown   int
	begun   bool // File was reached
	lsn     LSN
	damages int // told so far
}

var errDumped = errors.New("dump store: enough shown")

// Dump calls each for every record of a directory: of the log in its order, then
// of the runs. The argument is the callee's. Locks and errors as with [Check].
func Dump(fs FS, dir string, o DumpOptions, each func(*Dumped) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("dump store in %s: %w", dir, err)
		}
	}()
	in, err := inspect(fs, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	if err := in.s.bodies.load(in.names); err != nil {
		return err
	}
	d := &dump{inspection: in, o: o, each: each, begun: o.File == ""}
	if o.File != "" && !slices.Contains(in.names, o.File) {
		return fmt.Errorf("no file %s", o.File)
	}
	if err := d.segments(); err != nil {
		return err
	}
	if err := d.runFiles(); err != nil {
		return err
	}
	if d.err == errDumped {
		return nil
	}
	return d.err
}

// reaches reports whether a file is to be shown.
func (d *dump) reaches(name string) bool {
	d.begun = d.begun || name == d.o.File
	return d.begun && d.err == nil
}

func (d *dump) segments() error {
	r := d.replay
	if err := r.load(d.names); err != nil {
		return err
	}
	r.visit = d.record
	r.begin = func(lsn LSN) { d.lsn = lsn }
	for i, c := range r.used {
		if !d.reaches(c.seg.name) {
			continue
		}
		if err := r.runOne(i); err != nil {
			return err
		}
		d.tellDamages()
	}
	return nil
}

// tellDamages shows what was damaged since it was called last.
func (d *dump) tellDamages() {
	all := d.replay.out.Damages
	for ; d.damages < len(all); d.damages++ {
		g := all[d.damages]
		if d.err == nil && !d.before(g.File, g.Offset) {
			d.show(&Dumped{File: g.File, Offset: g.Offset, Bytes: g.Length, Kind: "damage", Reason: g.Reason})
		}
	}
}

func (d *dump) before(file string, off int64) bool { return file == d.o.File && off < d.o.Offset }

func (d *dump) show(r *Dumped) {
	if d.err = d.each(r); d.err != nil {
		return
	}
	if d.shown++; d.shown == d.o.Limit {
		d.err = errDumped
	}
}

// record shows one record of the log. It is a replay's visit.
func (d *dump) record(rec []byte, ref Ref) bool {
	d.tellDamages()
	name, off := segmentName(ref.File), int64(ref.Off)*8
	if d.err != nil || d.before(name, off) {
		return true
	}
	r, ok := d.decode(rec)
	if !ok {
		return false
	}
	r.File, r.Offset, r.LSN = name, off, d.lsn
	if d.isWanted(r) {
		d.show(r)
	}
	return true
}

// isWanted reports whether a record is about an entry that was asked for.
func (d *dump) isWanted(r *Dumped) bool {
	if len(d.o.Seqs) == 0 {
		return true
	}
	return r.Key != nil && slices.Contains(d.o.Seqs, r.Key.Seq) ||
		slices.ContainsFunc(r.Moves, func(m DumpedMove) bool { return slices.Contains(d.o.Seqs, m.Key.Seq) }) ||
		slices.ContainsFunc(r.InFlight, func(seq uint64) bool { return slices.Contains(d.o.Seqs, seq) })
}

// runFiles shows all run files there are, whether the log tells of them or not.
func (d *dump) runFiles() error {
	for _, name := range d.names { // ascending
		id, ok := parseRunName(name)
		if !ok || !d.reaches(name) {
			continue
		}
		r, err := openRun(d.s.log, id, d.damage)
		if IsCorruption(err) {
			d.damage(Damage{File: name, Reason: err.Error()})
			d.tellDamages()
			continue
		}
		if err != nil {
			return err
		}
		d.runs = append(d.runs, r)
		if err := d.run(r); err != nil {
			return err
		}
	}
	return nil
}

func (d *dump) run(r *run) error {
	var m image
	from := 0
	if r.name == d.o.File {
		from = max(0, r.blockOf(uint32(d.o.Offset/8)))
	}
	for i := from; i < len(r.blocks) && d.err == nil; i++ {
		err := r.read(&m, i, d.s.log, func(off, n int64) {
			d.damage(Damage{File: r.name, Offset: off, Length: n, Reason: "checksum mismatch"})
		})
		if err != nil {
			return err
		}
		d.tellDamages()
		for _, f := range m.records {
			off := int64(f.off) * 8
			if d.err != nil || d.before(r.name, off) {
				continue
			}
			at := int64(f.off-m.off) * 8
			s, ok := d.decode(m.buf[at : at+int64(f.length)])
			if !ok {
				s = &Dumped{Bytes: int64(f.length), Kind: "damage", Reason: "record cannot be decoded"}
			}
			ordinal := f.ordinal
			s.File, s.Offset, s.Ordinal = r.name, off, &ordinal
			if d.isWanted(s) {
				d.show(s)
			}
		}
	}
	return nil
}

// decode makes a record of the log or of a run readable.
func (d *dump) decode(rec []byte) (*Dumped, bool) {
	k, r := kind(rec[12]), reader{b: rec[recordHeaderBytes:]}
	s := &Dumped{
		Bytes: int64(len(rec)), Kind: k.String(),
		More: rec[13]&flagMore != 0, Copy: rec[13]&flagCopy != 0,
	}
	switch k {
	case kindReady, kindDelayed:
		return s, d.message(rec, s)
	case kindTomb:
		s.Key = new(r.key())
	case kindRetry:
		s.Key, s.NewKey = new(r.key()), new(r.key())
	case kindMove:
		return s, d.moves(&r, s)
	case kindSettle:
		return s, parseSettle(r.b, func(queue uint32, first, n uint64) {
			s.Queue, s.Settled = &queue, append(s.Settled, [2]uint64{first, n})
		})
	case kindPut, kindDelete:
		s.Name = r.str()
		if k == kindPut {
			d.body(s, r.b)
		}
	case kindDropQueue:
		s.Queue = new(r.u32())
	case kindDropExchange:
		s.ExchangeID = r.u32()
	case kindEnd:
		c := r.canceledInRun()
		s.Run, s.Ordinal, s.ExchangeID = c.run, &c.ordinal, c.exchange
	case kindRun:
		var st runState
		s.Run, st = r.runState()
		s.State = &DumpedRun{
			Done: int64(st.done) * 8, Stop: int64(st.stop) * 8, Left: st.left,
			Cancelled: st.cancelled.count(), Dropped: st.dropped,
		}
	case kindFlush:
		f := r.flushedSegments()
		s.Flushed, s.InFlight = f.segments, f.flying
	case kindRunGone:
		s.Run = r.u32()
	case kindClaim:
		c := r.claimRecord()
		s.Key, s.ExchangeID = &Key{Seq: c.seq}, c.exchange
		s.large(c.ref)
	case kindMark, kindPad:
	default:
		return nil, false
	}
	return s, !r.bad
}

func (d *dump) message(rec []byte, s *Dumped) bool {
	var v messageView
	if !parseMessage(rec, &v) {
		return false
	}
	if kind(rec[12]) == kindDelayed {
		s.Key = &v.Key
		if v.flags&flagOrigin != 0 {
			s.FirstDue = &v.origin
		}
	}
	for i := range v.targetCount() {
		s.Targets = append(s.Targets, v.target(i))
	}
	s.ExchangeID, s.Arrived, s.Persistent = v.ExchangeID, v.Arrived, v.Persistent
	s.Exchange, s.RoutingKey = new(string(v.Exchange)), new(string(v.RoutingKey))
	if v.TTL >= 0 {
		s.TTL = &v.TTL
	}
	s.PropsBytes = new(len(v.Props))
	if v.Large.isSet() {
		s.large(v.Large)
		if d.o.Bodies {
			d.largeBody(s, v.Large)
		}
		return true
	}
	d.body(s, v.Body)
	return true
}

// largeBody shows a large body, if it is whole: Check tells what is not.
func (d *dump) largeBody(s *Dumped, ref BodyRef) {
	if b, err := d.s.bodies.read(ref, nil, 0); err == nil {
		s.Body = b
	}
}

// large shows where a large body is.
func (s *Dumped) large(ref BodyRef) {
	s.BodyBytes = new(int(ref.Length))
	s.BodyFile, s.BodyOffset = bodyName(ref.File), ref.offset()
}

// body shows how long a body is, and if asked for, the body.
func (d *dump) body(s *Dumped, b []byte) {
	s.BodyBytes = new(len(b))
	if d.o.Bodies {
		s.Body = slices.Clone(b)
	}
}

func (d *dump) moves(r *reader, s *Dumped) bool {
	var c moveCoder
	var m Move
	for len(r.b) > 0 {
		if !c.parse(r, &m) {
			return false
		}
		file := segmentName(m.Ref.File)
		if m.fromRun {
			file = runName(m.Ref.File)
		}
		s.Moves = append(s.Moves, DumpedMove{
			Key: m.Key, File: file, Offset: int64(m.Ref.Off) * 8, ExchangeID: m.exchange,
			Targets: append([]Target{}, m.Targets...),
		})
	}
	return true
}

func (k kind) String() string {
	names := [...]string{
		kindReady: "ready", kindDelayed: "delayed", kindTomb: "tomb", kindMove: "move", kindMark: "mark",
		kindRetry: "retry", kindSettle: "settle", kindPut: "put", kindDelete: "delete", kindDropQueue: "drop queue",
		kindDropExchange: "drop exchange", kindPad: "padding", kindEnd: "end", kindRun: "run", kindFlush: "flush",
		kindRunGone: "run gone", kindClaim: "claim",
	}
	if int(k) < len(names) && names[k] != "" {
		return names[k]
	}
	return fmt.Sprint("kind ", uint8(k))
}
