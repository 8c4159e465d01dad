package store

import (
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
)

// damagedRun makes a directory with one run that has all entries but the last few,
// which wait in the log, lets damage change the disk, opens it and returns what is
// popped, by due, and what was recovered. Nothing may be popped twice.
func damagedRun(t *testing.T, cancel []int64, damage func(d *fakeDisk, r *run)) (due []int64, n int64, rec *Recovery) {
	t.Helper()
	o := runOptions()
	s, d, keys := withRun(t, o)
	for _, at := range cancel {
		if out, _, err := s.Cancel(keys[at]); out != Cancelled || err != nil {
			t.Fatalf("cancel: %v, %v", out, err)
		}
	}
	for range 100 { // so that neither is at the end of the log
		if _, _, err := s.Append(&Message{Body: make([]byte, 200), TTL: -1}, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, s)
	r := runsOf(s)[0]
	s.Abandon()
	d = d.kill(1)
	damage(d, r)
	s, err := Open(d, "d", o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	rec = s.Recovered()
	var last Key
	pending := s.PendingTotal()
	for _, e := range s.PopDue(maxDue, 1<<20, nil) {
		if !last.Less(e.Key) {
			t.Fatalf("popped %v after %v", e.Key, last)
		}
		last = e.Key
		due = append(due, e.Key.Due)
	}
	if lost := pending.Count - uint64(len(due)); s.Stats().Damages == 0 && lost != 0 {
		t.Fatalf("%d pending, %d popped, no damage", pending.Count, len(due))
	}
	return due, int64(len(keys)), rec
}

// wantAllBut checks that everything is there but what was cancelled or lost.
func wantAllBut(t *testing.T, due []int64, n int64, not ...int64) {
	t.Helper()
	var want []int64
	for i := range n {
		if !slices.Contains(not, i) {
			want = append(want, i)
		}
	}
	if !slices.Equal(due, want) {
		t.Fatalf("popped %d of %d: %v", len(due), len(want), due)
	}
}

// reports checks that exactly one damage was found, of the file, at the offset.
func reports(t *testing.T, rec *Recovery, file string, off int64) {
	t.Helper()
	for _, g := range rec.Damages {
		if g.File == file && g.Offset <= off && off < g.Offset+max(g.Length, 1) {
			return
		}
	}
	t.Fatalf("%s at %d: reported %+v", file, off, rec.Damages)
}

// TestDamagedRunHeader and the other parts that are not records: nothing is lost,
// and what was cancelled stays so.
func TestDamagedRunHeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, at := range []int64{0, 8, 9, 12, 17, 25, 61} {
			var file string
			due, n, rec := damagedRun(t, []int64{5}, func(d *fakeDisk, r *run) {
				file = r.name
				d.flip(r.name, at)
			})
			wantAllBut(t, due, n, 5)
			reports(t, rec, file, at)
		}
	})
}

func TestDamagedRunIndex(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for back := int64(1); back < runTrailerBytes+2*blockBytes+exchangeBytes; back += 5 {
			var file string
			var at int64
			due, n, rec := damagedRun(t, []int64{5, 70}, func(d *fakeDisk, r *run) {
				file, at = r.name, r.size-runTrailerBytes
				d.flip(r.name, r.size-back)
			})
			wantAllBut(t, due, n, 5, 70)
			reports(t, rec, file, at)
		}
	})
}

// TestDamagedRunRecord: each byte of a record costs that record.
func TestDamagedRunRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, victim := range []int64{0, 1, 30} {
			for at := int64(0); at < 60; at += 3 {
				due, n, _ := damagedRun(t, []int64{5}, func(d *fakeDisk, r *run) {
					d.flip(r.name, offsetOf(t, r, victim)+at)
				})
				wantAllBut(t, due, n, 5, victim)
			}
		}
	})
}

