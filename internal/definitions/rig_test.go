package definitions

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/auth"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/delay"
	"github.com/duepost/duepost/internal/store"
)

// rig is a broker in a directory of its own, and what imports need of it.
type rig struct {
	t   *testing.T
	dir string
	Site

	hadUsers bool // when it started

	store  *store.Store
	alarms *delay.Alarms
	engine *delay.Engine
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	r.start()
	t.Cleanup(r.stop)
	return r
}

func (r *rig) start() {
	r.t.Helper()
	var err error
	if r.store, err = store.Open(store.OS(), r.dir, store.Options{SegmentBytes: 1 << 20}); err != nil {
		r.t.Fatal(err)
	}
	clock := delay.SystemClock{}
	r.alarms = delay.NewAlarms(clock, nil)
	r.engine = delay.New(delay.Config{Store: r.store, Alarms: r.alarms, Clock: clock})
	found := r.store.Recovered()
	if r.Users, r.hadUsers, err = auth.Open(r.store, found.Definitions); err != nil {
		r.t.Fatal(err)
	}
	r.Broker, err = broker.Open(broker.Config{
		Store: r.store, Engine: r.engine, Alarms: r.alarms, Clock: clock, Recovered: found,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.Version = "1.2.3"
	r.alarms.Start()
	r.engine.Start(r.Broker)
}

func (r *rig) stop() {
	r.engine.Stop()
	r.alarms.Stop()
	if err := errors.Join(r.Broker.Close(), r.store.Close()); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) restart() {
	r.t.Helper()
	r.stop()
	r.start()
}

func (r *rig) vhost() *broker.VHost { return r.Broker.VHost("/") }

func testFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// importAll imports what must be accepted, and returns the notes.
func (r *rig) importAll(file string) []error {
	r.t.Helper()
	notes, err := Import(r.Site, []byte(file))
	if err != nil {
		r.t.Fatal(err)
	}
	return notes
}

// exported returns what Export says, as JSON has it.
func (r *rig) exported() map[string]any {
	r.t.Helper()
	d, err := Export(r.Site)
	if err != nil {
		r.t.Fatal(err)
	}
	return asJSON(r.t, d)
}

func (r *rig) exportedVHost() map[string]any {
	r.t.Helper()
	d, err := ExportVHost(r.vhost())
	if err != nil {
		r.t.Fatal(err)
	}
	return asJSON(r.t, d)
}

func asJSON(t *testing.T, v any) map[string]any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return decodeJSON(t, b)
}

func decodeJSON(t *testing.T, b []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// wantSame compares two documents modulo the order of their lists.
func wantSame(t *testing.T, want, got map[string]any) {
	t.Helper()
	unordered := cmp.Transformer("unordered", func(list []any) []string {
		lines := make([]string, len(list))
		for i, v := range list {
			b, err := json.MarshalIndent(v, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			lines[i] = string(b)
		}
		slices.Sort(lines)
		return lines
	})
	if diff := cmp.Diff(want, got, unordered); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// wantFaults checks that an import is refused with these faults, "PLACE: TEXT", that a text
// holds, in any order, and that it has done nothing.
func (r *rig) wantFaults(file string, want ...string) {
	r.t.Helper()
	before := r.exported()
	_, err := Import(r.Site, []byte(file))
	var faults Faults
	if !errors.As(err, &faults) {
		r.t.Errorf("%s: got %v, want faults %q", file, err, want)
		return
	}
	left := slices.Clone(faults)
	for _, w := range want {
		i := slices.IndexFunc(left, func(f Fault) bool { return strings.HasPrefix(f.Error(), w) })
		if i < 0 {
			r.t.Errorf("%s: got no fault %q in:\n%v", file, w, faults)
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		r.t.Errorf("%s: got faults that were not wanted:\n%v", file, left)
	}
	wantSame(r.t, before, r.exported())
}

func asText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wantNotes checks that there are notes with these texts in them, in that order.
func wantNotes(t *testing.T, notes []error, want ...string) {
	t.Helper()
	ok := len(notes) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = strings.Contains(notes[i].Error(), want[i])
	}
	if !ok {
		t.Errorf("got notes %q, want %q", notes, want)
	}
}
