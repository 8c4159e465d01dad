package store

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

func largeMessage(n int) *Message {
	return &Message{Exchange: []byte("ex"), Props: []byte("props"), Body: bytes.Repeat([]byte("x"), n), TTL: -1, Persistent: true}
}

// gate holds up the calls of one kind to files with a prefix.
type gate struct {
	arrived chan struct{} // one of them is there
	open    chan struct{}
}

func (d *fakeDisk) gate(call, prefix string) *gate {
	g := &gate{make(chan struct{}, 1000), make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rule = func(c, name string, _ int) error {
		if c == call && strings.HasPrefix(name, prefix) {
			g.arrived <- struct{}{}
			d.mu.Unlock()
			<-g.open
			d.mu.Lock()
		}
		return nil
	}
	return g
}

// TestSmallPassLarge: while a large body is on its way to the disk, however long
// that takes, small messages are committed, and others find their own large ones
// a place.
func TestSmallPassLarge(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"write", "sync", "create"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, d := openFake(t, Options{BodyFileBytes: 1 << 20})
				g := d.gate(call, "body-")
				done := make(chan LSN)
				go func() {
					_, lsn, err := s.Append(largeMessage(3<<20), []Target{{1, 0}}, 1)
					if err != nil {
						t.Error(err)
					}
					done <- lsn
				}()
				<-g.arrived
				for i := range uint64(100) {
					_, lsn, err := s.Append(message256(), []Target{{2, i}}, 1)
					if err != nil {
						t.Fatal(err)
					}
					if err := s.Wait(t.Context(), lsn); err != nil {
						t.Fatal(err)
					}
					if _, _, err := s.AppendDelayed(message256(), 5); err != nil {
						t.Fatal(err)
					}
				}
				before := s.Durable()
				close(g.open)
				if lsn := <-done; lsn <= before {
					t.Errorf("the record of the large one is in frame %d, before it was on the disk", lsn)
				}
			})
		})
	}
}

// TestLargeIsNotInTheLog: what a large message costs in the log and in runs is
// its record, through all its life.
func TestLargeIsNotInTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := openFake(t, Options{BodyFileBytes: 1 << 20})
		const n = 1 << 20
		m := largeMessage(n)
		m.ExchangeID = 3
		key, _, err := s.AppendDelayed(m, 5)
		if err != nil {
			t.Fatal(err)
		}
		if p := s.Pending(3); p.Count != 1 || p.Bytes < n || s.PendingTotal().Bytes < n {
			t.Errorf("pending %+v, total %+v", p, s.PendingTotal())
		}
		due := s.PopDue(10, 10, nil)
		b := &Batch{}
		b.Retry(key, due[0].Ref, 7)
		if _, err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
		due = s.PopDue(10, 10, nil)
		b.Reset()
		b.Move(&Move{Key: due[0].Key, Ref: due[0].Ref, TTL: -1, Targets: []Target{{1, 0}}, Holds: 1})
		if _, err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
		head, err := s.ReadHead(b.Refs[0], nil)
		if err != nil || head.Body != nil || head.BodyLen() != n || string(head.Props) != "props" {
			t.Fatalf("head: %d bytes of %d, %v", len(head.Body), head.BodyLen(), err)
		}
		again := head.Message // as a dead letter
		ref := b.Refs[0]
		b.Reset()
		b.Append(&again, []Target{{2, 0}}, 1)
		b.Settle(1, 0, ref)
		if _, err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
		copied, err := s.AppendTransient(&again, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range []Ref{b.Refs[0], copied} {
			if rec, err := s.Read(ref, nil); err != nil || !bytes.Equal(rec.Body, m.Body) {
				t.Errorf("read: %d bytes, %v", len(rec.Body), err)
			}
		}
		if st := s.Stats(); st.AppendedBytes > 1000 || st.LiveBodyBytes != n {
			t.Errorf("%d bytes in the log, %d of bodies", st.AppendedBytes, st.LiveBodyBytes)
		}
		s.Settle(2, []uint64{0}, b.Refs[:1])
		synctest.Wait()
		if st := s.Stats(); st.LiveBodyBytes != 0 {
			t.Errorf("%d bytes of bodies are left", st.LiveBodyBytes)
		}
	})
}

