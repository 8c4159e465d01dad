package httpapi

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRates(t *testing.T) {
	t.Parallel()
	var r rates
	start := time.Unix(1000, 0)
	for _, step := range []struct {
		name  string
		after time.Duration
		n     uint64
		want  object
	}{
		{"first", 0, 10, object{"n": uint64(10)}},
		{"too soon", 4 * time.Second, 20, object{"n": uint64(20)}},
		{"after ten seconds", 10 * time.Second, 60, object{"n": uint64(60), "n_details": object{"rate": 5.0}}},
		{"from the last that is old enough", 15 * time.Second, 70, object{"n": uint64(70), "n_details": object{"rate": 2.0}}},
		{"still from that", 19 * time.Second, 78, object{"n": uint64(78), "n_details": object{"rate": 2.0}}},
		{"after a pause", time.Hour, 80, object{"n": uint64(80)}},
	} {
		got := r.objectOf(start.Add(step.after), map[string]uint64{"n": step.n})
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s, -want +got:\n%s", step.name, diff)
		}
	}
	if len(r.past) != 1 {
		t.Errorf("%d readings are kept, want only the last", len(r.past))
	}
}
