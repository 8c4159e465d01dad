package store

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// evictedMessages returns a store whose first segments are not in memory any more,
// and messages that are in them.
func evictedMessages(t *testing.T) (s *Store, d *fakeDisk, refs []Ref, bodies [][]byte) {
	t.Helper()
	s, d = openFake(t, Options{SegmentBytes: 64 << 10, ResidentSegments: 1})
	var last LSN
	for i := range 1500 {
		body := fmt.Appendf(nil, "%0200d", i)
		ref, lsn, err := s.Append(&Message{Body: body, TTL: -1, Persistent: true}, []Target{{1, uint64(i)}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		refs, bodies, last = append(refs, ref), append(bodies, body), lsn
	}
	if err := s.Wait(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	for i, ref := range refs {
		if s.log.segment(ref.File).buf.Load() != nil {
			refs, bodies = refs[:i], bodies[:i]
			break
		}
	}
	if len(refs) < 300 {
		t.Fatalf("only %d messages are out of memory", len(refs))
	}
	return s, d, refs, bodies
}

// TestRecordsAreReadManyAtOnce: reading in order takes a system call for dozens of
// records, and each comes out as it was written.
func TestRecordsAreReadManyAtOnce(t *testing.T) {
	t.Parallel()
	s, d, refs, bodies := evictedMessages(t)
	reads := 0
	d.mu.Lock()
	d.rule = func(call, _ string, _ int) error {
		if call == "read" {
			reads++
		}
		return nil
	}
	d.mu.Unlock()
	for i, ref := range refs {
		rec, err := s.Read(ref, nil)
		if err != nil || !bytes.Equal(rec.Body, bodies[i]) {
			t.Fatalf("message %d: %q, %v", i, rec.Body, err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if most := len(refs) / 20; reads > most {
		t.Errorf("%d reads for %d records, want at most %d", reads, len(refs), most)
	}
}

// TestReadBehindABadPlace: what follows a record cannot be read, but the record can.
func TestReadBehindABadPlace(t *testing.T) {
	t.Parallel()
	s, d, refs, bodies := evictedMessages(t)
	failed := errors.New("bad sector")
	bad := true
	d.mu.Lock()
	d.rule = func(call, _ string, _ int) error {
		if fails := call == "read" && bad; fails {
			bad = false
			return failed
		}
		return nil
	}
	d.mu.Unlock()
	rec, err := s.Read(refs[0], nil)
	if err != nil || !bytes.Equal(rec.Body, bodies[0]) {
		t.Fatalf("%q, %v", rec.Body, err)
	}
	d.mu.Lock()
	d.rule = func(call, _ string, _ int) error {
		if call == "read" {
			return failed
		}
		return nil
	}
	d.mu.Unlock()
	if _, err := s.Read(refs[len(refs)-1], nil); !errors.Is(err, failed) {
		t.Fatalf("got %v, want the error of the disk", err)
	}
}
