package relay

import (
	"slices"
	"testing"
)

// TestGathered: what arrives goes to the wheel together, what is due before is released from where it
// is, and what cannot be delivered waits for nothing.
func TestGathered(t *testing.T) {
	t.Parallel()
	const now = 1_000_030
	for _, tc := range []struct {
		name string
		it   item
		at   int64
	}{
		{"later", item{due: now + 5000, at: now}, 1_000_100},
		{"due before", item{due: now + 20, at: now}, now + 20},
		{"due", item{due: now, at: now}, now},
		{"bad", item{due: now + 5000, at: now, reason: "bad"}, now},
	} {
		if got := tc.it.gathered(now).at; got != tc.at {
			t.Errorf("%s: goes at %d, want %d", tc.name, got, tc.at)
		}
	}
}

// TestWorthwhile: slots without a queue are looked at once, those with one each time.
func TestWorthwhile(t *testing.T) {
	t.Parallel()
	there, absent, fresh := slot{1, 100}, slot{1, 101}, slot{1, 102}
	s := &session{queues: map[string]bool{there.queue(): true, absent.queue(): false}}
	looked := map[slot]bool{}
	for i, want := range [][]slot{{there, absent}, {there}, {there, fresh}} {
		slots := []slot{there, absent}
		if i == 2 {
			slots = []slot{there, absent, fresh}
		}
		if got := s.worthwhile(slots, looked); !slices.Equal(got, want) {
			t.Errorf("look %d: got %v, want %v", i, got, want)
		}
	}
	if got := s.worthwhile([]slot{there, absent}, nil); !slices.Equal(got, []slot{there}) {
		t.Errorf("known alone: got %v, want %v", got, []slot{there})
	}
}
