package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

var errIO = errors.New("input/output error")

// TestFaultEverywhere lets every call of a workload fail once, with every error
// that fits, and opens the store again: what was confirmed is there.
func TestFaultEverywhere(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	faults := map[string][]error{
		"create": {errNoSpace, errIO}, "write": {errIO, errShort, errNoSpace}, "sync": {errIO},
		"syncdir": {errIO}, "reuse": {errIO, errNoSpace}, "remove": {errIO}, "read": {errIO},
		"open": {errIO}, "list": {errIO}, "size": {errIO},
	}
	for call, errs := range faults {
		for _, fault := range errs {
			for at, more := 1, true; more && at < 400; at++ {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, seed, tiny())
					defer func() { r.s.Abandon() }()
					defer func() {
						if t.Failed() {
							t.Logf("%v at the %dth %s", fault, at, call)
						}
					}()
					more = r.fault(call, fault, at)
				})
			}
		}
	}
}

// fault runs a workload in which the n-th call of a kind fails. It returns
// false if there were not so many.
func (r *rig) fault(call string, fault error, n int) (hit bool) {
	if !r.workload(60) {
		r.t.Fatal("power gone")
	}
	left := n
	r.disk = r.disk.kill(r.rnd.Uint64())
	r.disk.rule = func(c, _ string, _ int) error {
		if c != call {
			return nil
		}
		left--
		if left == 0 {
			hit = true
			return fault
		}
		return nil
	}
	r.faulty = true
	r.workload(40)
	r.faulty = false
	r.disk = r.disk.kill(r.rnd.Uint64())
	r.survive()
	return hit
}

// TestFailedSyncIsFatal: a sync that fails once and would succeed the next time
// must not be tried again.
func TestFailedSyncIsFatal(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"sync", "write"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 1, Options{})
			if !r.open() {
				t.Fatal("power gone")
			}
			defer func() { r.s.Abandon() }()
			m := &Message{Body: []byte("x"), TTL: -1}
			_, first, err := r.s.Append(m, nil, 0)
			if err != nil || r.s.Wait(t.Context(), first) != nil {
				t.Fatal("the disk is still good")
			}
			failing := true
			r.disk.mu.Lock()
			r.disk.rule = func(c, _ string, _ int) error {
				if c == call && failing {
					failing = false
					return errIO
				}
				return nil
			}
			r.disk.mu.Unlock()
			_, lsn, err := r.s.Append(m, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			var stopped *FailedError
			if err := r.s.Wait(t.Context(), lsn); !errors.As(err, &stopped) || !errors.Is(err, errIO) {
				t.Fatalf("wait: %v, want the failure", err)
			}
			if _, _, err := r.s.Append(m, nil, 0); !errors.As(err, &stopped) {
				t.Fatalf("append after the failure: %v", err)
			}
			if _, _, err := r.s.AppendDelayed(m, 1); !errors.As(err, &stopped) {
				t.Fatalf("append delayed after the failure: %v", err)
			}
			if err := r.s.Wait(t.Context(), lsn+1); !errors.As(err, &stopped) {
				t.Fatalf("wait after the failure: %v", err)
			}
			if err := r.s.Wait(t.Context(), first); err != nil {
				t.Fatalf("what was durable before: %v", err)
			}
			if err := r.s.Err(); err == nil || !strings.Contains(err.Error(), "store stopped") {
				t.Fatalf("Err() = %v", err)
			}
			r.s.Settle(1, []uint64{1}, []Ref{{}})
			if got := r.s.Durable(); got >= lsn {
				t.Fatalf("durable %d, but %d failed", got, lsn)
			}
			if err := r.s.Close(); !errors.As(err, &stopped) {
				t.Fatalf("close: %v, want the failure", err)
			}
		})
	}
}

