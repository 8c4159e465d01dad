package store

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestLogMayEndAnywhere: wherever the log ends, between any two frames, exactly what
// was logged up to there is in place, each entry once: also between the frames in which
// runs come to serve what waited in the log or in other runs, with entries cancelled,
// popped and ended while the runs were written.
func TestLogMayEndAnywhere(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	synctest.Test(t, func(t *testing.T) {
		w := newEndings(t, seed)
		for round := range int64(40) {
			w.round(round)
		}
		st := w.s.Stats()
		if st.Runs < 4 || st.Merged == 0 || st.Cleaned > 0 || w.meanwhile < 50 {
			t.Fatalf("the test does not test what it should: %d operations while runs were written, %+v", w.meanwhile, st)
		}
		w.s.Abandon()
		disk := w.disk.kill(1)
		ends := frameEnds(disk)
		for i := range ends {
			w.check(disk.endingAt(ends, i), ends[i].lsn)
		}
	})
}

// endings works on a store of which every group of records is a frame of its own.
type endings struct {
	t         *testing.T
	rnd       *rand.Rand
	s         *Store
	disk      *fakeDisk
	o         Options
	writing   chan chan struct{} // a run is about to be written, until that is closed
	meanwhile int                // operations while one was
	waiting   []Due
	flying    []Due
	dropped   []uint32
	changes   []ending
}

// ending is one change of what has to be there, and the frame that makes it.
type ending struct {
	lsn   LSN
	gone  string
	comes string
}

func newEndings(t *testing.T, seed uint64) *endings {
	w := &endings{t: t, rnd: rand.New(rand.NewPCG(seed, 2)), writing: make(chan chan struct{}, 10)}
	w.o = Options{SegmentBytes: 8192, FrameBytes: 1, FreshBytes: 4096, RunBytes: 6000, RunBlockBytes: 1024,
		MaxRuns: 3, SlackBytes: 1 << 30}
	w.s, w.disk = openFake(t, w.o)
	given := make(chan struct{})
	t.Cleanup(func() { close(given) })
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	w.disk.rule = func(call, name string, _ int) error {
		if _, ok := parseRunName(name); !ok {
			return nil
		}
		switch call {
		case "create":
			open := make(chan struct{})
			w.writing <- open
			w.disk.mu.Unlock()
			select {
			case <-open:
			case <-given: // the test failed
			}
			w.disk.mu.Lock()
		case "remove", "punch": // where the log ended earlier, all of a run may be needed
			return errIO
		}
		return nil
	}
	w.s.SetOwner(ownerOfNothing{})
	return w
}

// round appends some entries and does other things, the most of them while runs are
// written.
func (w *endings) round(n int64) {
	for range 15 {
		w.append(10*n + w.rnd.Int64N([]int64{15, 400}[w.rnd.IntN(2)]))
		for w.isWriting(func() { w.others(n) }) {
		}
	}
	w.others(n)
}

// isWriting does something if a run is about to be written.
func (w *endings) isWriting(do func()) bool {
	synctest.Wait()
	select {
	case open := <-w.writing:
		before := len(w.changes)
		do()
		w.meanwhile += len(w.changes) - before
		close(open)
		return true
	default:
		return false
	}
}

func (w *endings) others(n int64) {
	w.pop(10*n + 5)
	w.cancel()
	w.cancel()
	w.release()
	if w.rnd.IntN(20) == 0 && len(w.dropped) < 3 {
		w.dropExchange()
	}
}

func (w *endings) note(lsn LSN, gone, comes string) {
	w.changes = append(w.changes, ending{lsn, gone, comes})
}

func waits(k Key) string { return fmt.Sprintf("entry %d due %d", k.Seq, k.Due) }