// TestBodiesAreGivenBack: space comes back body by body and file by file, also
// what a dropped queue or exchange and a cancelled entry had, and what an earlier
// process left.
func TestBodiesAreGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := Options{BodyFileBytes: 1 << 20, SegmentBytes: 64 << 10, LargeBytes: 32 << 10}
		s, d := openFake(t, o)
		var refs []Ref
		for i := range uint64(40) {
			ref, _, err := s.Append(largeMessage(100<<10), []Target{{1, i}, {2, i}}, 2)
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, ref)
		}
		var keys []Key
		for i := range 20 {
			m := largeMessage(100 << 10)
			m.ExchangeID = uint32(7 + i%2)
			k, _, err := s.AppendDelayed(m, 5)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, k)
		}
		full := s.Stats()
		for i := range 39 { // one is forgotten
			s.Settle(1, []uint64{uint64(i)}, refs[i:i+1])
		}
		synctest.Wait()
		if st := s.Stats(); st.LiveBodyBytes != full.LiveBodyBytes {
			t.Fatalf("%d bytes left of %d while queue 2 needs all", st.LiveBodyBytes, full.LiveBodyBytes)
		}
		b := &Batch{}
		b.DropQueue(2)
		b.DropExchange(7)
		if _, err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			if _, _, err := s.Cancel(k); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		st := s.Stats()
		if one := alignBlock(100 << 10); st.LiveBodyBytes != one || st.BodyFiles > 2 {
			t.Fatalf("%d bytes in %d files are left, want %d in 2", st.LiveBodyBytes, st.BodyFiles, one)
		}
		if used := d.notZero("body-"); used > 2*bodyBlock+100<<10 {
			t.Errorf("%d bytes are not given back", used)
		}
		s.Abandon()
		s2, err := Open(d.kill(1), "d", o)
		if err != nil {
			t.Fatal(err)
		}
		defer s2.Abandon()
		if left, err := leftIn(s2.Recovered(), 1); err != nil || len(left) != 1 || left[0].Body != 100<<10 {
			t.Fatalf("recovered %+v, %v", left, err)
		}
		s2.SetOwner(ownerOfNothing{}) // as one that dropped it without a word
		synctest.Wait()
		if st := s2.Stats(); st.LiveBodyBytes != 0 || st.BodyFiles != 0 {
			t.Errorf("%d bytes in %d files are left", st.LiveBodyBytes, st.BodyFiles)
		}
	})
}

// notZero returns how many bytes the blocks of files have that are not all zero.
func (d *fakeDisk) notZero(prefix string) (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, f := range d.dir {
		if !strings.Contains(name, prefix) {
			continue
		}
		for b := f.data; len(b) > 0; b = b[min(bodyBlock, len(b)):] {
			if len(bytes.Trim(b[:min(bodyBlock, len(b))], "\x00")) > 0 {
				n += bodyBlock
			}
		}
	}
	return n
}

