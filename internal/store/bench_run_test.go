package store

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var scaleFlag = flag.Int("scale", 0, "entries of TestScale, in millions; 0 skips it")

// TestScale fills a store with entries that are due within an hour, kills it,
// opens it and releases some, and prints figures. Not a test of anything; run it
// with -scale.
func TestScale(t *testing.T) {
	if *scaleFlag == 0 {
		t.Skip("needs -scale")
	}
	n := *scaleFlag * 1_000_000
	dir, err := os.MkdirTemp(".", "scale")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s, err := Open(OS(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.SetOwner(ownerOfNothing{})
	start, busy := time.Now(), processTime(t)
	load(t, s, n)
	took := time.Since(start)
	st := s.Stats()
	t.Logf("in: %d in %v, %.0f/s, %.2f µs CPU each", n, took.Round(time.Millisecond), float64(n)/took.Seconds(), float64(processTime(t)-busy)/1000/float64(n))
	t.Logf("runs %d, %d MiB; in memory %d of %d; log %d MiB; copied %d; peak %s",
		st.Runs, st.RunBytes>>20, st.Indexed, st.Pending.Count, st.LogBytes>>20, st.Copied, memoryUse())
	t.Logf("written %.3f x the records", float64(st.WrittenBytes+st.FlushedBytes)/float64(st.AppendedBytes))
	s.Abandon()
	runtime.GC()

	if os.Getenv("DUEPOST_COLD") != "" {
		dropCaches(t, dir)
	}
	start = time.Now()
	if s, err = Open(OS(), dir, Options{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("open: %v, pending %d", time.Since(start).Round(time.Millisecond), s.PendingTotal().Count)
	s.Recovered()
	s.SetOwner(ownerOfNothing{})
	start, busy = time.Now(), processTime(t)
	out := release(t, s, min(n, 2_000_000))
	took = time.Since(start)
	t.Logf("out: %d in %v, %.0f/s, %.2f µs CPU each, %s", out, took.Round(time.Millisecond), float64(out)/took.Seconds(), float64(processTime(t)-busy)/1000/float64(out), memoryUse())
	s.Abandon()
}

// load appends from 8 goroutines that each wait for 128 messages at a time.
func load(t *testing.T, s *Store, n int) {
	var roles sync.WaitGroup
	for g := range 8 {
		roles.Go(func() {
			m := message256()
			m.ExchangeID = 1
			f := &inFlight{}
			f.cond.L = &f.mu
			for i := g; i < n; i += 8 * 128 {
				var last LSN
				for k := range 128 {
					if i+8*k >= n {
						break
					}
					_, lsn, err := s.AppendDelayed(m, int64(i+8*k)*7919%3600_000+60_000)
					if err != nil {
						t.Error(err)
						return
					}
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
}

// release pops, reads and moves n entries in batches of 1024.
func release(t *testing.T, s *Store, n int) int {
	var due []Due
	var group Batch
	var buf []byte
	targets := []Target{{Queue: 1}}
	done := 0
	for done < n {
		due = s.PopDue(maxDue, 1024, due[:0])
		if len(due) == 0 {
			break
		}
		group.Reset()
		for _, d := range due {
			rec, err := s.Read(d.Ref, buf)
			if err != nil {
				t.Fatal(err)
			}
			if rec.Buf != nil {
				buf = rec.Buf
			}
			targets[0].Pos++
			group.Move(&Move{Key: d.Key, Ref: d.Ref, Arrived: d.Key.Due, TTL: -1, Persistent: true, Targets: targets})
		}
		if _, err := s.Commit(&group); err != nil {
			t.Fatal(err)
		}
		done += len(due)
	}
	return done
}

func memoryUse() string {
	b, _ := os.ReadFile("/proc/self/status")
	var out []string
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "VmHWM") || strings.HasPrefix(line, "RssAnon") {
			out = append(out, strings.Join(strings.Fields(line), " "))
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return fmt.Sprintf("%s, heap in use %d MiB", strings.Join(out, ", "), m.HeapInuse>>20)
}

func dropCaches(t *testing.T, dir string) {
	names, _ := filepath.Glob(dir + "/*")
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := forget(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

func forget(f *os.File) error { return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
