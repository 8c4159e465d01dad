package store

import (
	"context"
	"fmt"
	"testing"
)

func TestSmoke(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(OS(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var lsn LSN
	var refs []Ref
	for i := range 1000 {
		ref, n, err := s.Append(&Message{Exchange: []byte("x"), RoutingKey: []byte("k"), Body: fmt.Appendf(nil, "m%d", i), TTL: -1, Persistent: true}, []Target{{1, uint64(i)}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		refs, lsn = append(refs, ref), n
	}
	k, _, err := s.AppendDelayed(&Message{Body: []byte("d"), TTL: 5, ExchangeID: 3}, 100)
	if err != nil {
		t.Fatal(err)
	}
	s.Settle(1, []uint64{0, 1, 2, 7}, []Ref{refs[0], refs[1], refs[2], refs[7]})
	if err := s.Wait(context.Background(), lsn); err != nil {
		t.Fatal(err)
	}
	r, err := s.Read(refs[3], nil)
	if err != nil || string(r.Body) != "m3" || string(r.ExchangeAndKey) != "\x01x\x01k" {
		t.Fatal(r, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(OS(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rec := s.Recovered()
	t.Log(rec.Frames, rec.Records, rec.Cut, rec.Damages, len(rec.Queues[0].Entries), rec.Queues[0].Next)
	if len(rec.Queues[0].Entries) != 996 {
		t.Fatal("entries")
	}
	r, err = s.Read(rec.Queues[0].Entries[5].Ref, nil)
	t.Log(string(r.Body), err)
	due := s.PopDue(1000, 10, nil)
	if len(due) != 1 || due[0].Key != k {
		t.Fatal(due)
	}
	b := &Batch{}
	b.Move(&Move{Key: k, Ref: due[0].Ref, TTL: -1, Targets: []Target{{2, 0}}, Holds: 1})
	b.Put("a", []byte("b"))
	if _, err := s.Commit(b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.Refs, s.Stats())
}
