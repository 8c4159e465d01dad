package store

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func openFake(t *testing.T, o Options) (*Store, *fakeDisk) {
	t.Helper()
	d := newFakeDisk(1)
	s, err := Open(d, "d", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Abandon)
	return s, d
}

// syncs counts the syncs of log files from now on.
func (d *fakeDisk) countSyncs() *atomic.Int64 {
	n := new(atomic.Int64)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rule = func(call, _ string, _ int) error {
		if call == "sync" {
			n.Add(1)
		}
		return nil
	}
	return n
}

// TestLazyCommit: what nobody waits for is on the disk after LazyCommit, no
// earlier, and an idle store does nothing.
func TestLazyCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := openFake(t, Options{})
		synctest.Wait()
		syncs := d.countSyncs()
		time.Sleep(time.Hour)
		if syncs.Load() != 0 {
			t.Fatalf("%d syncs while nothing happened", syncs.Load())
		}
		before := s.Durable()
		for range 10 {
			s.Settle(1, []uint64{5}, nil)
			time.Sleep(time.Millisecond)
		}
		if s.Durable() != before || syncs.Load() != 0 {
			t.Fatal("committed at once although nobody waits")
		}
		time.Sleep(11 * time.Millisecond)
		synctest.Wait()
		if s.Durable() == before || syncs.Load() != 1 {
			t.Fatalf("not committed after LazyCommit; %d syncs", syncs.Load())
		}
		time.Sleep(time.Hour)
		if syncs.Load() != 1 {
			t.Fatalf("%d syncs", syncs.Load())
		}
	})
}

type recorder struct {
	mu    sync.Mutex
	calls []LSN
	errs  []error
}

func (r *recorder) Committed(durable LSN, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls, r.errs = append(r.calls, durable), append(r.errs, err)
}

// TestNotifyOnce: each waiter is told once, after the sync, and what gathers
// during a commit shares the next.
func TestNotifyOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := openFake(t, Options{})
		synctest.Wait()
		syncs := d.countSyncs()
		var rs [50]recorder
		var last LSN
		for i := range rs {
			_, lsn, err := s.Append(&Message{TTL: -1}, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			s.Notify(lsn, &rs[i])
			last = lsn
		}
		synctest.Wait()
		for i := range rs {
			if len(rs[i].calls) != 1 || rs[i].errs[0] != nil {
				t.Fatalf("waiter %d: %v, %v", i, rs[i].calls, rs[i].errs)
			}
		}
		if syncs.Load() > 3 {
			t.Fatalf("%d syncs for 50 waiters", syncs.Load())
		}
		var r recorder
		s.Notify(last, &r)
		if len(r.calls) != 1 || r.calls[0] < last {
			t.Fatalf("already durable: %v", r.calls)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Wait(ctx, last+100); !errors.Is(err, context.Canceled) {
			t.Fatalf("wait: %v", err)
		}
		if n := len(s.log.waiters); n != 0 {
			t.Fatalf("%d waiters left behind", n)
		}
		s.Notify(last+100, &r)
		s.Abandon()
		if len(r.errs) != 2 || !errors.Is(r.errs[1], ErrClosed) {
			t.Fatalf("waiter at Abandon: %v", r.errs)
		}
	})
}

