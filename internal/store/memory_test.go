package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
)

// TestTransient compares transient memory with a map while it spills, is
// written anew and freed.
func TestTransient(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		s, d := openFake(t, Options{TransientBytes: 16 << 10})
		type held struct {
			body  string
			holds int
		}
		all := map[Ref]*held{}
		var spilled bool
		for i := range 6000 {
			if rnd.IntN(20) < 11 {
				h := &held{fmt.Sprint(i, strings.Repeat("x", rnd.IntN(200))), 1 + rnd.IntN(3)}
				ref, err := s.AppendTransient(&Message{Body: []byte(h.body), TTL: -1}, h.holds)
				if err != nil {
					t.Fatal(err)
				}
				all[ref] = h
			}
			for ref, h := range all {
				rec, err := s.Read(ref, nil)
				if err != nil || string(rec.Body) != h.body {
					t.Fatalf("read %+v: %.30q, %v, want %.30q", ref, rec.Body, err, h.body)
				}
				if rnd.IntN(10) == 0 && i > 3000 {
					break // more and more is left
				}
				s.Drop(ref)
				if h.holds--; h.holds == 0 {
					delete(all, ref)
				}
				break
			}
			if i%16 == 0 {
				synctest.Wait()
			}
			memory, scratch := s.memory.sizes()
			spilled = spilled || scratch > 0
			if limit := int64(32<<10 + 2048); memory > limit {
				t.Fatalf("%d bytes in memory", memory)
			}
		}
		if !spilled {
			t.Fatal("nothing was spilled")
		}
		for ref, h := range all {
			for range h.holds {
				s.Drop(ref)
			}
			if h.holds > 0 && ref.File != s.memory.active.id {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if memory, scratch := s.memory.sizes(); memory > 4096 || scratch != 0 {
			t.Fatalf("after all was dropped: %d bytes in memory, %d in scratch files", memory, scratch)
		}
		if _, err := s.Read(Ref{memoryBit + 1, 0, 100}, nil); !errors.Is(err, ErrMoved) {
			t.Fatalf("read of what is gone: %v", err)
		}
		s.Abandon()
		for name := range d.dir {
			if strings.Contains(name, scratchPrefix) {
				t.Fatalf("%s is left", name)
			}
		}
	})
}

// TestTransientStragglers: one message in a hundred stays; memory and scratch
// files come down to about that.
func TestTransientStragglers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := openFake(t, Options{TransientBytes: 64 << 10})
		var refs []Ref
		for i := range 10_000 {
			ref, err := s.AppendTransient(&Message{Body: fmt.Appendf(nil, "body %d", i), TTL: -1}, 1)
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, ref)
			if i%64 == 0 {
				synctest.Wait()
			}
		}
		memory, scratch := s.memory.sizes()
		for i, ref := range refs {
			if i%100 != 0 {
				s.Drop(ref)
			}
		}
		synctest.Wait()
		m, sc := s.memory.sizes()
		if m+sc > (memory+scratch)/20 {
			t.Fatalf("%d bytes in memory and %d in files are left of %d and %d", m, sc, memory, scratch)
		}
		for i := 0; i < len(refs); i += 100 {
			if rec, err := s.Read(refs[i], nil); err != nil || string(rec.Body) != fmt.Sprintf("body %d", i) {
				t.Fatalf("message %d: %q, %v", i, rec.Body, err)
			}
		}
	})
}

// TestTransientBeyondTheBudget: a message larger than all memory there may be is taken and
// spilled, and holds up nobody; once dropped it leaves nothing behind.
func TestTransientBeyondTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := openFake(t, Options{TransientBytes: 16 << 10})
		for _, spilled := range []bool{false, true} {
			huge, err := s.AppendTransient(&Message{Body: make([]byte, 100<<10), TTL: -1}, 1)
			if err != nil {
				t.Fatal(err)
			}
			if spilled {
				small, err := s.AppendTransient(&Message{Body: []byte("small"), TTL: -1}, 1)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if memory, scratch := s.memory.sizes(); memory > 16<<10 || scratch < 100<<10 {
					t.Errorf("%d bytes in memory, %d in scratch files", memory, scratch)
				}
				s.Drop(small)
			}
			if rec, err := s.Read(huge, nil); err != nil || len(rec.Body) != 100<<10 {
				t.Errorf("read: %d bytes, %v", len(rec.Body), err)
			}
			s.Drop(huge)
			synctest.Wait()
			if memory, scratch := s.memory.sizes(); memory > 4096 || scratch != 0 {
				t.Errorf("after the drop: %d bytes in memory, %d in scratch files", memory, scratch)
			}
		}
	})
}

// TestTransientFull: without room for scratch files, memory is bounded and the
// publisher is told.
func TestTransientFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := openFake(t, Options{TransientBytes: 16 << 10})
		synctest.Wait()
		d.mu.Lock()
		d.rule = func(call, name string, _ int) error {
			if call == "create" && strings.HasPrefix(name, scratchPrefix) {
				return errNoSpace
			}
			return nil
		}
		d.mu.Unlock()
		var refs []Ref
		for {
			ref, err := s.AppendTransient(&Message{Body: make([]byte, 200), TTL: -1}, 1)
			if errors.Is(err, ErrFull) {
				break
			}
			if err != nil || len(refs) > 1000 {
				t.Fatalf("%d messages, %v", len(refs), err)
			}
			refs = append(refs, ref)
		}
		for _, ref := range refs {
			s.Drop(ref)
		}
		synctest.Wait()
		if _, err := s.AppendTransient(&Message{TTL: -1}, 1); err != nil {
			t.Fatalf("after all was dropped: %v", err)
		}
	})
}

// TestSmallPassLargeTransient: while a large transient message is written to a
// scratch file, or one is removed, small ones are taken, read and dropped.
func TestSmallPassLargeTransient(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"create", "write", "remove"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, d := openFake(t, Options{TransientBytes: 64 << 10})
				g := d.gate(call, scratchPrefix)
				done := make(chan Ref)
				go func() {
					ref, err := s.AppendTransient(&Message{Body: make([]byte, 3<<20), TTL: -1}, 1)
					if err != nil {
						t.Error(err)
					}
					if call == "remove" {
						s.Drop(ref)
					}
					done <- ref
				}()
				if call == "remove" {
					<-done
				}
				<-g.arrived
				for range 1000 {
					ref, err := s.AppendTransient(&Message{Body: make([]byte, 100), TTL: -1}, 1)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.Read(ref, nil); err != nil {
						t.Fatal(err)
					}
					s.Drop(ref)
				}
				close(g.open)
				if call == "remove" {
					return
				}
				ref := <-done
				if rec, err := s.Read(ref, nil); err != nil || len(rec.Body) != 3<<20 {
					t.Errorf("%d bytes, %v", len(rec.Body), err)
				}
				s.Drop(ref)
				synctest.Wait()
				if memory, scratch := s.memory.sizes(); memory > 8192 || scratch != 0 {
					t.Errorf("%d bytes in memory, %d in files are left", memory, scratch)
				}
			})
		})
	}
}
