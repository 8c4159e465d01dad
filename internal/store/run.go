package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
)

// A run is an immutable file of delayed records in ascending (due, seq), cut
// into blocks, with an index of the blocks behind them. docs/FORMATS.md has the
// picture. What of it still waits is not in the file but in the log.
//
// It is a segment too, so that references, holds, reads and moves work the same.
type run struct {
	*segment
	blocks []block
	seqs   [2]uint64 // lowest and highest
	last   Key
	end    uint32 // of the records, in units of 8 bytes

	// Guarded by the index lock.

	next int // blocks before this one are in the index, as far as they still wait
	// rest are the records that still wait here, or were popped and have not ended.
	rest spans
	left map[uint32]Pending // rest by exchange
	// unlogged: the rest shrank by entries of dropped exchanges, or of
	// duplicates, which no record of the log says.
	unlogged bool
	state    Ref // of the last record that says what is left

	// recent is what was last read, so that consumers need no system call for
	// each message of it.
	recent [2]atomic.Pointer[loaded]
}

// block is where a block begins, and its first key.
type block struct {
	first Key
	off   uint32
}

// loaded is a block in memory; immutable.
type loaded struct {
	off uint32
	buf []byte
}

const (
	runMagic       = "DUERUN1\n"
	runFooterBytes = 80
	blockItemBytes = 20
)

func runName(id uint32) string { return fmt.Sprintf("run-%010d", id) }

func parseRunName(name string) (uint32, bool) {
	var id uint32
	if n, err := fmt.Sscanf(name, "run-%010d", &id); n != 1 || err != nil || runName(id) != name || id == 0 {
		return 0, false
	}
	return id, true
}

// span of block i.
func (r *run) span(i int) span {
	if i+1 < len(r.blocks) {
		return span{r.blocks[i].off, r.blocks[i+1].off}
	}
	return span{r.blocks[i].off, r.end}
}

// blockOf returns the block that the offset is in.
func (r *run) blockOf(off uint32) int {
	i, ok := slices.BinarySearchFunc(r.blocks, off, func(b block, off uint32) int { return cmp.Compare(b.off, off) })
	if ok {
		return i
	}
	return i - 1
}

// blockFor returns the block that a key would be in, or -1.
func (r *run) blockFor(k Key) int {
	if r.last.Less(k) || k.Seq < r.seqs[0] || k.Seq > r.seqs[1] {
		return -1
	}
	i, ok := slices.BinarySearchFunc(r.blocks, k, func(b block, k Key) int {
		return cmp.Or(cmp.Compare(b.first.Due, k.Due), cmp.Compare(b.first.Seq, k.Seq))
	})
	if ok {
		return i
	}
	return i - 1
}

// appendTail encodes the block index and the footer.
func (r *run) appendTail(b []byte, l *log) []byte {
	start := len(b)
	for _, k := range r.blocks {
		b = le.AppendUint64(b, uint64(k.first.Due))
		b = le.AppendUint64(b, k.first.Seq)
		b = le.AppendUint32(b, k.off)
	}
	sum := checksum(b[start:], l)
	f := len(b)
	b = append(b, make([]byte, runFooterBytes)...)
	p := b[f:]
	copy(p, runMagic)
	le.PutUint16(p[8:], formatVersion)
	le.PutUint32(p[12:], r.id)
	le.PutUint32(p[16:], r.end)
	le.PutUint32(p[20:], uint32(len(r.blocks)))
	le.PutUint32(p[24:], sum)
	le.PutUint64(p[32:], r.seqs[0])
	le.PutUint64(p[40:], r.seqs[1])
	le.PutUint64(p[48:], uint64(r.last.Due))
	le.PutUint64(p[56:], r.last.Seq)
	le.PutUint32(p[76:], checksum(p[:76], l))
	return b
}

func (r *run) tailBytes() int64 { return int64(len(r.blocks))*blockItemBytes + runFooterBytes }