// TestLargeMessages: bodies far beyond a segment, among small ones.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(OS(), dir, Options{SegmentBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{0, 10, 1 << 20, 3, 24 << 20, 5, 1<<20 - 64 - 32 - 48, 1<<20 - 64 - 32 - 40}
	for i, n := range sizes {
		body := bytes.Repeat([]byte{byte(i)}, n)
		if _, _, err := s.Append(&Message{Body: body, TTL: -1}, []Target{{1, uint64(i)}}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Append(&Message{Exchange: bytes.Repeat([]byte("x"), 256)}, nil, 0); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("name of 256 bytes: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(OS(), dir, Options{SegmentBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	entries, err := leftIn(s.Recovered(), 1)
	if err != nil || len(entries) != len(sizes) {
		t.Fatalf("%d entries", len(entries))
	}
	for i, e := range entries {
		rec, err := s.Read(e.Ref, nil)
		if err != nil || !bytes.Equal(rec.Body, bytes.Repeat([]byte{byte(i)}, sizes[i])) {
			t.Fatalf("message %d: %d bytes, %v", i, len(rec.Body), err)
		}
	}
}

// TestRecord: every field comes back, from memory and from the disk.
func TestRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(OS(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := Message{
		Exchange: []byte("ex"), RoutingKey: []byte("a.key"), Props: []byte{1, 2, 3}, Body: []byte("body"),
		ExchangeID: 77, Arrived: 123456789, TTL: 60_000, Persistent: true,
	}
	ref, _, err := s.Append(&m, []Target{{1, 0}, {2, 1 << 40}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	k, _, err := s.AppendDelayed(&m, 42)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := s.AppendTransient(&m, 1)
	if err != nil {
		t.Fatal(err)
	}
	check := func(ref Ref, key Key) {
		t.Helper()
		rec, err := s.Read(ref, nil)
		rec.Buf = nil
		want := Record{Message: m, ExchangeAndKey: []byte("\x02ex\x05a.key"), Key: key}
		if diff := cmp.Diff(want, rec); err != nil || diff != "" {
			t.Fatalf("%v (- want, + got)\n%s", err, diff)
		}
	}
	check(tr, Key{})
	for range 2 {
		check(ref, Key{})
		due := s.PopDue(100, 10, nil)
		if len(due) != 1 || due[0].Key != k || due[0].ExchangeID != 77 {
			t.Fatalf("due: %+v", due)
		}
		check(due[0].Ref, k)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(OS(), dir, Options{}); err != nil {
			t.Fatal(err)
		}
		rec := s.Recovered()
		for i, q := range rec.Queues {
			entries, err := leftIn(rec, q.ID)
			if err != nil || len(entries) != 1 {
				t.Fatalf("queue %d: %+v, %v", q.ID, entries, err)
			}
			e := entries[0]
			if e.Ref != ref || e.Arrived != m.Arrived || e.TTL != m.TTL || !e.Persistent || q.ID != uint32(i+1) || q.Next != e.Pos+1 {
				t.Fatalf("entry: %+v", q)
			}
		}
	}
	s.Abandon()
}

// TestFastStart: an empty directory is ready with one small step.
func TestFastStart(t *testing.T) {
	t.Parallel()
	d := newFakeDisk(1)
	wrote := 0
	d.rule = func(call, _ string, _ int) error {
		if call == "write" {
			wrote++
		}
		return nil
	}
	s, err := Open(d, "d", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	d.mu.Lock()
	defer d.mu.Unlock()
	if wrote > 0 {
		t.Fatalf("%d writes before anything was stored", wrote)
	}
}

// TestCleanerGivesBack: one message in fifty is never settled; the log comes
// back to twice what is live and the slack, and nothing of it is lost.
func TestCleanerGivesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := Options{SegmentBytes: 4096, FrameBytes: 1024, SlackBytes: 16 << 10}
		r := newRig(t, 1, o)
		if !r.open() {
			t.Fatal("power gone")
		}
		defer func() { r.s.Abandon() }()
		r.queues, r.nextQ = []uint32{1}, 2
		for i := range 2000 {
			r.stepAppendSmall()
			r.history = r.history[len(r.history)-1:]
			if i%16 == 15 {
				r.stepWait()
			}
		}
		grown := r.s.Stats()
		for p := range uint64(2000) {
			if p%50 == 0 {
				continue
			}
			r.mu.Lock()
			ref := r.refs[Target{1, p}]
			r.mu.Unlock()
			r.s.Settle(1, []uint64{p}, []Ref{ref})
			r.ended(1, []uint64{p})
			delete(r.model.queues, Target{1, p})
		}
		r.note(0)
		time.Sleep(time.Second)
		synctest.Wait()
		st := r.s.Stats()
		if st.LogBytes > 2*st.LiveBytes+o.SlackBytes+2*o.SegmentBytes || st.LogBytes > grown.LogBytes/4 {
			t.Fatalf("log has %d bytes, %d live; before %d", st.LogBytes, st.LiveBytes, grown.LogBytes)
		}
		if st.Copied < 40 {
			t.Fatalf("%d copied", st.Copied)
		}
		r.check()
		r.s.Abandon()
		r.disk = r.disk.reboot(3)
		r.survive()
	})
}

// TestAllocations: the hot ways allocate nothing per message.
func TestAllocations(t *testing.T) {
	s, err := Open(OS(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	m := &Message{Exchange: []byte("x"), RoutingKey: []byte("k"), Body: bytes.Repeat([]byte("b"), 256), TTL: 5, Persistent: true}
	targets, pos, refs := []Target{{1, 0}}, []uint64{0}, []Ref{{}}
	var due []Due
	var b Batch
	ways := map[string]func(){
		"append": func() {
			ref, _, err := s.Append(m, targets, 1)
			if err != nil {
				t.Fatal(err)
			}
			targets[0].Pos++
			pos[0], refs[0] = targets[0].Pos, ref
		},
		"settle": func() { s.Settle(1, pos, refs) },
		"read": func() {
			if _, err := s.Read(refs[0], nil); err != nil {
				t.Fatal(err)
			}
		},
		"transient": func() {
			ref, err := s.AppendTransient(m, 1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Read(ref, nil); err != nil {
				t.Fatal(err)
			}
			s.Drop(ref)
		},
		"delayed": func() {
			if _, _, err := s.AppendDelayed(m, 5); err != nil {
				t.Fatal(err)
			}
			due = s.PopDue(10, 1, due[:0])
			b.Reset()
			b.Move(&Move{Key: due[0].Key, Ref: due[0].Ref, TTL: -1, Targets: targets, Holds: 1})
			if _, err := s.Commit(&b); err != nil {
				t.Fatal(err)
			}
		},
	}
	for _, name := range strings.Fields("append settle read transient delayed") {
		ways[name]()
		if n := testing.AllocsPerRun(2000, ways[name]); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestScratchFilesVanish: what a killed process left is removed at Open.
func TestScratchFilesVanish(t *testing.T) {
	t.Parallel()
	d := newFakeDisk(1)
	if _, err := d.Create(filepath.Join("d", "scratch-0000000001-5"), 10); err != nil {
		t.Fatal(err)
	}
	s, err := Open(d, "d", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dir["d/scratch-0000000001-5"] != nil {
		t.Fatal("still there")
	}
}

// TestSequenceSurvivesCleaning: a number is not given out again even if every
// record that had it is gone from the log.
func TestSequenceSurvivesCleaning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := openFake(t, tiny())
		s.SetOwner(ownerOfNothing{})
		k, _, err := s.AppendDelayed(&Message{TTL: -1}, 5)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Cancel(k); err != nil {
			t.Fatal(err)
		}
		for range 400 {
			_, lsn, err := s.Append(&Message{TTL: -1}, nil, 0)
			if err != nil || s.Wait(t.Context(), lsn) != nil {
				t.Fatal(err)
			}
		}
		if s.Stats().Cleaned < 3 {
			t.Fatal("nothing was cleaned")
		}
		s.Abandon()
		s, err = Open(d.kill(1), "d", tiny())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Abandon()
		again, _, err := s.AppendDelayed(&Message{TTL: -1}, 5)
		if err != nil || again.Seq <= k.Seq {
			t.Fatalf("%v after %v, %v", again, k, err)
		}
	})
}
