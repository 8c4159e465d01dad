package store

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestCleanerKeepsNewerDefinition: while the cleaner waits for room to copy a
// definition, a newer value is stored. The copy must not come to stand behind it.
func TestCleanerKeepsNewerDefinition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(newFakeDisk(1), "d", tiny().withDefaults()) // its roles are not started
		s := &Store{log: l, index: newIndex()}
		l.cleaner = newCleaner(s)
		l.lazy = time.AfterFunc(time.Hour, func() {})
		defer l.lazy.Stop()
		next := func(id uint32) {
			g, err := l.createSegment(id, l.o.SegmentBytes)
			if err != nil {
				t.Fatal(err)
			}
			l.mu.Lock()
			l.activateLocked(g)
			l.mu.Unlock()
		}
		put := func(value string) {
			b := &Batch{}
			b.Put("key", []byte(value))
			if _, err := s.Commit(b); err != nil {
				t.Fatal(err)
			}
		}
		next(1)
		put("old")
		old := l.defs["key"].ref
		rec := slices.Clone((*l.active().buf.Load())[old.Off*8:][:old.Len])
		l.closeFrameLocked()
		l.active().end = l.active().size // no room

		done := make(chan bool)
		go func() {
			l.cleaner.put(rec, old)
			close(done)
		}()
		synctest.Wait()
		next(2)
		put("new")
		newer := l.defs["key"].ref
		l.space.Broadcast()
		<-done

		if d := l.defs["key"]; string(d.value) != "new" || d.ref != newer {
			t.Fatalf("now %q at %v, want the one at %v", d.value, d.ref, newer)
		}
		behind := (*l.active().buf.Load())[int64(newer.Off)*8+align(int64(newer.Len)):]
		if k := kind(behind[12]); k != kindPad {
			t.Fatalf("behind the newer value stands a record of kind %d", k)
		}
	})
}