// openRun opens a run file and reads its index. If that is damaged it is made
// anew from the records, and the damage returned.
func openRun(l *log, id uint32) (*run, *Damage, error) {
	name := runName(id)
	f, err := l.fs.Open(l.path(name))
	if err != nil {
		return nil, nil, fmt.Errorf("open run: %w", err)
	}
	r := &run{segment: &segment{id: id, name: name, file: f}, left: map[uint32]Pending{}}
	r.segment.run = r
	if r.size, err = f.Size(); err == nil {
		var ok bool
		if ok, err = r.readTail(l); ok && err == nil {
			return r, nil, nil
		}
	}
	if err == nil {
		err = r.scan(l)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return r, &Damage{File: name, Offset: int64(r.end) * 8, Length: r.size - int64(r.end)*8, Reason: "index of a run"}, nil
}

func (r *run) readTail(l *log) (bool, error) {
	var p [runFooterBytes]byte
	at := r.size - runFooterBytes
	if at < 0 {
		return false, nil
	}
	if err := readFull(r.file, p[:], at); err != nil {
		return false, fmt.Errorf("read run %s: %w", r.name, err)
	}
	if string(p[:8]) != runMagic || le.Uint32(p[76:]) != checksum(p[:76], l) || le.Uint32(p[12:]) != r.id {
		return false, nil
	}
	if v := le.Uint16(p[8:]); v > formatVersion {
		return false, &VersionError{File: r.name, Got: v, Want: formatVersion}
	}
	r.end = le.Uint32(p[16:])
	n := int64(le.Uint32(p[20:]))
	if int64(r.end)*8+n*blockItemBytes != at || n == 0 {
		return false, nil
	}
	r.seqs = [2]uint64{le.Uint64(p[32:]), le.Uint64(p[40:])}
	r.last = Key{int64(le.Uint64(p[48:])), le.Uint64(p[56:])}
	b := make([]byte, n*blockItemBytes)
	if err := readFull(r.file, b, int64(r.end)*8); err != nil {
		return false, fmt.Errorf("read run %s: %w", r.name, err)
	}
	if le.Uint32(p[24:]) != checksum(b, l) {
		return false, nil
	}
	r.blocks = make([]block, n)
	for i := range r.blocks {
		q := b[i*blockItemBytes:]
		k := block{Key{int64(le.Uint64(q)), le.Uint64(q[8:])}, le.Uint32(q[16:])}
		if k.off >= r.end || (i == 0) != (k.off == 0) || (i > 0 && k.off <= r.blocks[i-1].off) {
			return false, nil
		}
		r.blocks[i] = k
	}
	return true, nil
}

// scan finds the records without the index.
func (r *run) scan(l *log) error {
	b := make([]byte, r.size)
	if err := readFull(r.file, b, 0); err != nil {
		return fmt.Errorf("read run %s: %w", r.name, err)
	}
	r.blocks, r.end, r.last, r.seqs = nil, 0, Key{}, [2]uint64{}
	eachRecord(b, l, func(off int, rec []byte, v *messageView) {
		from := uint32(off / 8)
		if k := len(r.blocks); k == 0 || int64(from-r.blocks[k-1].off)*8 >= l.o.RunBlockBytes {
			r.blocks = append(r.blocks, block{v.Key, from})
		}
		r.note(v.Key)
		r.end = recordSpan(Ref{Off: from, Len: uint32(len(rec))}).to
	}, nil)
	if len(r.blocks) > 0 {
		r.blocks[0].off = 0
	}
	return nil
}

// note takes the next key into account.
func (r *run) note(k Key) {
	if r.seqs[0] == 0 || k.Seq < r.seqs[0] {
		r.seqs[0] = k.Seq
	}
	r.seqs[1] = max(r.seqs[1], k.Seq)
	r.last = k
}

// eachRecord calls f for every intact delayed record in b, which are at
// multiples of 8, and bad, if not nil, for each stretch between that is damaged.
func eachRecord(b []byte, l *log, f func(off int, rec []byte, v *messageView), bad func(off, n int)) {
	var v messageView
	lost := -1
	for o := 0; o+recordHeaderBytes <= len(b); {
		rec, ok := recordAt(b[o:])
		if ok && kind(rec[12]) == kindDelayed && recordValid(rec, le.Uint32(rec[8:]), l.table) && parseMessage(rec, &v) &&
			v.Key.Seq != 0 && v.Key.Due >= 0 && v.Key.Due <= maxDue {
			if lost >= 0 && bad != nil {
				bad(lost, o-lost)
			}
			lost = -1
			f(o, rec, &v)
			o += int(align(int64(len(rec))))
			continue
		}
		if lost < 0 {
			lost = o
		}
		o += 8
	}
	if lost >= 0 && bad != nil {
		bad(lost, len(b)-lost)
	}
}

// read reads block i.
func (r *run) read(i int) (*loaded, error) {
	s := r.span(i)
	b := make([]byte, int(s.to-s.from)*8)
	if err := readFull(r.file, b, int64(s.from)*8); err != nil {
		return nil, fmt.Errorf("read run %s: %w", r.name, err)
	}
	return &loaded{s.from, b}, nil
}

// keep lets readers find a block that was read.
func (r *run) keep(b *loaded) {
	r.recent[1].Store(r.recent[0].Load())
	r.recent[0].Store(b)
}

// view returns the bytes of a record if its block is in memory.
func (r *run) view(ref Ref) []byte {
	for i := range r.recent {
		b := r.recent[i].Load()
		if b == nil || ref.Off < b.off {
			continue
		}
		if at := int(ref.Off-b.off) * 8; at+int(ref.Len) <= len(b.buf) {
			return b.buf[at : at+int(ref.Len)]
		}
	}
	return nil
}

func readFull(f File, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	if n == len(b) || errors.Is(err, io.EOF) {
		clear(b[n:]) // beyond the end: not valid whatever it is
		return nil
	}
	return err
}

// runTable finds runs by id without a lock; immutable.
type runTable map[uint32]*run
