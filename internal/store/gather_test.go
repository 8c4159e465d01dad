package store

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// gatherModel is a gathering and what should come of it.
type gatherModel struct {
	rng  *rand.Rand
	disk *fakeDisk
	log  *log
	g    *gathering
	want map[Target]Entry
	gone map[Target]bool // settled, now or before it is met
}

func newGatherModel(seed uint64) *gatherModel {
	disk := newFakeDisk(seed)
	l := newLog(disk, "d", tiny().withDefaults())
	l.cleaner = newCleaner(&Store{log: l})
	l.order = []*segment{{id: 1, size: 1 << 40}, {id: 2, size: 1 << 40}}
	l.publishLocked()
	return &gatherModel{
		rng: rand.New(rand.NewPCG(seed, 5)), disk: disk, log: l,
		g:    newGathering(l, map[uint32]bool{}),
		want: map[Target]Entry{}, gone: map[Target]bool{},
	}
}

const gatherQueues = 4

// step adds a message, mostly at the end but sometimes a copy of an old one, or settles some.
func (m *gatherModel) step(next *[gatherQueues]uint64) {
	queue := uint32(m.rng.IntN(gatherQueues))
	if m.rng.IntN(5) == 0 {
		first := m.rng.Uint64N(next[queue] + 5)
		n := 1 + m.rng.Uint64N(7)
		m.g.settle(queue, first, n)
		for pos := first; pos < first+n; pos++ {
			m.gone[Target{queue, pos}] = true
		}
		return
	}
	pos := next[queue] + m.rng.Uint64N(3)
	if m.rng.IntN(4) == 0 {
		pos = m.rng.Uint64N(next[queue] + 1)
	}
	next[queue] = max(next[queue], pos+1)
	e := Entry{
		Pos: pos, Ref: Ref{File: 1 + m.rng.Uint32N(2), Off: m.rng.Uint32(), Len: m.rng.Uint32N(1000)},
		Arrived: m.rng.Int64(), TTL: m.rng.Int64N(5) - 1,
		Persistent: m.rng.IntN(2) == 0, moved: m.rng.IntN(3) == 0,
	}
	m.g.add(findingMessage(queue, &e))
	m.want[Target{queue, pos}] = e
}

func (m *gatherModel) run(steps int) {
	var next [gatherQueues]uint64
	for range steps {
		m.step(&next)
	}
	for t := range m.want {
		if m.gone[t] || m.g.noQueue[t.Queue] {
			delete(m.want, t)
		}
	}
}

// check reads everything and compares it, with what is said to be live.
func (m *gatherModel) check(t *testing.T) {
	t.Helper()
	rec := &Recovery{entries: m.g.finish()}
	live, moved := int64(0), 0
	for queue := range uint32(gatherQueues) {
		got, err := leftIn(rec, queue)
		if err != nil {
			t.Fatal(err)
		}
		want := []Entry{}
		for at, e := range m.want {
			if at.Queue == queue {
				want = append(want, e)
				live += int64(e.Ref.Len)
				if e.moved {
					moved++
				}
			}
		}
		slices.SortFunc(want, func(a, b Entry) int { return cmp.Compare(a.Pos, b.Pos) })
		if diff := gocmp.Diff(want, append([]Entry{}, got...), gocmp.AllowUnexported(Entry{})); diff != "" {
			t.Fatalf("queue %d: (- want, + got)\n%s", queue, diff)
		}
	}
	got, listed := int64(0), 0
	for _, s := range m.log.order {
		got += s.live.Load()
		listed += len(s.moved)
	}
	if got != live || listed < moved {
		t.Errorf("%d bytes live, %d moved, want %d and at least %d", got, listed, live, moved)
	}
	if left := len(m.disk.dir); left != 0 {
		t.Errorf("%d scratch files left", left)
	}
}

func TestGatheringAgainstModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		m := newGatherModel(seed)
		if seed%3 == 0 {
			m.g.noQueue[1] = true // dropped; or, below, while it is gathered
		}
		m.run(10 + int(seed)*40)
		if seed%5 == 0 {
			m.g.noQueue[2] = true
			for at := range m.want {
				if at.Queue == 2 {
					delete(m.want, at)
				}
			}
		}
		if seed > 10 && len(m.g.runs) < 5 {
			t.Errorf("seed %d: only %d runs", seed, len(m.g.runs))
		}
		m.check(t)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Opening must not need space.
func TestGatheringStaysInMemoryOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"create", "write"} {
		for from := range 4 {
			m := newGatherModel(uint64(from))
			n := 0
			m.disk.rule = func(c, _ string, _ int) error {
				if n++; c == call && n > 3*from {
					return errNoSpace
				}
				return nil
			}
			m.run(900)
			m.check(t)
		}
	}
}

func TestGatheringTellsOfAnUnreadableRun(t *testing.T) {
	t.Parallel()
	for after := range 5 {
		m := newGatherModel(1)
		m.run(900)
		reads := 0
		m.disk.rule = func(c, _ string, _ int) error {
			if c != "read" {
				return nil
			}
			if reads++; reads > after*4 {
				return errIO
			}
			return nil
		}
		rec := &Recovery{entries: m.g.finish()}
		var err error
		for queue := range uint32(gatherQueues) {
			if _, e := leftIn(rec, queue); e != nil {
				err = e
			}
		}
		if !errors.Is(err, errIO) {
			t.Errorf("after %d reads: %v, want %v", after*4, err, errIO)
		}
	}
}

// What passes through a queue in order takes no room, however much it is.
func TestGatheringOfWhatIsSettledIsSmall(t *testing.T) {
	t.Parallel()
	m := newGatherModel(1)
	for pos := range uint64(10_000) {
		e := Entry{Pos: pos, Ref: Ref{File: 1, Len: 8}}
		m.g.add(findingMessage(1, &e))
		if pos%10 == 9 {
			m.g.settle(1, pos-9, 10)
		}
	}
	m.g.noQueue[2] = true // nor does what is left of a queue that was dropped
	for pos := range uint64(10_000) {
		e := Entry{Pos: pos, Ref: Ref{File: 1, Len: 8}}
		m.g.add(findingMessage(2, &e))
	}
	if len(m.g.runs) != 0 || len(m.disk.dir) != 0 {
		t.Errorf("got %d runs, %d files", len(m.g.runs), len(m.disk.dir))
	}
	m.check(t)
}
