package server

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWindowAgainstModel does random deliveries and settles on a window and on a
// sorted slice.
func TestWindowAgainstModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var w window
	var model []unacked
	tag := uint64(0)
	for step := range 20000 {
		grow := rnd.IntN(3000) < 1600-len(model)
		if grow || len(model) == 0 {
			tag += 1 + uint64(rnd.IntN(3)/2) // sometimes a gap, as no-ack deliveries leave
			u := unacked{tag: tag, pos: rnd.Uint64(), source: int32(rnd.IntN(4))}
			w.push(u)
			model = append(model, u)
			continue
		}
		i := rnd.IntN(len(model))
		if rnd.IntN(4) == 0 {
			i = 0
		}
		at, ok := w.find(model[i].tag)
		if !ok {
			t.Fatalf("step %d: tag %d not found", step, model[i].tag)
		}
		if got := w.settle(at); got != model[i] {
			t.Fatalf("step %d: settled %+v, want %+v", step, got, model[i])
		}
		if _, ok := w.find(model[i].tag); ok {
			t.Fatalf("step %d: tag %d found after it was settled", step, model[i].tag)
		}
		model = slices.Delete(model, i, i+1)
		if w.live != len(model) {
			t.Fatalf("step %d: live = %d, want %d", step, w.live, len(model))
		}
		if holes := w.count - w.live; holes > 64 && holes > w.live {
			t.Fatalf("step %d: %d holes among %d entries", step, holes, w.count)
		}
	}
	for _, want := range model {
		if got, ok := w.takeFirst(); !ok || got != want {
			t.Fatalf("takeFirst = %+v, %v, want %+v", got, ok, want)
		}
	}
	if _, ok := w.takeFirst(); ok {
		t.Error("takeFirst on an empty window = true")
	}
}

func TestWindowDoesNotKnow(t *testing.T) {
	t.Parallel()
	var w window
	if _, ok := w.find(1); ok {
		t.Error("empty window knows tag 1")
	}
	for tag := uint64(10); tag < 20; tag += 2 {
		w.push(unacked{tag: tag})
	}
	for _, tag := range []uint64{0, 9, 11, 19, 1 << 63} {
		if _, ok := w.find(tag); ok {
			t.Errorf("window knows tag %d", tag)
		}
	}
}

// A delivery that is never settled must not keep the memory of all later ones.
func TestWindowForgetsBehindAnOldDelivery(t *testing.T) {
	t.Parallel()
	var w window
	w.push(unacked{tag: 1})
	for tag := uint64(2); tag < 100_000; tag++ {
		w.push(unacked{tag: tag})
		i, ok := w.find(tag)
		if !ok {
			t.Fatalf("tag %d not found", tag)
		}
		w.settle(i)
	}
	if len(w.ring) > 1024 {
		t.Errorf("ring has %d places for 1 delivery", len(w.ring))
	}
}
