package relay

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWaitingGoesInOrder(t *testing.T) {
	t.Parallel()
	w := &waiting{}
	for came, at := range []int64{30, 10, 20, 10, 40} {
		w.add(&item{at: at, came: uint64(came)})
	}
	var got []uint64
	for it := w.take(30); it != nil; it = w.take(30) {
		got = append(got, it.came)
	}
	if diff := cmp.Diff([]uint64{1, 3, 2, 0}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if at, ok := w.next(); !ok || at != 40 || w.len() != 1 {
		t.Errorf("next is %d, %v of %d, want 40", at, ok, w.len())
	}
}

// What is due soon overtakes what came before it and has more time.
func TestUrgentOvertakes(t *testing.T) {
	t.Parallel()
	w := &waiting{}
	for came, delay := range []time.Duration{time.Minute, soon, time.Second, time.Hour, -time.Second} {
		it := &item{at: now, due: now + millis(delay), came: uint64(came)}
		it.hurry(now)
		w.add(it)
	}
	w.add(&item{at: now - 1, came: 5})
	w.add(&item{at: now + 1, came: 6, urgent: true})
	if at, ok := w.next(); !ok || at != now-1 || w.len() != 7 {
		t.Errorf("next is %d of %d, want %d of 7", at, w.len(), now-1)
	}
	var got []uint64
	for it := w.take(now); it != nil; it = w.take(now) {
		got = append(got, it.came)
	}
	if diff := cmp.Diff([]uint64{2, 4, 5, 0, 1, 3}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestSettlingInOrder(t *testing.T) {
	t.Parallel()
	s := &settling{}
	for tag := uint64(1); tag <= 5; tag++ {
		s.delivered(tag)
	}
	s.done(2, 1000)
	s.done(4, 1100)
	if tag, ok := s.upTo(); ok {
		t.Errorf("acknowledged up to %d while 1 is open", tag)
	}
	if tags := s.singles(1199); tags != nil {
		t.Errorf("alone after 199 ms: %v", tags)
	}
	if diff := cmp.Diff([]uint64{2}, s.singles(1200)); diff != "" {
		t.Errorf("alone after 200 ms (-want +got):\n%s", diff)
	}
	if tags := s.singles(1250); tags != nil {
		t.Errorf("told twice: %v", tags)
	}
	s.done(1, 1260)
	if tag, ok := s.upTo(); !ok || tag != 1 {
		t.Errorf("up to %d, %v, want 1, for 2 is told already", tag, ok)
	}
	s.done(3, 1270)
	s.done(5, 1270)
	if tag, ok := s.upTo(); !ok || tag != 5 || s.pending() != 0 {
		t.Errorf("up to %d, %v with %d open, want all 5", tag, ok, s.pending())
	}
	if _, ok := s.upTo(); ok {
		t.Error("told twice")
	}
	s.delivered(6)
	s.done(6, 1300)
	if tag, ok := s.upTo(); !ok || tag != 6 {
		t.Errorf("up to %d, %v, want 6", tag, ok)
	}
}
