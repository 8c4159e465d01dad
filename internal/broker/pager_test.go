package broker

import (
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/duepost/duepost/internal/store"
)

// modelQueue is a queue without anything but an index and a pager that nobody runs, and what should
// be in it.
type modelQueue struct {
	t    *testing.T
	disk *scratchDisk
	rng  *rand.Rand
	q    *Queue
	want map[uint64]*modelEntry
	next uint64

	paged, loaded int // chunks, so that the test knows it was about something
}

type modelEntry struct {
	ref        store.Ref
	deliveries int
	held       bool
}

func newModelQueue(t *testing.T, seed uint64) *modelQueue {
	t.Helper()
	disk := &scratchDisk{FS: store.OS()}
	s, err := store.Open(disk, t.TempDir(), store.Options{SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	discard := slog.New(slog.DiscardHandler)
	p := newPager(s.NewScratch("queues", pageBytes), 3*pageBytes, discard)
	t.Cleanup(func() {
		p.scratch.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	m := &modelQueue{t: t, disk: disk, rng: rand.New(rand.NewPCG(seed, 3)), want: map[uint64]*modelEntry{}}
	m.q = &Queue{broker: &Broker{pager: p, store: s, log: discard}}
	m.q.index.pager = p
	return m
}

func (m *modelQueue) put() {
	pos := m.next
	m.next++
	if m.rng.IntN(50) == 0 {
		m.q.index.abandon(pos)
		return
	}
	ref := store.Ref{File: 1, Off: uint32(pos), Len: m.rng.Uint32()}
	m.q.index.put(pos, newEntry(ref, 1, int64(pos), flagLogged))
	m.want[pos] = &modelEntry{ref: ref}
	m.q.listLocked(pos)
}

// entry loads and checks the entry of a live position.
func (m *modelQueue) entry(pos uint64) *entry {
	m.t.Helper()
	if m.q.index.isPaged(pos) {
		m.loaded++
		m.q.mu.Lock()
		if err := m.q.loadLocked(pos); err != nil {
			m.t.Fatal(err)
		}
		m.q.mu.Unlock()
	}
	e, w := m.q.index.at(pos), m.want[pos]
	if e == nil || e.ref != w.ref || e.deliveries() != w.deliveries || e.arrivedMillis() != int64(pos) {
		m.t.Fatalf("position %d: got %+v, want %+v", pos, e, w)
	}
	return e
}

func (m *modelQueue) some(held bool) (uint64, bool) {
	for range 20 {
		pos := m.rng.Uint64N(m.next + 1)
		if w := m.want[pos]; w != nil && w.held == held {
			return pos, true
		}
	}
	return 0, false
}

func (m *modelQueue) step() {
	switch m.rng.IntN(12) {
	case 0, 1, 2, 3:
		for range m.rng.IntN(200) {
			m.put()
		}
	case 4, 5:
		for range m.rng.IntN(300) {
			if pos, ok := m.q.index.nextReady(); ok {
				m.hold(pos)
			}
		}
	case 6:
		if pos, ok := m.some(false); ok { // a time to live that ends
			m.hold(pos)
			m.remove(pos)
		}
	case 7, 8:
		for range m.rng.IntN(400) {
			if pos, ok := m.some(true); ok {
				m.remove(pos)
			}
		}
	case 9:
		for range m.rng.IntN(200) {
			if pos, ok := m.some(true); ok {
				m.q.index.unhold(pos).countDelivery()
				m.want[pos].held = false
				m.want[pos].deliveries++
			}
		}
	case 10:
		m.relocate(m.rng.Uint64N(m.next + 1))
	default:
		m.page()
	}
}

func (m *modelQueue) hold(pos uint64) {
	m.t.Helper()
	m.entry(pos)
	m.q.index.hold(pos)
	m.want[pos].held = true
}

func (m *modelQueue) remove(pos uint64) {
	m.t.Helper()
	want := m.entry(pos).ref
	if got := m.q.index.remove(pos); got.ref != want {
		m.t.Fatalf("position %d: removed %v, want %v", pos, got.ref, want)
	}
	delete(m.want, pos)
}

func (m *modelQueue) relocate(pos uint64) {
	m.t.Helper()
	w := m.want[pos]
	m.q.next.Store(m.next)
	to := store.Ref{File: 2, Off: m.rng.Uint32(), Len: 9}
	from := store.Ref{File: 3}
	if w != nil && m.rng.IntN(4) > 0 {
		from = w.ref
	}
	got, left := m.q.relocate(pos, from, to)
	if got != (w != nil) || left && from != w.ref {
		m.t.Fatalf("position %d: relocated %t, left %t, in the model %+v", pos, got, left, w)
	}
	if w != nil && from == w.ref {
		w.ref = to
	}
}

func (m *modelQueue) page() {
	if err := m.q.broker.pager.makeRoom(); err != nil {
		m.t.Fatal(err)
	}
	for _, c := range m.q.index.chunks {
		if c != nil && c.paged {
			m.paged++
		}
	}
}

// check compares what can be known without entries.
func (m *modelQueue) check() {
	m.t.Helper()
	x := &m.q.index
	ready, held := 0, 0
	first, ok := uint64(0), false
	for pos := range m.next {
		w := m.want[pos]
		if m.q.holds(pos) != (w != nil) || x.isHeld(pos) != (w != nil && w.held) {
			m.t.Fatalf("position %d: live %t, held %t, in the model %+v", pos, x.isLive(pos), x.isHeld(pos), w)
		}
		if w == nil {
			continue
		}
		if w.held {
			held++
			continue
		}
		ready++
		if !ok {
			first, ok = pos, true
		}
	}
	if got, found := x.nextReady(); got != first || found != ok {
		m.t.Fatalf("next ready is %d %t, want %d %t", got, found, first, ok)
	}
	if x.ready != ready || x.held != held || x.readyBytes != int64(ready) || x.heldBytes != int64(held) {
		m.t.Fatalf("got %d ready, %d held, want %d, %d", x.ready, x.held, ready, held)
	}
}

func TestPagedIndexAgainstModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		m := newModelQueue(t, seed)
		for step := range 600 {
			m.step()
			if step%40 == 0 {
				m.check()
			}
		}
		if m.paged < 50 || m.loaded < 10 {
			t.Errorf("seed %d: only %d chunks were paged and %d loaded", seed, m.paged, m.loaded)
		}
		m.end()
	}
}

// end takes the index apart and finds that each entry was there once and no memory is left.
func (m *modelQueue) end() {
	m.t.Helper()
	m.check()
	refs := map[store.Ref]int{}
	for _, w := range m.want {
		refs[w.ref]++
	}
	unread, err := m.q.index.dissolve(func(e *entry) { refs[e.ref]-- })
	if unread != 0 || err != nil {
		m.t.Errorf("dissolve: %d unread, %v", unread, err)
	}
	for ref, n := range refs {
		if n != 0 {
			m.t.Errorf("%v: %d more in the model than in the index", ref, n)
		}
	}
	p := m.q.broker.pager
	if p.inUse.Load() != 0 || p.scratch.Bytes() != 0 {
		m.t.Errorf("left: %d blocks in memory, %d bytes in the scratch file", p.inUse.Load(), p.scratch.Bytes())
	}
}

// filled is a queue of 12 chunks of which the pager has paged as many as it may.
func filled(t *testing.T) *modelQueue {
	m := newModelQueue(t, 1)
	for m.next < 12*chunkSpan {
		m.put()
	}
	m.page()
	return m
}

// live returns the first position of a chunk that is live.
func (m *modelQueue) live(n uint64) uint64 {
	for pos := n * chunkSpan; ; pos++ {
		if m.want[pos] != nil {
			return pos
		}
	}
}

func (m *modelQueue) move(pos uint64, file uint32) {
	m.t.Helper()
	to := store.Ref{File: file}
	if held, _ := m.q.relocate(pos, m.want[pos].ref, to); !held {
		m.t.Errorf("position %d is not held", pos)
	}
	m.want[pos].ref = to
}

// A read that began before others loaded the chunk, changed it and paged it again must not win.
func TestReadOfAnOldPageIsDiscarded(t *testing.T) {
	t.Parallel()
	m := filled(t)
	const n = 8
	c, pos := m.q.index.chunk(n), m.live(n)
	if !c.paged {
		t.Fatal("the chunk is not paged")
	}
	old := c.page
	m.disk.after = func(call string) {
		if call != "read" {
			return
		}
		m.disk.after = nil
		m.move(pos, 7)
		if c.page != 0 {
			t.Error("a changed chunk has its old page")
		}
		m.q.broker.pager.budget = 0
		if m.page(); !c.paged {
			t.Error("the chunk was not paged again")
		}
		c.page = old // the worst case: the same place again
	}
	m.q.mu.Lock()
	err := m.q.loadLocked(pos)
	m.q.mu.Unlock()
	if err != nil || !c.paged {
		t.Fatalf("an old page was taken for the entries: %v", err)
	}
}

// A page is not good any more once a message came back to its place, for its entry says so.
func TestReturnedMessageIsWrittenAnew(t *testing.T) {
	t.Parallel()
	m := filled(t)
	pos := m.live(8)
	m.hold(pos) // has the chunk loaded
	m.q.index.unhold(pos).countDelivery()
	m.want[pos].deliveries, m.want[pos].held = 1, false
	m.q.broker.pager.budget = 0
	if m.page(); !m.q.index.isPaged(pos) {
		t.Fatal("the chunk was not paged again")
	}
	m.entry(pos)
}

// What the cleaner moves while a page cannot be read is where it was moved to afterwards.
func TestRelocationWaitsForAPageThatCannotBeRead(t *testing.T) {
	t.Parallel()
	m := filled(t)
	pos := m.live(8)
	m.disk.fail("read", syscall.EIO)
	m.move(pos, 7)
	m.move(pos, 8)
	if held, _ := m.q.relocate(pos+1, store.Ref{File: 5}, store.Ref{File: 6}); !held { // it is not there
		t.Error("a message whose entry cannot be read is not held")
	}
	m.disk.fail("", nil)
	m.entry(pos)
	if m.want[pos+1] != nil {
		m.entry(pos + 1)
	}
	if len(m.q.relocated) != 0 {
		t.Errorf("%d relocations are kept for ever", len(m.q.relocated))
	}
}

// What changes while it is written is not paged as it was.
func TestChangeDuringTheWriteIsKept(t *testing.T) {
	t.Parallel()
	m := newModelQueue(t, 1)
	for m.next < 12*chunkSpan {
		m.put()
	}
	moved := uint32(100)
	m.disk.after = func(call string) {
		if call != "write" {
			return
		}
		n := m.q.index.hand - 1
		m.move(m.live(n), moved)
		moved++
		if moved == 104 {
			m.disk.after = nil
		}
	}
	m.page()
	if moved != 104 {
		t.Fatalf("only %d writes", moved-100)
	}
	for pos := range m.want {
		m.entry(pos)
	}
	m.end()
}

// scratchDisk is the real disk, with faults and things that happen at calls on scratch files.
type scratchDisk struct {
	store.FS
	after func(call string) // set while nobody else calls
	log   loggedText

	mu     sync.Mutex // guards all below
	failed string     // the call that fails
	err    error
}

func (d *scratchDisk) fail(call string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed, d.err = call, err
}

func (d *scratchDisk) call(what string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if what == d.failed {
		return d.err
	}
	return nil
}

func (d *scratchDisk) Create(name string, size int64) (store.File, error) {
	if !strings.Contains(name, "scratch-") {
		return d.FS.Create(name, size)
	}
	if err := d.call("create"); err != nil {
		return nil, err
	}
	f, err := d.FS.Create(name, size)
	return &scratchDiskFile{f, d}, err
}

type scratchDiskFile struct {
	store.File
	disk *scratchDisk
}

func (f *scratchDiskFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.disk.call("read"); err != nil {
		return 0, err
	}
	n, err := f.File.ReadAt(b, off)
	if f.disk.after != nil {
		f.disk.after("read")
	}
	return n, err
}

func (f *scratchDiskFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.disk.call("write"); err != nil {
		return 0, err
	}
	n, err := f.File.WriteAt(b, off)
	if f.disk.after != nil {
		f.disk.after("write")
	}
	return n, err
}
