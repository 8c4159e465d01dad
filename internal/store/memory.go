package store

import (
	"sync"
	"sync/atomic"
)

// memoryBit marks references into memory segments.
const memoryBit = 1 << 31

// memory holds transient messages: append-only memory segments, freed when the
// last hold on them is dropped. Beyond the budget the spiller writes the oldest
// to scratch files. A segment of which little is left is written anew with
// what is left, so that a few stragglers do not pin it.
//
// In a memory segment the checksum field of a record is its hold count.
type memory struct {
	fs     FS
	dir    string
	o      Options
	size   int // of a segment
	table  atomic.Pointer[memoryTable]
	want   chan struct{} // wakes the spiller
	quit   chan struct{}
	roles  sync.WaitGroup
	mu     sync.Mutex
	space  sync.Cond // on mu: memory was freed, or the store closes
	active *memorySegment

	// Guarded by mu, as are all fields of segments and hold counts.

	nextID   uint32
	resident int64 // bytes of buffers
	scratch  int64 // bytes of scratch files
	noSpace  bool  // the last attempt to write a scratch file failed
	closed   bool
	files    uint64        // number of the last scratch file of a large message
	gone     []*memoryView // whose files are to be removed, without the lock
}

// memoryTable finds segments by id without a lock; immutable.
type memoryTable struct {
	base uint32
	list []*memorySegment
}

func (t *memoryTable) get(id uint32) *memorySegment {
	if i := id - t.base; i < uint32(len(t.list)) {
		return t.list[i]
	}
	return nil
}

// memorySegment is a piece of transient memory.
type memorySegment struct {
	id   uint32
	view atomic.Pointer[memoryView]

	end    int
	live   int // bytes of records that are still held
	sealed bool
	busy   bool // the spiller is at it
}

// memoryView is how a segment is stored at the moment.
type memoryView struct {
	buf  []byte // or
	file File
	name string
	size int64
	// places, if not nil, says where records went when the segment was written
	// anew, ascending by off. Without it they are where they were.
	places []place
}

type place struct {
	off   uint32 // as in the Ref
	at    uint32 // now, in units of 8 bytes
	holds uint32
	size  uint32
}

func newMemory(fs FS, dir string, o Options) *memory {
	m := &memory{fs: fs, dir: dir, o: o, want: make(chan struct{}, 1), quit: make(chan struct{}), nextID: memoryBit}
	m.size = int(align(max(minSegmentBytes, min(o.TransientBytes/16, 4<<20))))
	m.space.L = &m.mu
	m.table.Store(&memoryTable{})
	return m
}

// AppendTransient keeps a message that need not survive. Nothing is logged. It
// may block while scratch files are written, and returns ErrFull when they
// cannot be.
func (s *Store) AppendTransient(m *Message, holds int) (Ref, error) {
	if m.Large.isSet() {
		body, err := s.bodies.read(m.Large, nil, 0)
		if err != nil {
			return Ref{}, err
		}
		whole := *m
		whole.Body, whole.Large = body, BodyRef{}
		m = &whole
	}
	size, err := messageSize(kindReady, m, 0, false)
	if err != nil {
		return Ref{}, err
	}
	if len(m.Body) >= s.log.o.LargeBytes {
		return s.memory.appendLarge(m, size, holds)
	}
	return s.memory.append(m, size, holds)
}

func (m *memory) append(msg *Message, size, holds int) (Ref, error) {
	need := int(align(int64(size)))
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.active == nil || m.active.end+need > len(m.active.view.Load().buf) {
		if m.closed {
			return Ref{}, ErrClosed
		}
		if err := m.rotateLocked(need); err != nil {
			return Ref{}, err
		}
	}
	if m.closed {
		return Ref{}, ErrClosed
	}
	g := m.active
	rec := g.view.Load().buf[g.end : g.end+size]
	putMessage(rec, msg, &messageParts{kind: kindReady})
	le.PutUint32(rec[4:], uint32(holds))
	ref := Ref{File: g.id, Off: uint32(g.end / 8), Len: uint32(size)}
	g.end += need
	if holds > 0 {
		g.live += size
	}
	return ref, nil
}

// rotateLocked begins a segment with room for need bytes. Memory of twice the
// budget is the limit: then it waits for the spiller, which takes sealed segments
// only. So the active one is sealed first, or one that alone is beyond the limit
// would be waited for by everybody and looked at by nobody.
func (m *memory) rotateLocked(need int) error {
	m.sealLocked()
	if m.resident > m.o.TransientBytes {
		wake(m.want)
		if m.resident > 2*m.o.TransientBytes {
			if m.noSpace {
				return ErrFull
			}
			m.space.Wait()
			return nil
		}
	}
	g := &memorySegment{id: m.nextNumberLocked()}
	n := max(m.size, need)
	g.view.Store(&memoryView{buf: make([]byte, n), size: int64(n)})
	m.resident += int64(n)
	m.active = g
	m.publishLocked(g, nil)
	return nil
}