func offsetOf(t *testing.T, r *run, due int64) int64 {
	t.Helper()
	var m image
	for i := range r.blocks {
		from, to := r.bounds(i)
		f, ok := r.file.(*fakeFile)
		if !ok {
			t.Fatal("no fake file")
		}
		for o := int64(from) * 8; o < int64(to)*8; o += 8 {
			rec, ok := recordAt(f.node.data[o : int64(to)*8])
			if ok && len(rec) > delayedFixed && recordValid(rec, r.salt, crcTable()) && recordKey(rec).Due == due {
				return o
			}
		}
	}
	t.Fatalf("no record is due at %d in %+v", due, m.records)
	return 0
}

// TestTruncatedRun: what is in the part that is left is served.
func TestTruncatedRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for part := int64(1); part < 8; part++ {
			var left, count int64
			due, n, rec := damagedRun(t, nil, func(d *fakeDisk, r *run) {
				size := r.size * part / 8
				for count = int64(r.count); left < count && offsetOf(t, r, left)+214 < size; left++ {
				}
				f := d.dir[filepath.Join("d", r.name)]
				f.data, f.stable = f.data[:size], f.stable[:size]
			})
			var lost []int64
			for i := left; i < count; i++ {
				lost = append(lost, i)
			}
			if len(lost) > 0 && int64(len(due)) == n-int64(len(lost))+1 {
				lost = lost[1:] // cut in its padding
			}
			wantAllBut(t, due, n, lost...)
			if len(rec.Damages) == 0 {
				t.Fatal("not reported")
			}
		}
	})
}

// TestMissingRun is reported, and what else there is is served.
func TestMissingRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lost []int64
		var file string
		due, n, rec := damagedRun(t, nil, func(d *fakeDisk, r *run) {
			file = r.name
			for i := range int64(r.count) {
				lost = append(lost, i)
			}
			if err := d.Remove(filepath.Join("d", r.name)); err != nil {
				t.Fatal(err)
			}
		})
		wantAllBut(t, due, n, lost...)
		reports(t, rec, file, 0)
	})
}

// TestRunNobodyTellsOf: the log lost what told of a run, to a flipped bit or with a
// whole file. The run is served all the same, each entry once.
func TestRunNobodyTellsOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, missing := range []bool{false, true} {
			for _, cleaned := range []bool{false, true} {
				due, n, rec := damagedRun(t, []int64{5}, func(d *fakeDisk, r *run) {
					told := map[string]int64{}
					err := Dump(d, "d", DumpOptions{}, func(s *Dumped) error {
						if s.Kind == "flush" || s.Kind == "run" {
							told[s.File] = s.Offset
						}
						return nil
					})
					if err != nil || len(told) != 1 {
						t.Fatalf("told in %v, %v", told, err)
					}
					for file, off := range told {
						segs := segmentsBefore(d, file)
						if missing {
							if err := d.Remove(filepath.Join("d", file)); err != nil {
								t.Fatal(err)
							}
						} else {
							d.flip(file, off+18)
						}
						if cleaned {
							for _, name := range segs {
								if err := d.Remove(filepath.Join("d", name)); err != nil {
									t.Fatal(err)
								}
							}
						}
					}
				})
				if len(rec.Damages) == 0 {
					t.Fatalf("missing %v, cleaned %v: not reported", missing, cleaned)
				}
				if missing { // and with it what else was in the file
					for i := range n / 2 {
						if !slices.Contains(due, i) {
							t.Fatalf("missing %v, cleaned %v: %d of the run is lost; %v", missing, cleaned, i, due)
						}
					}
					continue
				}
				for i := range n {
					if !slices.Contains(due, i) && i != 5 {
						t.Fatalf("missing %v, cleaned %v: %d is lost; %+v", missing, cleaned, i, rec.Damages)
					}
				}
			}
		}
	})
}

// segmentsBefore returns the log files that come before one.
func segmentsBefore(d *fakeDisk, file string) (names []string) {
	for name := range d.dir {
		base := filepath.Base(name)
		if _, ok := parseSegmentName(base); ok && base < file {
			names = append(names, base)
		}
	}
	return names
}
