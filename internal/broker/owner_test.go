package broker

import (
	"testing"

	"github.com/duepost/duepost/internal/store"
)

func TestOwnerKnowsReservedHeldAndGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil, "durable")
	from, to := store.Ref{File: 7, Off: 1, Len: 8}, store.Ref{File: 9, Off: 2, Len: 8}
	if r.Holds(q.id, 0) || r.Holds(12345, 0) || r.Relocate(12345, 0, from, to) {
		t.Error("what was never handed out is held")
	}
	pos := q.reserve(nil)
	if !r.Holds(q.id, pos) || !r.Relocate(q.id, pos, from, to) {
		t.Error("a reserved position is not held")
	}
	q.push(pos, newEntry(from, 1, 0, flagLogged), noTTL, nil)
	q.mu.Lock()
	if got := q.index.at(pos).ref; got != to {
		t.Errorf("the push took the place from before: %v", got)
	}
	q.index.hold(pos)
	q.mu.Unlock()
	back := store.Ref{File: 11, Len: 8}
	if !r.Holds(q.id, pos) || !r.Relocate(q.id, pos, from, back) || !r.Relocate(q.id, pos, to, back) {
		t.Error("a held message is not held")
	}
	q.mu.Lock()
	if got := q.index.at(pos).ref; got != back {
		t.Errorf("got %v, want %v", got, back)
	}
	q.index.remove(pos)
	q.mu.Unlock()
	if r.Holds(q.id, pos) || r.Relocate(q.id, pos, back, to) {
		t.Error("a settled message is held")
	}
	lost := q.reserve(nil)
	q.abandon(lost)
	if r.Holds(q.id, lost) {
		t.Error("an abandoned position is held")
	}
}