// TestLargeOnFullDisk: a large message is refused while there is no room for its
// body; small ones and acknowledgements go on.
func TestLargeOnFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := openFake(t, Options{SegmentBytes: 64 << 10, LargeBytes: 1 << 10, BodyFileBytes: 64 << 10})
		synctest.Wait()
		d.mu.Lock()
		d.size = d.used() + 64<<10 + 100
		d.mu.Unlock()
		var refs []Ref
		for {
			ref, lsn, err := s.Append(largeMessage(10_000), []Target{{1, uint64(len(refs))}}, 1)
			if errors.Is(err, ErrFull) {
				break
			}
			if err != nil || s.Wait(t.Context(), lsn) != nil {
				t.Fatal(err)
			}
			refs = append(refs, ref)
		}
		if len(refs) != 5 {
			t.Fatalf("%d messages in a file of 15 blocks", len(refs))
		}
		b := &Batch{}
		b.Append(message256(), []Target{{2, 0}}, 1)
		b.Append(largeMessage(10_000), []Target{{2, 1}}, 1)
		for range 2 { // it may be tried again
			if _, err := s.Commit(b); !errors.Is(err, ErrFull) {
				t.Fatalf("commit: %v", err)
			}
		}
		if _, _, err := s.AppendDelayed(largeMessage(10_000), 1); !errors.Is(err, ErrFull) {
			t.Fatalf("append delayed: %v", err)
		}
		if _, lsn, err := s.Append(message256(), nil, 0); err != nil || s.Wait(t.Context(), lsn) != nil {
			t.Fatal("a small message is refused", err)
		}
		for i, ref := range refs {
			s.Settle(1, []uint64{uint64(i)}, []Ref{ref})
		}
		synctest.Wait()
		d.mu.Lock()
		d.size += 64 << 10
		d.mu.Unlock()
		if !s.Stats().Full {
			t.Error("publishers are not held back")
		}
		if _, err := s.Commit(b); err != nil {
			t.Fatalf("there is room again: %v", err)
		}
		synctest.Wait()
		if s.Stats().Full {
			t.Error("publishers are still held back")
		}
		if rec, err := s.Read(b.Refs[1], nil); err != nil || len(rec.Body) != 10_000 {
			t.Fatalf("%d bytes, %v", len(rec.Body), err)
		}
	})
}

// TestDamagedBody: it is told by file and offset, and is the only one lost.
func TestDamagedBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := openFake(t, Options{BodyFileBytes: 1 << 20})
		var refs []Ref
		for i := range uint64(3) {
			ref, lsn, err := s.Append(largeMessage(50_000), []Target{{1, i}}, 1)
			if err != nil || s.Wait(t.Context(), lsn) != nil {
				t.Fatal(err)
			}
			refs = append(refs, ref)
		}
		head, err := s.ReadHead(refs[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		d.flip(bodyName(head.Large.File), head.Large.offset()+7)
		for i, ref := range refs {
			rec, err := s.Read(ref, nil)
			if i != 1 {
				if err != nil || len(rec.Body) != 50_000 {
					t.Errorf("message %d: %d bytes, %v", i, len(rec.Body), err)
				}
				continue
			}
			var c *CorruptError
			if !errors.As(err, &c) || c.File != bodyName(head.Large.File) || c.Offset != head.Large.offset() {
				t.Errorf("damaged body: %v", err)
			}
		}
		m := largeMessage(50_000)
		m.ExchangeID = 1
		_, lsn, err := s.AppendDelayed(m, 5)
		if err != nil || s.Wait(t.Context(), lsn) != nil {
			t.Fatal(err)
		}
		s.Abandon()
		d = d.kill(1)
		rep, err := Check(d, "d")
		if err != nil || rep.Bodies != 4 || len(rep.Damages) != 1 ||
			rep.Damages[0].File != bodyName(head.Large.File) || rep.Damages[0].Offset != head.Large.offset() {
			t.Errorf("check: %+v, %v", rep, err)
		}
		delete(d.dir, "d/"+bodyName(head.Large.File))
		if rep, err = Check(d, "d"); err != nil || len(rep.Damages) != 4 {
			t.Errorf("check without the file: %+v, %v", rep, err)
		}
		s2, err := Open(d, "d", Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s2.Abandon()
		if dm := s2.Recovered().Damages; len(dm) != 1 || dm[0].File != bodyName(head.Large.File) || dm[0].Records != 1 {
			t.Errorf("the file is gone: %+v", dm)
		}
		if _, err := s2.Read(refs[0], nil); !IsCorruption(err) {
			t.Errorf("read: %v", err)
		}
	})
}

// TestCloseDuringLarge: a store that closes does not wait for a body, and the
// publisher is told.
func TestCloseDuringLarge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := openFake(t, Options{BodyFileBytes: 1 << 20})
		g := d.gate("write", "body-")
		done := make(chan error)
		go func() {
			_, _, err := s.Append(largeMessage(5<<20), []Target{{1, 0}}, 1)
			done <- err
		}()
		<-g.arrived
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		close(g.open)
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Errorf("append: %v", err)
		}
	})
}