// TestDiskFull: publishers are refused, everything that frees space works, and
// afterwards it goes on, without a restart and with nothing lost.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := tiny()
		var mu sync.Mutex
		var spoken []bool
		o.SpaceChanged = func(full bool) {
			mu.Lock()
			defer mu.Unlock()
			spoken = append(spoken, full)
		}
		o.ReserveSegments = 8 // 16 KiB: enough for what this test does on a full disk
		r := newRig(t, 1, o)
		r.disk.size = 30 * o.SegmentBytes
		if !r.open() {
			t.Fatal("power gone")
		}
		defer func() { r.s.Abandon() }()
		r.queues, r.nextQ, r.exs = []uint32{1}, 2, []uint32{1}
		var keys []Key
		for {
			k, lsn, err := r.s.AppendDelayed(&Message{Exchange: []byte("ex"), Props: []byte("props"), Body: []byte("1:delayed"), ExchangeID: 1, TTL: -1}, 5)
			if errors.Is(err, ErrFull) {
				break
			}
			r.add(k, &Message{ExchangeID: 1, Body: []byte("1:delayed")})
			r.ok(lsn, err)
			keys = append(keys, k)
			if !r.stepAppendSmall() {
				break
			}
		}
		if st := r.s.Stats(); !st.Full {
			t.Fatalf("refused, but not full: %+v", st)
		}
		b := &Batch{}
		b.Put("k", []byte("v"))
		if _, err := r.s.Commit(b); !errors.Is(err, ErrFull) {
			t.Fatalf("define on a full disk: %v", err)
		}

		// Cancels, moves and settles work; there are more than fit into one file.
		for _, k := range keys[:20] {
			out, lsn, err := r.s.Cancel(k)
			if out != Cancelled || err != nil {
				t.Fatalf("cancel on a full disk: %v, %v", out, err)
			}
			delete(r.model.pending, k.Seq)
			r.ok(lsn, nil)
		}
		for {
			r.flying = r.s.PopDue(10, 5, r.flying[:0])
			if len(r.flying) == 0 {
				break
			}
			b.Reset()
			for _, d := range r.flying {
				ts := r.place()
				b.Move(&Move{Key: d.Key, Ref: d.Ref, TTL: -1, Targets: ts, Holds: len(ts)})
			}
			lsn, err := r.s.Commit(b)
			if err != nil {
				t.Fatalf("move on a full disk: %v", err)
			}
			for i, d := range r.flying {
				r.pushed(b.moves[i].Targets, b.Refs[i], "1:delayed")
				delete(r.model.pending, d.Key.Seq)
			}
			r.note(lsn)
		}
		r.flying = nil
		for n := len(r.model.queues); n > 10; n = len(r.model.queues) {
			q, pos, refs := r.taken(8)
			r.s.Settle(q, pos, refs)
			r.ended(q, pos)
			r.note(0)
			r.stepWait()
			synctest.Wait()
		}
		if lost := r.s.Stats().LostSettles; lost != 0 {
			t.Fatalf("%d settles lost", lost)
		}
		for range 100 {
			if !r.stepAppendSmall() {
				t.Fatalf("no space although all is settled: %+v", r.s.Stats())
			}
			r.stepWait()
		}
		mu.Lock()
		defer mu.Unlock()
		if len(spoken) < 2 || !spoken[0] || spoken[len(spoken)-1] {
			t.Fatalf("SpaceChanged: %v", spoken)
		}
		r.check()
		r.s.Abandon()
		r.disk = r.disk.kill(2)
		r.survive()
	})
}

// stepAppendSmall appends one message; false if the disk is full.
func (r *rig) stepAppendSmall() bool {
	r.n++
	m := &Message{Exchange: []byte("ex"), Props: []byte("props"), Body: fmt.Appendf(nil, "%d:small", r.n), TTL: -1}
	ts := r.place()
	ref, lsn, err := r.s.Append(m, ts, len(ts))
	if errors.Is(err, ErrFull) {
		for _, t := range ts {
			r.ended(t.Queue, []uint64{t.Pos})
		}
		return false
	}
	r.pushed(ts, ref, string(m.Body))
	return r.ok(lsn, err)
}
