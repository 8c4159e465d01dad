package store

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// model is what the store should contain.
type model struct {
	queues  map[Target]string // body
	pending map[uint64]waitingEntry
	defs    map[string]string
	maxSeq  uint64
}

type waitingEntry struct {
	due  int64
	ex   uint32
	hash uint64
	body string
}

func newModel() *model {
	return &model{queues: map[Target]string{}, pending: map[uint64]waitingEntry{}, defs: map[string]string{}}
}

func (m *model) clone() *model {
	return &model{maps.Clone(m.queues), maps.Clone(m.pending), maps.Clone(m.defs), m.maxSeq}
}

func (m *model) String() string {
	var lines []string
	for t, b := range m.queues {
		lines = append(lines, fmt.Sprintf("queue %d %d %s", t.Queue, t.Pos, brief(b)))
	}
	for seq, e := range m.pending {
		lines = append(lines, fmt.Sprintf("pending %d %d ex%d key%d %s", e.due, seq, e.ex, e.hash, brief(e.body)))
	}
	for k, v := range m.defs {
		lines = append(lines, fmt.Sprintf("def %s=%s", k, v))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func brief(body string) string {
	n, _, _ := strings.Cut(body, ":")
	return fmt.Sprintf("message %s, %d bytes", n, len(body))
}

// rig runs random operations against a store on a fake disk and a model beside it.
type rig struct {
	t    testing.TB
	rnd  *rand.Rand
	disk *fakeDisk
	o    Options
	s    *Store

	mu      sync.Mutex // guards refs and leaving, which the cleaner's goroutine uses too
	refs    map[Target]Ref
	leaving map[Target]bool // somebody has the reference and is going to settle
	queues  []uint32
	nextQ   uint32
	next    map[uint32]uint64 // position
	exs     []uint32
	nextEx  uint32
	flying  []Due
	n       int
	faulty  bool // any error may come

	model   *model
	history []version // the last is the present
	durable LSN       // confirmed to us
}

// version is the model after an operation.
type version struct {
	lsn   LSN
	model *model
}

func newRig(t testing.TB, seed uint64, o Options) *rig {
	r := &rig{
		t: t, rnd: rand.New(rand.NewPCG(seed, 0)), disk: newFakeDisk(seed), o: o,
		model: newModel(), nextQ: 1, nextEx: 1,
	}
	return r
}

// Holds implements Owner.
func (r *rig) Holds(queue uint32, pos uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.refs[Target{queue, pos}]
	return ok
}

// Relocate implements Owner.
func (r *rig) Relocate(queue uint32, pos uint64, from, to Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := Target{queue, pos}
	ref, ok := r.refs[at]
	if ok && (ref == from || ref == Ref{}) {
		r.refs[at] = to
		if ref == from && !r.leaving[at] {
			r.s.Drop(from)
		}
	}
	return ok
}

// open opens the store and takes over what it recovered, as the broker does.
// It returns false if the power went again.
func (r *rig) open() bool {
	r.t.Helper()
	s, err := Open(r.disk, "d", r.o)
	if err != nil {
		if r.dead(err) {
			return false
		}
		r.t.Fatalf("open: %v", err)
	}
	r.s = s
	rec := s.Recovered()
	if len(rec.Damages) > 0 {
		r.t.Fatalf("undamaged disk: %+v", rec.Damages)
	}
	got := newModel()
	r.refs, r.leaving, r.next, r.flying = map[Target]Ref{}, map[Target]bool{}, map[uint32]uint64{}, nil
	for _, q := range rec.Queues {
		r.next[q.ID] = q.Next
		entries, err := leftIn(rec, q.ID)
		if err != nil {
			return r.abandon()
		}
		for i, e := range entries {
			if i > 0 && entries[i-1].Pos >= e.Pos {
				r.t.Fatalf("queue %d: positions not ascending", q.ID)
			}
			if e.Pos >= q.Next {
				r.t.Fatalf("queue %d: position %d, next is %d", q.ID, e.Pos, q.Next)
			}
			t := Target{q.ID, e.Pos}
			r.refs[t] = e.Ref
			body, ok := r.read(e.Ref)
			if !ok {
				return r.abandon()
			}
			got.queues[t] = body
		}
	}
	for _, d := range rec.Definitions {
		got.defs[d.Key] = string(d.Value)
	}
	if !r.takePending(got) {
		return r.abandon()
	}
	r.match(got)
	s.SetOwner(r)
	return true
}

func (r *rig) abandon() bool {
	r.s.Abandon()
	return false
}

// takePending lists all pending entries by popping and putting them back.
func (r *rig) takePending(got *model) bool {
	listed, err := r.s.List(ListOptions{Limit: 1 << 20}, nil)
	if err != nil {
		if !r.dead(err) {
			r.t.Fatalf("list: %v", err)
		}
		return false
	}
	all := r.s.PopDue(maxDue, 1<<30, nil)
	if n := r.s.PendingTotal().Count; uint64(len(all)) != n {
		if !r.dead(nil) { // else a run could not be read
			r.t.Fatalf("popped %d, %d are pending", len(all), n)
		}
		return false
	}
	if !slices.IsSortedFunc(all, func(a, b Due) int { return boolCmp(a.Key.Less(b.Key), b.Key.Less(a.Key)) }) {
		r.t.Fatal("popped out of order")
	}
	if !slices.EqualFunc(listed, all, func(l Listed, d Due) bool {
		return l == Listed{d.Key, d.ExchangeID, d.Ref.Len}
	}) {
		r.t.Fatalf("listed %v\npopped %v", listed, all)
	}
	b := &Batch{}
	for _, d := range all {
		rec, ok := r.record(d.Ref)
		if !ok {
			return false
		}
		got.pending[d.Key.Seq] = waitingEntry{d.Key.Due, d.ExchangeID, rec.KeyHash, string(rec.Body)}
		b.Retry(d.Key, d.Ref, d.Key.Due)
	}
	if _, err := r.s.Commit(b); err != nil {
		if !r.dead(err) {
			r.t.Fatalf("retry all: %v", err)
		}
		return false
	}
	return true
}

func boolCmp(less, more bool) int {
	switch {
	case less:
		return -1
	case more:
		return 1
	}
	return 0
}

func (r *rig) dead(err error) bool {
	if r.faulty {
		return true
	}
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	return r.disk.cut || errors.Is(err, errPowerCut)
}

func (r *rig) read(ref Ref) (string, bool) {
	rec, ok := r.record(ref)
	return string(rec.Body), ok
}

func (r *rig) record(ref Ref) (Record, bool) {
	rec, err := r.s.Read(ref, nil)
	if err != nil {
		if !r.dead(err) {
			r.t.Fatalf("read %+v: %v", ref, err)
		}
		return Record{}, false
	}
	if string(rec.Exchange) != "ex" || string(rec.Props) != "props" {
		r.t.Fatalf("read %+v: exchange %q, props %q", ref, rec.Exchange, rec.Props)
	}
	return rec, true
}

// match finds the version that was recovered: the last that was confirmed, or a later one.
func (r *rig) match(got *model) {
	r.t.Helper()
	if len(r.history) == 0 {
		r.history = []version{{0, newModel()}}
	}
	g := got.String()
	first := 0
	for i, v := range r.history {
		if v.lsn != 0 && v.lsn <= r.durable {
			first = i
		}
	}
	// Of several equal versions the earliest: it used the fewest sequence numbers.
	for _, v := range r.history[first:] {
		if v.model.String() == g {
			r.model = v.model.clone()
			r.history = []version{{0, r.model.clone()}}
			return
		}
	}
	r.t.Fatalf("recovered what never was (confirmed up to %d; - closest, + got):\n%s", r.durable, r.closest(g))
}

// closest returns the smallest difference to any version, confirmed or not.
func (r *rig) closest(got string) string {
	best := ""
	for i, v := range r.history {
		d := gocmp.Diff(strings.Split(v.model.String(), "\n"), strings.Split(got, "\n"))
		if best == "" || len(d) < len(best) {
			best = fmt.Sprintf("version %d of %d, LSN %d\n%s", i, len(r.history), v.lsn, d)
		}
	}
	return best
}

// note records the model after an operation.
func (r *rig) note(lsn LSN) {
	r.history = append(r.history, version{lsn, r.model.clone()})
	if len(r.history) > 5000 {
		r.t.Fatal("history too long: the workload never waits")
	}
}

func (r *rig) wait(lsn LSN) bool {
	if err := r.s.Wait(r.t.Context(), lsn); err != nil {
		if !r.dead(err) {
			r.t.Fatalf("wait: %v", err)
		}
		return false
	}
	r.durable = lsn
	for i := len(r.history) - 1; i > 0; i-- {
		if r.history[i].lsn != 0 && r.history[i].lsn <= lsn {
			r.history = slices.Delete(r.history, 0, i)
			break
		}
	}
	return true
}

func (r *rig) message() *Message {
	r.n++
	size := r.rnd.IntN(120)
	switch r.rnd.IntN(40) {
	case 0:
		size = 2 * int(r.o.SegmentBytes) // a segment of its own
	case 1:
		size = int(r.o.SegmentBytes) / 2
	case 2, 3:
		size = min(r.o.LargeBytes, 200) + r.rnd.IntN(9000)
	}
	m := &Message{
		Exchange: []byte("ex"), RoutingKey: []byte("key"), Props: []byte("props"),
		Body: fmt.Appendf(nil, "%d:%s", r.n, strings.Repeat("x", size)), TTL: -1, Persistent: true,
	}
	if r.rnd.IntN(3) == 0 {
		m.TTL = r.rnd.Int64N(1000)
	}
	return m
}

// place reserves positions in some queues.
func (r *rig) place() []Target {
	var ts []Target
	for _, q := range r.queues {
		if r.rnd.IntN(len(r.queues)) == 0 {
			ts = append(ts, Target{q, r.next[q]})
			r.next[q]++
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range ts {
		r.refs[t] = Ref{} // reserved counts as held
	}
	return ts
}

// pushed makes the reserved positions refer to ref, unless the cleaner was faster.
func (r *rig) pushed(ts []Target, ref Ref, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range ts {
		r.model.queues[t] = body
		if r.refs[t] == (Ref{}) {
			r.refs[t] = ref
		} else {
			r.s.Drop(ref)
		}
	}
}

// taken removes up to n random positions of one queue from the model.
func (r *rig) taken(n int) (q uint32, pos []uint64, refs []Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := slices.SortedFunc(maps.Keys(r.model.queues), func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Pos, b.Pos))
	})
	if len(held) == 0 {
		return 0, nil, nil
	}
	at := r.rnd.IntN(len(held))
	q = held[at].Queue
	for ; at < len(held) && held[at].Queue == q && len(pos) < n; at += 1 + r.rnd.IntN(2) {
		pos, refs = append(pos, held[at].Pos), append(refs, r.refs[held[at]])
		r.leaving[held[at]] = true
		delete(r.model.queues, held[at])
	}
	return q, pos, refs
}

// ended lets go of positions, after the call that ended them.
func (r *rig) ended(q uint32, pos []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range pos {
		delete(r.refs, Target{q, p})
		delete(r.leaving, Target{q, p})
	}
}

func (r *rig) add(k Key, m *Message) {
	if k.Seq <= r.model.maxSeq {
		r.t.Fatalf("sequence number %d used twice", k.Seq)
	}
	r.model.maxSeq = k.Seq
	r.model.pending[k.Seq] = waitingEntry{k.Due, m.ExchangeID, m.KeyHash, string(m.Body)}
}

// ok turns the power cut into false and any other error into the test's end.
func (r *rig) ok(lsn LSN, err error) bool {
	r.t.Helper()
	if err != nil {
		if !r.dead(err) {
			r.t.Fatal(err)
		}
		return false
	}
	r.note(lsn)
	return true
}