// TestBodyOutlivesItsRecord: what waits in runs keeps its body when the segment
// goes that named it, through restarts and until it ends.
func TestBodyOutlivesItsRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := tiny()
		o.BodyFileBytes = 256 << 10
		s, d := openFake(t, o)
		s.SetOwner(ownerOfNothing{})
		const n = 200
		for range n {
			m := largeMessage(300)
			m.ExchangeID = 1
			if _, _, err := s.AppendDelayed(m, 5); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for round := range 3 {
			for range 300 { // the log turns over
				if _, _, err := s.Append(&Message{Body: make([]byte, 150), TTL: -1}, nil, 0); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			if st := s.Stats(); st.Cleaned == 0 || st.Runs == 0 || st.LiveBodyBytes != n*bodyBlock {
				t.Fatalf("round %d: %+v", round, st)
			}
			s.Abandon()
			d = d.kill(uint64(round))
			var err error
			if s, err = Open(d, "d", o); err != nil {
				t.Fatal(err)
			}
			s.SetOwner(ownerOfNothing{})
			synctest.Wait()
		}
		all := s.PopDue(10, n+1, nil)
		if len(all) != n {
			t.Fatalf("popped %d of %d", len(all), n)
		}
		b := &Batch{}
		for _, p := range all {
			if rec, err := s.Read(p.Ref, nil); err != nil || len(rec.Body) != 300 {
				t.Fatalf("%+v: %d bytes, %v", p, len(rec.Body), err)
			}
			b.Discard(p.Key, p.Ref)
		}
		if _, err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if st := s.Stats(); st.LiveBodyBytes != 0 {
			t.Errorf("%d bytes of bodies are left", st.LiveBodyBytes)
		}
		s.Abandon()
	})
}

// TestBodyOutlivesADamagedClaim: where what the log said of large bodies is damaged,
// the runs tell of them, and the log has it again before the damaged part goes.
func TestBodyOutlivesADamagedClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := tiny()
		o.BodyFileBytes = 256 << 10
		s, d := openFake(t, o)
		s.SetOwner(ownerOfNothing{})
		const n = 100
		turn := func() { // the log turns over
			t.Helper()
			for range 300 {
				_, lsn, err := s.Append(&Message{Body: make([]byte, 150), TTL: -1}, nil, 0)
				if err != nil || s.Wait(t.Context(), lsn) != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
		}
		for range n {
			m := largeMessage(300)
			m.ExchangeID = 1
			if _, lsn, err := s.AppendDelayed(m, 5); err != nil || s.Wait(t.Context(), lsn) != nil {
				t.Fatal(err)
			}
		}
		turn()
		if s.Stats().Flushed < n/2 {
			t.Fatalf("the test does not test runs: %+v", s.Stats())
		}
		s.Abandon()
		d = d.kill(1)
		claims := 0
		err := Dump(d, "d", DumpOptions{}, func(r *Dumped) error {
			if r.Kind == "claim" {
				claims++
				d.flip(r.File, r.Offset+18)
			}
			return nil
		})
		if err != nil || claims == 0 {
			t.Fatalf("%d claims, %v", claims, err)
		}
		for round := range 2 {
			if s, err = Open(d, "d", o); err != nil {
				t.Fatal(err)
			}
			if found := len(s.Recovered().Damages); (found > 0) != (round == 0) {
				t.Fatalf("round %d: %d damages", round, found)
			}
			s.SetOwner(ownerOfNothing{})
			turn()
			if round == 0 {
				s.Abandon()
				d = d.kill(2)
			}
		}
		all := s.PopDue(10, n+1, nil)
		if len(all) != n {
			t.Fatalf("popped %d of %d", len(all), n)
		}
		for _, p := range all {
			if rec, err := s.Read(p.Ref, nil); err != nil || len(rec.Body) != 300 {
				t.Fatalf("%+v: %d bytes, %v", p, len(rec.Body), err)
			}
		}
		s.Abandon()
	})
}
