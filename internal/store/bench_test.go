package store

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func benchStore(b *testing.B) *Store {
	s, err := Open(OS(), b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	s.Recovered()
	s.SetOwner(ownerOfNothing{})
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// cpu reports the processor time of the whole process per operation: on a busy
// machine the only figure that means something.
func cpu(b *testing.B) func() {
	start := processTime(b)
	return func() { b.ReportMetric(float64(processTime(b)-start)/float64(b.N), "cpu-ns/op") }
}

func processTime(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

type ownerOfNothing struct{}

func (ownerOfNothing) Holds(uint32, uint64) bool              { return false }
func (ownerOfNothing) Relocate(uint32, uint64, Ref, Ref) bool { return false }

func message256() *Message {
	return &Message{
		Exchange: []byte("orders"), RoutingKey: []byte("order.created"), Props: bytes.Repeat([]byte{1}, 30),
		Body: bytes.Repeat([]byte("x"), 256), Arrived: 1, TTL: -1, Persistent: true,
	}
}

// BenchmarkAppend is the hot path: one publisher that waits for nothing, and
// messages that are settled at once.
func BenchmarkAppend(b *testing.B) {
	s, m := benchStore(b), message256()
	targets, pos, refs := []Target{{Queue: 1}}, []uint64{0}, []Ref{{}}
	b.SetBytes(256)
	b.ReportAllocs()
	defer cpu(b)()
	for b.Loop() {
		targets[0].Pos++
		ref, _, err := s.Append(m, targets, 1)
		if err != nil {
			b.Fatal(err)
		}
		pos[0], refs[0] = targets[0].Pos, ref
		s.Drop(ref)
	}
}

func BenchmarkAppendSettle(b *testing.B) {
	s, m := benchStore(b), message256()
	targets := []Target{{Queue: 1}}
	var pos [64]uint64
	var refs [64]Ref
	b.ReportAllocs()
	defer cpu(b)()
	n := 0
	for b.Loop() {
		targets[0].Pos++
		ref, _, err := s.Append(m, targets, 1)
		if err != nil {
			b.Fatal(err)
		}
		pos[n], refs[n] = targets[0].Pos, ref
		if n++; n == len(pos) {
			s.Settle(1, pos[:], refs[:])
			n = 0
		}
	}
}

// BenchmarkRead reads resident records.
func BenchmarkRead(b *testing.B) {
	s, m := benchStore(b), message256()
	ref, _, err := s.Append(m, []Target{{1, 1}}, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	defer cpu(b)()
	for b.Loop() {
		if _, err := s.Read(ref, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendTransient(b *testing.B) {
	s, m := benchStore(b), message256()
	b.ReportAllocs()
	defer cpu(b)()
	for b.Loop() {
		ref, err := s.AppendTransient(m, 1)
		if err != nil {
			b.Fatal(err)
		}
		s.Drop(ref)
	}
}

// inFlight is a publisher's connection: it has up to 64 messages unconfirmed.
type inFlight struct {
	mu   sync.Mutex
	cond sync.Cond
	done LSN
	err  error
}

func (f *inFlight) Committed(durable LSN, err error) {
	f.mu.Lock()
	f.done, f.err = durable, err
	f.cond.Signal()
	f.mu.Unlock()
}

// BenchmarkDurable has 16 connections with 64 messages each waiting for the disk.
func BenchmarkDurable(b *testing.B) {
	s := benchStore(b)
	var next atomic.Int64
	var roles sync.WaitGroup
	b.SetBytes(256)
	b.ReportAllocs()
	defer cpu(b)()
	b.ResetTimer()
	start := time.Now()
	for q := range uint32(16) {
		roles.Go(func() {
			f := &inFlight{}
			f.cond.L = &f.mu
			m, targets := message256(), []Target{{Queue: q}}
			for next.Add(64) <= int64(b.N)+63 {
				var last LSN
				for range 64 {
					targets[0].Pos++
					ref, lsn, err := s.Append(m, targets, 1)
					if err != nil {
						b.Error(err)
						return
					}
					s.Drop(ref)
					last = lsn
				}
				f.done = 0
				s.Notify(last, f)
				f.mu.Lock()
				for f.done < last && f.err == nil {
					f.cond.Wait()
				}
				f.mu.Unlock()
			}
		})
	}
	roles.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "msg/s")
	b.ReportMetric(float64(b.N)/float64(s.Stats().Commits), "msg/commit")
}

func BenchmarkAppendDelayed(b *testing.B) {
	s, m := benchStore(b), message256()
	m.ExchangeID = 1
	b.ReportAllocs()
	defer cpu(b)()
	i := int64(0)
	for b.Loop() {
		i++
		if _, _, err := s.AppendDelayed(m, i*7919%3600_000); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRelease pops and moves what fell due, in batches of 1024.
func BenchmarkRelease(b *testing.B) {
	s, m := benchStore(b), message256()
	m.ExchangeID = 1
	for i := range int64(b.N) {
		if _, _, err := s.AppendDelayed(m, i*7919%3600_000); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	defer cpu(b)()
	b.ResetTimer()
	var due []Due
	var group Batch
	targets := []Target{{Queue: 1}}
	for {
		due = s.PopDue(maxDue, 1024, due[:0])
		if len(due) == 0 {
			break
		}
		group.Reset()
		for _, d := range due {
			targets[0].Pos++
			group.Move(&Move{Key: d.Key, Ref: d.Ref, Arrived: d.Key.Due, TTL: -1, Persistent: true, Targets: targets, Holds: 1})
		}
		if _, err := s.Commit(&group); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen replays a million records, half of them settled.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s, err := Open(OS(), dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	m, targets := message256(), []Target{{Queue: 1}}
	for i := range uint64(1e6) {
		targets[0].Pos = i
		if _, _, err := s.Append(m, targets, 1); err != nil {
			b.Fatal(err)
		}
		if i%2 == 0 {
			s.Settle(1, []uint64{i}, nil)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	defer cpu(b)()
	for b.Loop() {
		s, err := Open(OS(), dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		rec, n := s.Recovered(), 0
		var piece [4096]Entry
		for more := 1; more > 0; n += more {
			if more, err = rec.Entries(1, piece[:]); err != nil {
				b.Fatal(err)
			}
		}
		if n != 5e5 {
			b.Fatalf("%d entries", n)
		}
		b.StopTimer()
		s.Abandon()
		b.StartTimer()
	}
}
