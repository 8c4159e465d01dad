package delay

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/store"
)

// testQueue is the queue that fakeSink moves entries to, parkingQueue where it parks them.
const (
	testQueue    = 1
	parkingQueue = 2
)

// rig is an engine on a real store in a directory of the test, with a clock that can be set,
// a store that can fail and a sink that does as it is told. It lives in a synctest bubble.
type rig struct {
	t      *testing.T
	dir    string
	clock  *fakeClock
	log    *bytes.Buffer
	config Config // what of it is set is used

	storeOptions store.Options

	store  *flakyStore
	alarms *Alarms
	engine *Engine
	sink   *fakeSink
}

// newRig returns a rig that runs.
func newRig(t *testing.T, c Config) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), clock: &fakeClock{}, config: c}
	r.begin()
	return r
}

// begin makes what is not set and starts it all.
func (r *rig) begin() {
	r.t.Helper()
	r.log = &bytes.Buffer{}
	r.sink = &fakeSink{clock: r.clock, rules: map[string][]Outcome{}}
	r.open()
	r.start()
}

// open opens the store and makes what stands on it.
func (r *rig) open() {
	r.t.Helper()
	o := r.storeOptions
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 1 << 20
	}
	s, err := store.Open(store.OS(), r.dir, o)
	if err != nil {
		r.t.Fatalf("open store: %v", err)
	}
	log := slog.New(slog.NewTextHandler(r.log, nil))
	r.store = &flakyStore{Store: s}
	r.alarms = NewAlarms(r.clock, log)
	c := r.config
	c.Store, c.Alarms, c.Clock, c.Logger = r.store, r.alarms, r.clock, log
	r.engine = New(c)
	r.engine.release.retry.jitter = func(int64) int64 { return 0 }
	r.sink.store = s
}

func (r *rig) start() {
	r.alarms.Start()
	r.engine.Start(r.sink)
}

// stop stops what runs, in the order in which it depends on each other, and closes the store.
func (r *rig) stop() {
	r.t.Helper()
	r.engine.Stop()
	r.alarms.Stop()
	if err := r.store.Store.(*store.Store).Close(); err != nil && r.store.Err() == nil {
		r.t.Errorf("close store: %v", err)
	}
}

// kill stops what runs without a last word to the disk.
func (r *rig) kill() {
	r.engine.Stop()
	r.alarms.Stop()
	r.store.Store.(*store.Store).Abandon()
}

// publish adds a message named name.
func (r *rig) publish(name string, due int64) store.Key {
	r.t.Helper()
	key, lsn, err := r.engine.Add(&store.Message{Body: []byte(name), ExchangeID: 7, TTL: -1}, due)
	if err != nil {
		r.t.Fatalf("add %s: %v", name, err)
	}
	r.durable(lsn)
	return key
}

// durable waits until lsn is, as a publisher does for its confirm.
func (r *rig) durable(lsn store.LSN) {
	r.t.Helper()
	if err := r.store.Store.(*store.Store).Wait(r.t.Context(), lsn); err != nil {
		r.t.Fatalf("wait for the disk: %v", err)
	}
}

// flakyStore fails by rule.
type flakyStore struct {
	Store
	mu        sync.Mutex
	commitErr error  // what Commit answers
	retryErr  error  // what Commit answers to a group with a retry
	err       error  // what Err answers
	shift     uint32 // added to the place of each record that Commit reports
	afterNext func() // called once, after NextDue has looked
}

func (s *flakyStore) fail(commit, always error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commitErr, s.err = commit, always
}

func (s *flakyStore) breakRetries(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retryErr = err
}

func (s *flakyStore) Commit(b *store.Batch) (store.LSN, error) {
	s.mu.Lock()
	err, shift := s.commitErr, s.shift
	if err == nil && len(b.Keys) > 0 {
		err = s.retryErr
	}
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	lsn, err := s.Store.Commit(b)
	for i := range b.Refs {
		b.Refs[i].File += shift
	}
	return lsn, err
}

func (s *flakyStore) NextDue() (int64, bool) {
	due, ok := s.Store.NextDue()
	s.mu.Lock()
	then := s.afterNext
	s.afterNext = nil
	s.mu.Unlock()
	if then != nil {
		then()
	}
	return due, ok
}

func (s *flakyStore) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.err, s.Store.Err())
}

// fakeSink moves every entry to testQueue unless a rule says otherwise, and notes what is
// handed over.
type fakeSink struct {
	clock *fakeClock
	store *store.Store

	mu     sync.Mutex
	rules  map[string][]Outcome // by the message's name: answers to use up first
	pos    uint64               // last place handed out
	during func([]store.Due)    // called in each Route; see onRoute
	routed int                  // calls of Route
	handed []handOver
	buf    []byte
}

// handOver is one entry that came back to Push.
type handOver struct {
	name    string
	at      int64 // unix milliseconds by the clock
	key     store.Key
	ref     store.Ref
	outcome Outcome
}

func (s *fakeSink) Route(batch []store.Due, out []Outcome) {
	s.mu.Lock()
	during := s.during
	s.routed++
	for i := range batch {
		targets := out[i].Targets
		if rules := s.rules[s.name(batch[i].Ref)]; len(rules) > 0 {
			out[i], s.rules[s.name(batch[i].Ref)] = rules[0], rules[1:]
			out[i].Targets = targets
		} else {
			out[i].Verdict = Moved
		}
		s.pos++
		switch out[i].Verdict {
		case Moved:
			out[i].Targets = append(targets, store.Target{Queue: testQueue, Pos: s.pos})
		case Parked:
			out[i].Targets = append(targets, store.Target{Queue: parkingQueue, Pos: s.pos})
		}
	}
	s.mu.Unlock()
	if during != nil {
		during(batch)
	}
}

func (s *fakeSink) Push(batch []store.Due, out []Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range batch {
		h := handOver{s.name(batch[i].Ref), s.clock.Now().UnixMilli(), batch[i].Key, batch[i].Ref, out[i]}
		h.outcome.Targets = slices.Clone(out[i].Targets)
		s.handed = append(s.handed, h)
	}
}

// name is the body of the message at ref.
func (s *fakeSink) name(ref store.Ref) string {
	record, err := s.store.Read(ref, s.buf)
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return string(record.Body)
}

// take returns what was handed over since the last call.
func (s *fakeSink) take() []handOver {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.handed
	s.handed = nil
	return taken
}

// rule makes the next attempts for a message end in the given outcomes.
func (s *fakeSink) rule(name string, outcomes ...Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules[name] = append(s.rules[name], outcomes...)
}

// onRoute has f called in each Route.
func (s *fakeSink) onRoute(f func([]store.Due)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.during = f
}

// names lists the names of what was handed over.
func names(list []handOver) []string {
	got := []string{}
	for _, h := range list {
		got = append(got, h.name)
	}
	return got
}

// rigTest runs a test with a rig in virtual time.
func rigTest(t *testing.T, c Config, test func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, c)
		defer r.stop()
		test(t, r)
	})
}

// advance lets time pass.
func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
