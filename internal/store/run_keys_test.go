package store

import (
	"slices"
	"testing"
	"testing/synctest"

	gocmp "github.com/google/go-cmp/cmp"
)

// commonHash is that of many messages: in the middle, and more of a run than a page.
const commonHash = 1<<63 | 3

// keyed makes a store with n messages in runs, of which some have keys, and returns
// which keys have a hash.
func keyed(t *testing.T, n int, o Options) (*Store, *fakeDisk, map[uint64][]Key) {
	t.Helper()
	o.SegmentBytes, o.FreshBytes, o.RunBytes, o.RunBlockBytes = 32<<10, 160<<10, 160<<10, 2<<10
	s, d := openFake(t, o)
	keys := map[uint64][]Key{}
	for i := range n {
		m := &Message{Exchange: []byte("x"), ExchangeID: uint32(2 + i/100%3), TTL: int64(i%5) - 1}
		switch {
		case i%10 < 4:
			m.KeyHash = commonHash
		case i%10 < 9:
			m.KeyHash = spread(uint64(i))
		}
		k, _, err := s.AppendDelayed(m, int64(1+i*7919%n))
		if err != nil {
			t.Fatal(err)
		}
		keys[m.KeyHash] = append(keys[m.KeyHash], k)
	}
	synctest.Wait()
	return s, d, keys
}

func openOn(t *testing.T, d *fakeDisk, o Options) *Store {
	t.Helper()
	s, err := Open(d, "d", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Abandon)
	return s
}

// wantKeys looks for commonHash and up to n others, for all exchanges, and for some that
// are not there.
func wantKeys(t *testing.T, s *Store, keys map[uint64][]Key, n int) {
	t.Helper()
	for hash, want := range keys {
		if n--; hash == 0 || (n < 0 && hash != commonHash) {
			continue
		}
		var got []Key
		for ex := range uint32(3) {
			var err error
			if got, err = s.FindKey(2+ex, hash, func(*Record) bool { return true }, got); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortFunc(got, Key.compare)
		slices.SortFunc(want, Key.compare)
		if d := gocmp.Diff(want, got); d != "" {
			t.Fatalf("hash %x (- want, + got):\n%s", hash, d)
		}
	}
	for i := range uint64(500) {
		got, err := s.FindKey(2, spread(1<<40+i), func(*Record) bool { return true }, nil)
		if len(got) > 0 || err != nil {
			t.Fatalf("found %v, %v", got, err)
		}
	}
}

// TestKeysInRuns: keys are found in runs of several pages of them, with and without
// filters, also after a restart.
func TestKeysInRuns(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"filters": {}, "no filters": {KeyFilterBytes: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, d, keys := keyed(t, 9000, o)
				runs := s.index.runs
				if len(runs) < 2 || runs[0].keys.pages() < 3 {
					t.Fatalf("%d runs, %d pages", len(runs), runs[0].keys.pages())
				}
				for _, r := range runs {
					if got := r.keys.filter != nil; got != (o.KeyFilterBytes == 0) {
						t.Fatalf("%s: filter in memory: %v", r.name, got)
					}
				}
				wantKeys(t, s, keys, 1500)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openOn(t, d, o)
				if o.KeyFilterBytes == 0 && s.log.filterBytes.Load() == 0 {
					t.Fatal("no filter was read")
				}
				wantKeys(t, s, keys, 1500)
			})
		})
	}
}

// TestKeyLookupReads: a look-up for what is not there reads nothing, nearly always,
// and one for what is there a page and the record.
func TestKeyLookupReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := keyed(t, 9000, Options{})
		r := s.index.runs[0]
		pages := 0
		for i := range uint64(1000) {
			if r.keys.filter.mayHave(spread(1<<40 + i)) {
				pages++
			}
		}
		if pages > 40 {
			t.Fatalf("the filter lets %d of 1000 pass", pages)
		}
		counted := &countedFile{File: r.file}
		r.file = counted
		for _, k := range r.keys.all(t, r, s.log) {
			if k.hash != commonHash {
				if _, err := r.findKey(k.hash, s.log); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := int(r.keys.count); counted.reads > 2*n {
			t.Fatalf("%d reads for %d look-ups", counted.reads, n)
		}
	})
}

func (k *runKeys) all(t *testing.T, r *run, l *log) (list []runKey) {
	for n := range k.pages() {
		page, err := r.page(n, l)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, page...)
	}
	return list
}