func (m *memory) nextNumberLocked() uint32 {
	id := m.nextID
	if m.nextID++; m.nextID == 0 {
		m.nextID = memoryBit
	}
	return id
}

// sealLocked ends the active segment.
func (m *memory) sealLocked() {
	if g := m.active; g != nil {
		g.sealed = true
		m.active = nil
		m.releaseIfEmptyLocked(g)
	}
}

// publishLocked makes a table with one segment more, or less.
func (m *memory) publishLocked(add, remove *memorySegment) {
	old := m.table.Load()
	t := &memoryTable{base: old.base}
	for _, g := range old.list {
		if g == remove {
			g = nil
		}
		if g == nil && len(t.list) == 0 {
			t.base++ // freed at the front
			continue
		}
		t.list = append(t.list, g)
	}
	if add != nil {
		if len(t.list) == 0 {
			t.base = add.id
		}
		t.list = append(t.list, add)
	}
	m.table.Store(t)
}

// drop takes one hold from a record.
func (m *memory) drop(ref Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.table.Load().get(ref.File)
	if g == nil {
		return
	}
	v := g.view.Load()
	if v.places != nil {
		p := v.find(ref.Off)
		if p == nil || p.holds == 0 {
			return
		}
		if p.holds--; p.holds > 0 {
			return
		}
	} else {
		rec := v.buf[int(ref.Off)*8:]
		holds := le.Uint32(rec[4:])
		if holds == 0 {
			return
		}
		le.PutUint32(rec[4:], holds-1)
		if holds > 1 {
			return
		}
	}
	g.live -= int(ref.Len)
	if g == m.active && g.live == 0 && v.size > int64(m.size) {
		m.sealLocked() // made for one huge message: not kept for small ones
		return
	}
	m.releaseIfEmptyLocked(g)
	if g.sealed && !g.busy && int64(g.live) < v.size/4 {
		wake(m.want)
	}
}

func (v *memoryView) find(off uint32) *place {
	lo, hi := 0, len(v.places)
	for lo < hi {
		mid := (lo + hi) / 2
		if v.places[mid].off < off {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(v.places) && v.places[lo].off == off {
		return &v.places[lo]
	}
	return nil
}

func (m *memory) releaseIfEmptyLocked(g *memorySegment) {
	if !g.sealed || g.live > 0 || g.busy {
		return
	}
	m.publishLocked(nil, g)
	m.discardLocked(g.view.Load())
	m.space.Broadcast()
}

// discardLocked gives back what a view occupies.
func (m *memory) discardLocked(v *memoryView) {
	if v.file == nil {
		m.resident -= v.size
		return
	}
	m.scratch -= v.size
	m.gone = append(m.gone, v)
	wake(m.want)
}

func (m *memory) read(ref Ref, buf []byte) (Record, error) {
	rec := Record{Buf: buf}
	for {
		g := m.table.Load().get(ref.File)
		if g == nil {
			return rec, ErrMoved
		}
		v := g.view.Load()
		b, err := v.read(ref, buf)
		if err != nil {
			if g.view.Load() != v {
				continue // written anew meanwhile, and the old file closed
			}
			return rec, err
		}
		if v.file != nil {
			rec.Buf = b
		}
		var mv messageView
		if got, ok := recordAt(b); !ok || len(got) != len(b) || !parseMessage(b, &mv) {
			return rec, &CorruptError{File: v.name, Offset: int64(ref.Off) * 8, Reason: "no message here"}
		}
		mv.Buf = rec.Buf
		return mv.Record, nil
	}
}

func (v *memoryView) read(ref Ref, buf []byte) ([]byte, error) {
	at := int64(ref.Off) * 8
	if v.places != nil {
		p := v.find(ref.Off)
		if p == nil {
			return nil, ErrMoved
		}
		at = int64(p.at) * 8
	}
	if at+int64(ref.Len) > v.size {
		return nil, ErrMoved
	}
	if v.file == nil {
		return v.buf[at : at+int64(ref.Len)], nil
	}
	b := sized(buf, int(ref.Len))
	if _, err := v.file.ReadAt(b, at); err != nil {
		return nil, err
	}
	return b, nil
}

func (m *memory) sizes() (resident, scratch int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resident, m.scratch
}
