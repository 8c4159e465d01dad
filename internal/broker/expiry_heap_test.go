package broker

import (
	"testing"
	"unsafe"
)

// A message with a TTL of its own costs 16 bytes besides its entry, with the slack of a slice that
// grows no more than 32, and no scan: its end is found in O(log n).
func TestAMillionDifferentTTLsCostNoMoreThan32BytesEach(t *testing.T) {
	t.Parallel()
	const n = 1_000_000
	var h expiryHeap
	for i := range uint64(n) {
		h.push(expiry{at: int64(i * 7919 % n), pos: i})
	}
	if each := float64(cap(h)) * float64(unsafe.Sizeof(expiry{})) / n; each > 32 {
		t.Errorf("got %.1f bytes for each, want no more than 32", each)
	}
	for want := range int64(n) {
		if got := h.pop().at; got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
}

// One that expires in a queue of a million costs no more than in one of a thousand, give or take
// the depth of the heap.
func BenchmarkExpiryAmongAMillion(b *testing.B) {
	const n = 1_000_000
	var h expiryHeap
	for i := range uint64(n) {
		h.push(expiry{at: int64(i * 7919 % n), pos: i})
	}
	b.ReportAllocs()
	for b.Loop() {
		x := h.pop()
		x.at += n
		h.push(x)
	}
}
