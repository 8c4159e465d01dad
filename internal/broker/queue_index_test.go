package broker

import (
	"log/slog"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/duepost/duepost/internal/store"
)

func newTestIndex() *index {
	return &index{pager: newPager(nil, DefaultIndexBytes, slog.New(slog.DiscardHandler))}
}

func TestEntryIsSmall(t *testing.T) {
	t.Parallel()
	if got := unsafe.Sizeof(entry{}); got != 24 {
		t.Errorf("got %d bytes, want 24", got)
	}
}

func TestEntryKeepsArrivalAndFlags(t *testing.T) {
	t.Parallel()
	for _, arrived := range []int64{0, 1, 1_800_000_000_123, 1<<44 - 1} {
		e := newEntry(store.Ref{File: 1, Off: 2, Len: 3}, 9, arrived, flagLogged)
		e.set(flagRedelivered)
		e.countDelivery()
		if e.arrivedMillis() != arrived || !e.has(flagLogged) || !e.has(flagRedelivered) ||
			e.has(flagOverdue) || e.deliveries() != 1 {
			t.Errorf("arrived %d: got %+v", arrived, e)
		}
		for range 5000 {
			e.countDelivery()
		}
		if e.deliveries() != maxDeliveries || e.arrivedMillis() != arrived || !e.has(flagLogged) {
			t.Errorf("after many deliveries: got %d %d", e.deliveries(), e.arrivedMillis())
		}
		e.clear(flagRedelivered)
		if e.has(flagRedelivered) || !e.has(flagLogged) {
			t.Error("clear cleared the wrong flag")
		}
	}
}

// modelIndex does what index does, slowly.
type modelIndex struct {
	state map[uint64]byte // 'r' ready, 'h' held
}

func (m *modelIndex) first() (uint64, bool) {
	best, ok := uint64(0), false
	for pos, s := range m.state {
		if s == 'r' && (!ok || pos < best) {
			best, ok = pos, true
		}
	}
	return best, ok
}

func (m *modelIndex) some(rng *rand.Rand, state byte) (uint64, bool) {
	var all []uint64
	for pos, s := range m.state {
		if s == state {
			all = append(all, pos)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return all[rng.IntN(len(all))], true
}

func TestIndexAgainstModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		x, m := newTestIndex(), modelIndex{state: map[uint64]byte{}}
		next := uint64(0)
		var reserved []uint64
		for step := range 4000 {
			switch op := rng.IntN(10); {
			case op < 4:
				reserved = append(reserved, next)
				next++
			case op < 7 && len(reserved) > 0:
				i := rng.IntN(min(len(reserved), 3)) // almost in order
				pos := reserved[i]
				reserved = append(reserved[:i], reserved[i+1:]...)
				if rng.IntN(20) == 0 {
					x.abandon(pos)
					break
				}
				x.put(pos, newEntry(store.Ref{Off: uint32(pos)}, 1, int64(pos), 0))
				m.state[pos] = 'r'
			case op == 7:
				if pos, ok := x.nextReady(); ok {
					x.hold(pos)
					m.state[pos] = 'h'
				}
			case op == 8:
				if pos, ok := m.some(rng, 'h'); ok {
					x.remove(pos)
					delete(m.state, pos)
				}
			case rng.IntN(3) == 0:
				if pos, ok := m.some(rng, 'h'); ok {
					x.unhold(pos)
					m.state[pos] = 'r'
				}
			}
			got, ok := x.nextReady()
			want, wantOK := m.first()
			if got != want || ok != wantOK {
				t.Fatalf("seed %d step %d: next ready is %d %t, want %d %t", seed, step, got, ok, want, wantOK)
			}
		}
		live := 0
		for pos := range next {
			s := m.state[pos]
			if x.isLive(pos) != (s != 0) || x.isHeld(pos) != (s == 'h') {
				t.Errorf("seed %d: position %d is %q in the model, live %t, held %t", seed, pos, s, x.isLive(pos), x.isHeld(pos))
			}
			if e := x.at(pos); e != nil {
				live++
				if e.ref.Off != uint32(pos) {
					t.Errorf("seed %d: position %d has ref %v", seed, pos, e.ref)
				}
			}
		}
		if live != len(m.state) || x.ready+x.held != live || x.readyBytes+x.heldBytes != int64(live) {
			t.Errorf("seed %d: got %d entries (%d ready, %d held), want %d", seed, live, x.ready, x.held, len(m.state))
		}
	}
}

func TestIndexGivesBackWhatIsGone(t *testing.T) {
	t.Parallel()
	x := newTestIndex()
	const n = 200_000
	for pos := range uint64(n) {
		x.put(pos, entry{})
		x.hold(pos)
		if pos%1000 != 7 {
			x.remove(pos)
		}
	}
	chunks, blocks := 0, 0
	for _, c := range x.chunks {
		if c == nil {
			continue
		}
		chunks++
		for i := range c.blocks {
			if c.blocks[i].entries != nil {
				blocks++
			}
		}
	}
	if blocks > n/1000+1 {
		t.Errorf("one message of 1,000 left: got %d blocks in use, want at most %d", blocks, n/1000+1)
	}
	for pos := uint64(7); pos < n; pos += 1000 {
		x.remove(pos)
	}
	if len(x.chunks) > 1 {
		t.Errorf("all gone: got %d chunks, want at most 1", len(x.chunks))
	}
}

func TestIndexRestoreLeavesNothingUnborn(t *testing.T) {
	t.Parallel()
	x := newTestIndex()
	for _, pos := range []uint64{5000, 5001, 70_000} {
		x.restore(pos, entry{})
	}
	next := x.resume(70_001)
	if next < 70_001 || next%chunkSpan != 0 {
		t.Fatalf("got next %d", next)
	}
	for _, pos := range []uint64{0, 4999, 6000, 69_999, 70_001, next - 1} {
		if !x.wasBorn(pos) || x.at(pos) != nil {
			t.Errorf("position %d: born %t, entry %v, want it gone", pos, x.wasBorn(pos), x.at(pos))
		}
	}
	if x.wasBorn(next) {
		t.Error("the next position is born")
	}
	x.put(next, entry{})
	for _, want := range []uint64{5000, 5001, 70_000, next} {
		pos, ok := x.nextReady()
		if !ok || pos != want {
			t.Fatalf("got %d %t, want %d", pos, ok, want)
		}
		x.hold(pos)
		x.remove(pos)
	}
	empty := newTestIndex()
	if next := empty.resume(1500); next != 2048 || !empty.wasBorn(1999) || empty.wasBorn(2048) {
		t.Errorf("an empty queue goes on at %d", next)
	}
}