func (w *endings) append(due int64) {
	ex := uint32(w.rnd.IntN(9))
	if slices.Contains(w.dropped, ex) {
		ex = 1
	}
	m := &Message{Exchange: []byte("ex"), Body: make([]byte, 60+w.rnd.IntN(80)), ExchangeID: ex, TTL: -1}
	k, lsn, err := w.s.AppendDelayed(m, due)
	if err != nil {
		w.t.Fatal(err)
	}
	w.waiting = append(w.waiting, Due{Key: k, ExchangeID: ex})
	w.note(lsn, "", waits(k))
	if err := w.s.Wait(w.t.Context(), lsn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *endings) pop(now int64) {
	popped := w.s.PopDue(now, w.rnd.IntN(8), nil)
	w.flying = append(w.flying, popped...)
	w.waiting = slices.DeleteFunc(w.waiting, func(d Due) bool {
		return slices.ContainsFunc(popped, func(p Due) bool { return p.Key == d.Key })
	})
}

func (w *endings) cancel() {
	if len(w.waiting) == 0 {
		return
	}
	i := w.rnd.IntN(len(w.waiting))
	k := w.waiting[i].Key
	out, lsn, err := w.s.Cancel(k)
	if out != Cancelled || err != nil {
		w.t.Fatalf("cancel %v: %v, %v", k, out, err)
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	w.note(lsn, waits(k), "")
}

// release ends the first of what is in flight, in one group.
func (w *endings) release() {
	var changes []ending
	b := &Batch{}
	n := w.rnd.IntN(len(w.flying) + 1)
	for _, d := range w.flying[:n] {
		c := ending{gone: waits(d.Key)}
		switch w.rnd.IntN(3) {
		case 0:
			b.Discard(d.Key, d.Ref)
		case 1:
			k := Key{d.Key.Due + 200, d.Key.Seq}
			b.Retry(d.Key, d.Ref, k.Due)
			c.comes = waits(k)
			w.waiting = append(w.waiting, Due{Key: k, ExchangeID: d.ExchangeID})
		default:
			b.Move(&Move{Key: d.Key, Ref: d.Ref, TTL: -1, Persistent: true, Targets: []Target{{1, d.Key.Seq}}, Holds: 1})
			c.comes = fmt.Sprint("message ", d.Key.Seq)
		}
		changes = append(changes, c)
	}
	lsn, err := w.s.Commit(b)
	if err != nil {
		w.t.Fatal(err)
	}
	w.flying = w.flying[n:]
	for _, c := range changes {
		w.note(lsn, c.gone, c.comes)
	}
}

// dropExchange drops one of which nothing is in flight: that may be retried, and ends
// then.
func (w *endings) dropExchange() {
	ex := uint32(3 * len(w.dropped))
	if slices.ContainsFunc(w.flying, func(d Due) bool { return d.ExchangeID == ex }) {
		return
	}
	b := &Batch{}
	b.DropExchange(ex)
	lsn, err := w.s.Commit(b)
	if err != nil {
		w.t.Fatal(err)
	}
	w.dropped = append(w.dropped, ex)
	w.waiting = slices.DeleteFunc(w.waiting, func(d Due) bool {
		if d.ExchangeID == ex {
			w.note(lsn, waits(d.Key), "")
		}
		return d.ExchangeID == ex
	})
}

// check opens a directory of which the log ends with a frame.
func (w *endings) check(d *fakeDisk, lsn LSN) {
	t := w.t
	t.Helper()
	want := map[string]bool{}
	for _, c := range w.changes {
		if c.lsn > lsn {
			break
		}
		delete(want, c.gone)
		if c.comes != "" {
			want[c.comes] = true
		}
	}
	s, err := Open(d, "d", w.o)
	if err != nil {
		t.Fatalf("the log ends with %d: %v", lsn, err)
	}
	defer s.Abandon()
	rec := s.Recovered()
	if len(rec.Damages) > 0 {
		t.Fatalf("the log ends with %d: damages %+v", lsn, rec.Damages)
	}
	counted := s.PendingTotal().Count
	var got []string
	popped := s.PopDue(maxDue, 1<<20, nil)
	for _, e := range popped {
		got = append(got, waits(e.Key))
	}
	entries, err := leftIn(rec, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if r, err := s.Read(e.Ref, nil); err != nil || r.Key.Seq != e.Pos {
			t.Fatalf("the log ends with %d: message %d: %+v, %v", lsn, e.Pos, r.Key, err)
		}
		got = append(got, fmt.Sprint("message ", e.Pos))
	}
	slices.Sort(got)
	if diff := gocmp.Diff(slices.Sorted(maps.Keys(want)), got); diff != "" || counted != uint64(len(popped)) {
		t.Fatalf("the log ends with %d: counted %d, popped %d (- want, + got):\n%s", lsn, counted, len(popped), diff)
	}
}

// frameEnd is where a frame ends.
type frameEnd struct {
	file string
	end  int64
	lsn  LSN
}

// frameEnds returns the ends of all frames of an undamaged log.
func frameEnds(d *fakeDisk) (list []frameEnd) {
	for name, f := range d.dir {
		h, ok := parseSegmentHeader(f.data, crcTable())
		if !ok || !strings.HasSuffix(name, segmentName(h.id)) {
			continue
		}
		for at := segmentHeaderBytes; ; {
			fr, ok := frameAt(f.data[at:], h.salt(), crcTable())
			if !ok {
				break
			}
			at += fr.length
			list = append(list, frameEnd{name, int64(at), fr.lsn})
		}
	}
	slices.SortFunc(list, func(a, b frameEnd) int { return cmp.Compare(a.lsn, b.lsn) })
	return list
}

// endingAt returns the disk as if no frame behind one had ever been written.
func (d *fakeDisk) endingAt(ends []frameEnd, last int) *fakeDisk {
	n := newFakeDisk(1)
	for name, f := range d.dir {
		n.dir[name] = &inode{data: bytes.Clone(f.data), dirty: map[int]bool{}, synced: true}
	}
	from := map[string]int64{}
	for i, e := range ends {
		if i <= last {
			from[e.file] = e.end
		} else if _, begun := from[e.file]; !begun {
			from[e.file] = 0
		}
	}
	for name, at := range from {
		clear(n.dir[name].data[at:])
	}
	for _, f := range n.dir {
		f.stable = bytes.Clone(f.data)
	}
	n.durable = maps.Clone(n.dir)
	return n
}
