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

// TestWhoDropsTheOldHold: the hold at the old place of a message is dropped when it is
// relocated, but not if a group is about to drop it.
func TestWhoDropsTheOldHold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil, "durable")
	from, to := store.Ref{File: 7, Off: 1, Len: 8}, store.Ref{File: 9, Off: 2, Len: 8}
	back := store.Ref{File: 11, Len: 8}
	pos := q.reserve(nil)
	if held, left := q.relocate(pos, from, to); !held || left {
		t.Errorf("reserved: held %t, left %t: who pushes it may name the old place", held, left)
	}
	q.push(pos, newEntry(from, 1, 0, flagLogged), noTTL, nil)
	if held, left := q.relocate(pos, from, back); !held || left {
		t.Errorf("not there: held %t, left %t", held, left)
	}
	if held, left := q.relocate(pos, to, back); !held || !left {
		t.Errorf("ready: held %t, left %t", held, left)
	}
	q.mu.Lock()
	q.index.hold(pos)
	q.mu.Unlock()
	ref, _, ok := q.beginLeaving(pos)
	if !ok || ref != back {
		t.Fatalf("begins to leave: %v, %t", ref, ok)
	}
	if held, left := q.relocate(pos, back, to); !held || left {
		t.Errorf("leaving: held %t, left %t: the group names the old place", held, left)
	}
}
