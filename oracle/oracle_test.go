package oracle

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/store"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "seed of the operations, 0 = random")
	stepsFlag = flag.Int("steps", 60_000, "operations")
)

// oracle keeps in Pebble what the store should have:
//
//	'p' due seq       -> exchange, body   waiting or in flight
//	'q' queue pos     -> body             ready
type oracle struct {
	t      *testing.T
	db     *pebble.DB
	flying map[store.Key]bool
}

func newOracle(t *testing.T) *oracle {
	t.Helper()
	db, err := pebble.Open("oracle", &pebble.Options{FS: vfs.NewMem(), MemTableSize: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &oracle{t: t, db: db, flying: map[store.Key]bool{}}
}

func pendingKey(k store.Key) []byte {
	b := binary.BigEndian.AppendUint64([]byte{'p'}, uint64(k.Due))
	return binary.BigEndian.AppendUint64(b, k.Seq)
}

func readyKey(t store.Target) []byte {
	b := binary.BigEndian.AppendUint32([]byte{'q'}, t.Queue)
	return binary.BigEndian.AppendUint64(b, t.Pos)
}

func (o *oracle) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *oracle) has(key []byte) (string, bool) {
	v, c, err := o.db.Get(key)
	if err == pebble.ErrNotFound {
		return "", false
	}
	if err != nil {
		o.t.Error(err)
		return "", false
	}
	defer c.Close()
	return string(v), true
}

func (o *oracle) add(k store.Key, exchange uint32, body string) {
	v := append(binary.BigEndian.AppendUint32(nil, exchange), body...)
	o.must(o.db.Set(pendingKey(k), v, pebble.NoSync))
}

func (o *oracle) end(k store.Key) {
	delete(o.flying, k)
	o.must(o.db.Delete(pendingKey(k), pebble.NoSync))
}

// waiting is an entry as the oracle has it.
type waiting struct {
	Key      store.Key
	Exchange uint32
	Body     string
}

// pending calls each with what waits or is in flight, in order, until it says stop.
func (o *oracle) pending(to int64, each func(waiting) bool) {
	it, err := o.db.NewIter(&pebble.IterOptions{LowerBound: []byte{'p'}, UpperBound: pendingKey(store.Key{Due: to + 1})})
	o.must(err)
	for it.First(); it.Valid(); it.Next() {
		b, v := it.Key(), it.Value()
		w := waiting{
			Key:      store.Key{Due: int64(binary.BigEndian.Uint64(b[1:])), Seq: binary.BigEndian.Uint64(b[9:])},
			Exchange: binary.BigEndian.Uint32(v), Body: string(v[4:]),
		}
		if !each(w) {
			break
		}
	}
	o.must(it.Close())
}

func (o *oracle) pop(now int64, n int) (list []store.Key) {
	o.pending(now, func(w waiting) bool {
		if len(list) < n && !o.flying[w.Key] {
			list = append(list, w.Key)
		}
		return len(list) < n
	})
	for _, k := range list {
		o.flying[k] = true
	}
	return list
}

const forever = 1 << 60

// rig drives both.
type rig struct {
	*oracle
	rnd    *rand.Rand
	dir    string
	s      *store.Store
	mu     sync.Mutex // guards refs
	refs   map[store.Target]store.Ref
	next   [4]uint64
	flight []store.Due
	n      int
	ops    map[string]int
}

// Holds implements store.Owner.
func (r *rig) Holds(queue uint32, pos uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.refs[store.Target{Queue: queue, Pos: pos}]
	return ok
}

// Relocate implements store.Owner.
func (r *rig) Relocate(queue uint32, pos uint64, from, to store.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := store.Target{Queue: queue, Pos: pos}
	ref, ok := r.refs[t]
	if ok && (ref == from || ref == store.Ref{}) {
		r.refs[t] = to
	}
	return ok
}

// TestOracle does random operations on both and compares all answers.
func TestOracle(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d (repeat with -seed)", seed)
	r := &rig{
		oracle: newOracle(t), rnd: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(),
		refs: map[store.Target]store.Ref{}, ops: map[string]int{},
	}
	r.open()
	defer func() { r.s.Abandon() }()
	var flushed, merged, cleaned uint64
	// Chance may have it that few entries wait long enough for runs to be merged: then it
	// goes on until that happened.
	for i := 0; i < *stepsFlag || i < 10**stepsFlag && (flushed == 0 || merged == 0 || cleaned == 0); i++ {
		r.step()
		if i%2000 == 1999 {
			st := r.s.Stats()
			flushed, merged, cleaned = flushed+st.Flushed, merged+st.Merged, cleaned+st.Cleaned
			r.compare()
			r.reopen()
			r.compare()
		}
	}
	t.Logf("%v; %d flushed, %d merged, %d segments cleaned", r.ops, flushed, merged, cleaned)
	if flushed == 0 || merged == 0 || cleaned == 0 {
		t.Error("no run was written or merged, or no segment cleaned: the test says little")
	}
}

func (r *rig) open() {
	s, err := store.Open(store.OS(), r.dir, store.Options{
		SegmentBytes: 8 << 10, FrameBytes: 1 << 10, ResidentSegments: 1, SlackBytes: 16 << 10,
		FreshBytes: 16 << 10, RunBytes: 12 << 10, RunBlockBytes: 1 << 10, MaxRuns: 6,
	})
	r.must(err)
	r.s = s
}

// reopen stops, as an orderly stop or as kill -9 would after all was confirmed.
func (r *rig) reopen() {
	if r.rnd.IntN(2) == 0 {
		r.must(r.s.Close())
	} else {
		b := &store.Batch{}
		b.Delete("nothing")
		lsn, err := r.s.Commit(b)
		r.must(err)
		r.must(r.s.Wait(r.t.Context(), lsn))
		r.s.Abandon()
	}
	r.open()
	clear(r.flying)
	r.flight = nil
	rec := r.s.Recovered()
	if len(rec.Damages) > 0 {
		r.t.Fatalf("damages %+v", rec.Damages)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.refs)
	var page [64]store.Entry
	for _, q := range rec.Queues {
		for {
			n, err := rec.Entries(q.ID, page[:])
			r.must(err)
			if n == 0 {
				break
			}
			for _, e := range page[:n] {
				r.refs[store.Target{Queue: q.ID, Pos: e.Pos}] = e.Ref
			}
		}
	}
	r.s.SetOwner(r)
}

// compare compares all that both have.
func (r *rig) compare() {
	r.t.Helper()
	var want, got []waiting
	r.pending(forever, func(w waiting) bool {
		if !r.flying[w.Key] {
			want = append(want, w)
		}
		return true
	})
	var after store.Key
	for {
		page, err := r.s.List(store.ListOptions{After: after, Limit: 100}, nil)
		r.must(err)
		if len(page) == 0 {
			break
		}
		for _, l := range page {
			rec, err := r.s.Get(l.Key)
			r.must(err)
			got = append(got, waiting{l.Key, l.ExchangeID, string(rec.Body)})
		}
		after = page[len(page)-1].Key
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Fatalf("what waits (- Pebble, + store):\n%s", diff)
	}
	if n := r.s.PendingTotal().Count; n != uint64(len(want)+len(r.flying)) {
		r.t.Fatalf("%d pending, want %d", n, len(want)+len(r.flying))
	}
	ready, found := map[store.Target]string{}, map[store.Target]string{}
	it, err := r.db.NewIter(&pebble.IterOptions{LowerBound: []byte{'q'}, UpperBound: []byte{'r'}})
	r.must(err)
	for it.First(); it.Valid(); it.Next() {
		b := it.Key()
		t := store.Target{Queue: binary.BigEndian.Uint32(b[1:]), Pos: binary.BigEndian.Uint64(b[5:])}
		ready[t] = string(it.Value())
	}
	r.must(it.Close())
	for t := range ready {
		found[t] = r.read(t)
	}
	r.mu.Lock()
	n := len(r.refs)
	r.mu.Unlock()
	if diff := cmp.Diff(ready, found); diff != "" || n != len(ready) {
		r.t.Fatalf("what is ready, %d in the store (- Pebble, + store):\n%s", n, diff)
	}
}

func (r *rig) read(t store.Target) string {
	for {
		r.mu.Lock()
		ref, ok := r.refs[t]
		r.mu.Unlock()
		if !ok {
			return "missing"
		}
		rec, err := r.s.Read(ref, nil)
		if err == nil {
			return string(rec.Body)
		}
		if err != store.ErrMoved {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) step() {
	steps := []struct {
		weight int
		name   string
		do     func()
	}{
		{6, "append delayed", r.appendDelayed}, {2, "append", r.append}, {2, "cancel", r.cancel},
		{2, "pop", r.pops}, {3, "end", r.ends}, {2, "settle", r.settle}, {1, "drop exchange", r.drop},
	}
	n := r.rnd.IntN(18)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			r.ops[s.name]++
			s.do()
			return
		}
	}
}

func (r *rig) message() *store.Message {
	r.n++
	return &store.Message{
		Exchange: []byte("x"), RoutingKey: []byte("k"), TTL: -1, Persistent: true,
		Body: fmt.Appendf(nil, "%d %*d", r.n, 1+r.rnd.IntN(150), 0),
	}
}

func (r *rig) appendDelayed() {
	m := r.message()
	m.ExchangeID = uint32(1 + r.n/3000*2 + r.rnd.IntN(2))
	k, _, err := r.s.AppendDelayed(m, int64(r.n)+r.rnd.Int64N(2000))
	r.must(err)
	r.add(k, m.ExchangeID, string(m.Body))
}

// place takes a position and counts it as held.
func (r *rig) place() store.Target {
	q := r.rnd.IntN(len(r.next))
	t := store.Target{Queue: uint32(q), Pos: r.next[q]}
	r.next[q]++
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refs[t] = store.Ref{}
	return t
}

func (r *rig) pushed(t store.Target, ref store.Ref, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refs[t] == (store.Ref{}) {
		r.refs[t] = ref
	}
	r.must(r.db.Set(readyKey(t), []byte(body), pebble.NoSync))
}

func (r *rig) append() {
	m, t := r.message(), r.place()
	ref, _, err := r.s.Append(m, []store.Target{t}, 1)
	r.must(err)
	r.pushed(t, ref, string(m.Body))
}

// some returns an entry that waits or is in flight.
func (r *rig) some() (w waiting, ok bool) {
	skip := r.rnd.IntN(60)
	r.pending(forever, func(x waiting) bool {
		w, ok = x, true
		skip--
		return skip >= 0
	})
	return w, ok
}

func (r *rig) cancel() {
	w, ok := r.some()
	if !ok {
		return
	}
	want := store.Cancelled
	if r.flying[w.Key] {
		want = store.AlreadyDue
	}
	got, _, err := r.s.Cancel(w.Key)
	r.must(err)
	if got != want {
		r.t.Fatalf("cancel %v: %v, want %v", w.Key, got, want)
	}
	if got == store.Cancelled {
		r.end(w.Key)
	}
}

func (r *rig) pops() {
	now, n := max(0, int64(r.n)-500+r.rnd.Int64N(1000)), 1+r.rnd.IntN(20)
	got := r.s.PopDue(now, n, nil)
	var keys []store.Key
	for _, d := range got {
		keys = append(keys, d.Key)
	}
	if want := r.pop(now, n); !slices.Equal(want, keys) {
		r.t.Fatalf("popped up to %d: %v, want %v", now, keys, want)
	}
	r.flight = append(r.flight, got...)
}

// ends moves, retries or discards what is first in flight.
func (r *rig) ends() {
	b := &store.Batch{}
	var after []func()
	n := r.rnd.IntN(len(r.flight) + 1)
	for _, d := range r.flight[:n] {
		v, ok := r.has(pendingKey(d.Key))
		if !ok {
			b.Discard(d.Key, d.Ref) // its exchange was dropped
			continue
		}
		exchange, body := binary.BigEndian.Uint32([]byte(v)), v[4:]
		switch r.rnd.IntN(4) {
		case 0:
			due := d.Key.Due + r.rnd.Int64N(500)
			at := len(b.Keys)
			b.Retry(d.Key, d.Ref, due)
			after = append(after, func() {
				r.end(d.Key)
				r.add(b.Keys[at], exchange, body)
			})
		case 1:
			b.Discard(d.Key, d.Ref)
			after = append(after, func() { r.end(d.Key) })
		default:
			t, at := r.place(), len(b.Refs)
			b.Move(&store.Move{Key: d.Key, Ref: d.Ref, TTL: -1, Persistent: true, Targets: []store.Target{t}, Holds: 1})
			after = append(after, func() {
				r.end(d.Key)
				r.pushed(t, b.Refs[at], body)
			})
		}
	}
	_, err := r.s.Commit(b)
	r.must(err)
	for _, f := range after {
		f()
	}
	r.flight = r.flight[n:]
}

func (r *rig) settle() {
	it, err := r.db.NewIter(&pebble.IterOptions{LowerBound: readyKey(store.Target{Queue: uint32(r.rnd.IntN(4))}), UpperBound: []byte{'r'}})
	r.must(err)
	defer func() { r.must(it.Close()) }()
	if !it.First() {
		return
	}
	b := it.Key()
	t := store.Target{Queue: binary.BigEndian.Uint32(b[1:]), Pos: binary.BigEndian.Uint64(b[5:])}
	r.mu.Lock()
	ref := r.refs[t]
	r.mu.Unlock()
	r.s.Settle(t.Queue, []uint64{t.Pos}, []store.Ref{ref})
	r.mu.Lock()
	delete(r.refs, t)
	r.mu.Unlock()
	r.must(r.db.Delete(readyKey(t), pebble.NoSync))
}

// drop drops an exchange now and then, while nothing is in flight. Later messages
// go to others.
func (r *rig) drop() {
	old := r.n/3000*2 - 1
	if len(r.flight) > 0 || old < 1 || r.rnd.IntN(10) > 0 {
		return
	}
	b := &store.Batch{}
	b.DropExchange(uint32(old))
	_, err := r.s.Commit(b)
	r.must(err)
	r.pending(forever, func(w waiting) bool {
		if w.Exchange == uint32(old) {
			r.end(w.Key)
		}
		return true
	})
}