type countedFile struct {
	File
	reads int
}

func (f *countedFile) ReadAt(b []byte, off int64) (int, error) {
	f.reads++
	return f.File.ReadAt(b, off)
}

// TestDamagedKeys: with pages, lists, filter or index damaged the records tell.
func TestDamagedKeys(t *testing.T) {
	t.Parallel()
	places := map[string]func(r *run) int64{
		"page":    func(r *run) int64 { return r.keys.at + keyPageBytes + 100 },
		"list":    func(r *run) int64 { return r.listsAt + 1 },
		"filter":  func(r *run) int64 { return r.size - runTrailerBytes - r.indexBytes() - 1 },
		"index":   func(r *run) int64 { return r.size - runTrailerBytes - r.indexBytes() },
		"trailer": func(r *run) int64 { return r.size - 50 },
	}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, d, keys := keyed(t, 9000, Options{})
				runs := slices.Clone(s.index.runs)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				d.flip(runs[0].name, place(runs[0]))
				s = openOn(t, d, Options{})
				wantKeys(t, s, keys, 100)
				r := s.index.runs[0]
				for i := range r.exchanges {
					list, err := r.blocksOf(i, s.log)
					want, err2 := r.searchBlocks(r.exchanges[i].id, s.log)
					if err != nil || err2 != nil || !slices.Equal(list, want) || len(list) == 0 {
						t.Fatalf("list %v, %v; want %v, %v", list, err, want, err2)
					}
				}
			})
		})
	}
}

func (r *run) indexBytes() int64 {
	return int64(len(r.blocks))*blockBytes + int64(len(r.exchanges))*exchangeBytes
}

// TestKeyTable compares with a map.
func TestKeyTable(t *testing.T) {
	t.Parallel()
	var table keyTable
	want := map[uint64][]uint64{}
	for seq := uint64(1); seq < 3000; seq++ {
		hash := seq % 700 << 50
		table.add(hash, seq)
		table.add(hash, seq)
		want[hash] = append(want[hash], seq)
	}
	for hash, seqs := range want {
		var got []uint64
		table.each(hash, func(seq uint64) { got = append(got, seq) })
		slices.Sort(got)
		if !slices.Equal(got, seqs) {
			t.Fatalf("hash %x: got %v, want %v", hash, got, seqs)
		}
	}
}

// heldFile holds up whoever reads.
type heldFile struct {
	File
	reads, goOn chan struct{}
}

func (f *heldFile) ReadAt(b []byte, off int64) (int, error) {
	f.reads <- struct{}{}
	<-f.goOn
	return f.File.ReadAt(b, off)
}

// TestLookUpHoldsUpNobody: while the disk keeps who looks for a key, lists or counts
// waiting, others publish, cancel and release.
func TestLookUpHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(s *Store, keys map[uint64][]Key) error{
		"find": func(s *Store, _ map[uint64][]Key) error {
			_, err := s.FindKey(2, commonHash, func(*Record) bool { return true }, nil)
			return err
		},
		"list": func(s *Store, _ map[uint64][]Key) error {
			_, err := s.List(ListOptions{}, nil)
			return err
		},
		"count": func(s *Store, _ map[uint64][]Key) error {
			_, _, err := s.Count(1, 8000)
			return err
		},
		"cancel": func(s *Store, keys map[uint64][]Key) error {
			_, _, err := s.Cancel(keys[commonHash][0])
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, _, keys := keyed(t, 9000, Options{})
				held := &heldFile{s.index.runs[0].file, make(chan struct{}), make(chan struct{})}
				s.index.runs[0].file = held
				done := make(chan error, 1)
				go func() { done <- look(s, keys) }()
				<-held.reads
				k, lsn, err := s.AppendDelayed(&Message{ExchangeID: 2, TTL: -1, KeyHash: commonHash}, 0)
				if err != nil || s.Wait(t.Context(), lsn) != nil {
					t.Fatal(err)
				}
				if got := s.PopDue(0, 1, nil); len(got) != 1 {
					t.Fatalf("popped %v", got)
				}
				if out, _, err := s.Cancel(k); out != AlreadyDue || err != nil {
					t.Fatalf("cancel: %v, %v", out, err)
				}
				go func() {
					for range held.reads {
					}
				}()
				close(held.goOn)
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				s.Abandon()
				close(held.reads)
			})
		})
	}
}
