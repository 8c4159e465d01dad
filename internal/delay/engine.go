package delay

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duepost/duepost/internal/store"
)

// Defaults of Config.
const (
	DefaultMaxBatch = 1024
	DefaultRetryMin = 100 * time.Millisecond
	DefaultRetryMax = 30 * time.Second
)

// ErrStopped is what a use of the engine after Stop answers.
var ErrStopped = errors.New("delay engine is stopped")

// Store is what the engine needs of a store; *store.Store has it. The contracts are there.
type Store interface {
	AppendDelayed(m *store.Message, due int64) (store.Key, store.LSN, error)
	NextDue() (int64, bool)
	PopDue(now int64, max int, dst []store.Due) []store.Due
	Commit(b *store.Batch) (store.LSN, error)
	Cancel(key store.Key) (store.Outcome, store.LSN, error)
	PendingTotal() store.Pending
	Err() error
}

// Config is what an Engine is made of.
type Config struct {
	Store  Store        // keeps the entries; opened before and closed after the engine
	Alarms *Alarms      // wakes the engine; started by whoever owns it
	Clock  Clock        // decides what is due; the same as that of Alarms
	Logger *slog.Logger // nil discards

	// MaxBatch is how many entries are released in one atomic group. Larger groups cost
	// less each, smaller ones hand over sooner. 0 means DefaultMaxBatch.
	MaxBatch int

	// RetryMin and RetryMax are the shortest and the longest time between two attempts to
	// release an entry that its target rejects. 0 means DefaultRetryMin, DefaultRetryMax.
	RetryMin, RetryMax time.Duration
}

// Engine releases delayed messages when they are due.
//
// Roles: one goroutine (run), which sleeps until its alarm goes off and then works until
// nothing is due. Whoever adds an entry makes sure that the alarm is not later than that
// entry's due instant. Invariant whenever the goroutine sleeps and mu is free: nextDue and the
// alarm are not later than the earliest entry in the store.
type Engine struct {
	store Store
	clock Clock
	log   *slog.Logger
	alarm *Alarm

	wake chan struct{} // holds one signal: there may be something due
	quit chan struct{}
	done chan struct{} // closed when the goroutine has ended

	// nextDue is the instant the alarm is set for: notArmed if it is not set, or working
	// while the goroutine is at work and will look itself before it sleeps. Read without
	// mu by Add, changed under mu.
	nextDue atomic.Int64

	mu      sync.Mutex // guards the alarm with nextDue, and started; taken before Alarms.mu
	started bool

	failure atomic.Pointer[error] // why release has stopped for good
	held    atomic.Bool           // nothing is released any more
	stopped atomic.Bool           // nothing is taken any more

	release  release // the goroutine's own
	counters counters
}

const (
	notArmed = math.MaxInt64 // later than every due instant
	working  = math.MinInt64 // earlier than every due instant
)

// New returns an engine that has not been started. It accepts entries already.
func New(c Config) *Engine {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.MaxBatch == 0 {
		c.MaxBatch = DefaultMaxBatch
	}
	if c.RetryMin == 0 {
		c.RetryMin = DefaultRetryMin
	}
	if c.RetryMax == 0 {
		c.RetryMax = DefaultRetryMax
	}
	e := &Engine{
		store: c.Store,
		clock: c.Clock,
		log:   c.Logger.With("part", "delay"),
		wake:  make(chan struct{}, 1),
		quit:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	e.release = release{
		max:   c.MaxBatch,
		retry: newBackOff(c.RetryMin, c.RetryMax),
	}
	e.nextDue.Store(working) // Start looks into the store
	e.alarm = c.Alarms.New(func(int64) { e.signal() })
	return e
}

// Start begins to release to sink, overdue entries first. It is called once.
func (e *Engine) Start(sink Sink) {
	e.mu.Lock()
	e.started = true
	e.mu.Unlock()
	e.release.sink = sink
	e.log.Info("release of delayed messages started", "pending", e.store.PendingTotal().Count)
	e.signal()
	go e.run()
}

// Hold ends the release for good and waits for the batch that is under way. Entries are still
// taken, and stay in the store with what is pending. A broker that stops does this first: what
// it released while its clients leave would only be lost, if it is transient. It must not be
// called by the Sink.
func (e *Engine) Hold() {
	if e.held.Swap(true) {
		return
	}
	close(e.quit)
	e.mu.Lock()
	started := e.started
	e.alarm.Clear()
	e.mu.Unlock()
	if started {
		<-e.done
		e.log.Info("release of delayed messages stopped", "pending", e.store.PendingTotal().Count)
	}
}

// Stop is Hold, and from then on entries are refused.
func (e *Engine) Stop() {
	e.stopped.Store(true)
	e.Hold()
}

// Add keeps m until due (unix milliseconds) and then releases it. An instant in the past is
// due at once. m is copied. The entry is safe once the returned LSN is durable. It may be
// called from any goroutine, also under locks; it blocks only when the store holds back
// writers. After a failure of the store or after Stop it refuses.
func (e *Engine) Add(m *store.Message, due int64) (store.Key, store.LSN, error) {
	if err := e.refuse(); err != nil {
		return store.Key{}, 0, err
	}
	key, lsn, err := e.store.AppendDelayed(m, due)
	if err != nil {
		return store.Key{}, 0, fmt.Errorf("add delayed message: %w", err)
	}
	e.counters.added.Add(1)
	e.Expect(key.Due)
	return key, lsn, nil
}

// Added tells the engine of n entries that were put into the store by somebody else's
// store.Batch, the earliest of them due at the given instant. It must be called after the
// commit, else they are released late.
func (e *Engine) Added(n int, earliestDue int64) {
	e.counters.added.Add(uint64(n))
	e.Expect(earliestDue)
}

// Expect makes sure that the engine wakes at due or earlier.
func (e *Engine) Expect(due int64) {
	if due >= e.nextDue.Load() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if due < e.nextDue.Load() && !e.held.Load() {
		e.nextDue.Store(due)
		e.alarm.Set(due)
	}
}

// Cancel takes out a pending entry. Exactly one of release and cancel happens, and the
// outcome says which; it is final once the returned LSN is durable.
func (e *Engine) Cancel(key store.Key) (store.Outcome, store.LSN, error) {
	if err := e.refuse(); err != nil {
		return 0, 0, err
	}
	outcome, lsn, err := e.store.Cancel(key)
	if err != nil {
		return 0, 0, fmt.Errorf("cancel delayed message: %w", err)
	}
	if outcome == store.Cancelled {
		e.Cancelled(1, key.Due)
	}
	return outcome, lsn, nil
}

// Cancelled tells the engine of n entries that were taken out by somebody else's
// store.Batch, the earliest of them due at the given instant.
func (e *Engine) Cancelled(n int, earliestDue int64) {
	e.counters.cancelled.Add(uint64(n))
	if earliestDue <= e.nextDue.Load() {
		e.signal() // it may have been the last: let the goroutine set the alarm anew
	}
}

// Replace takes out those of old that still wait and puts m, unless it is nil, into their
// place, in one atomic group: of release and replacement exactly one happens to each. m is
// added even if none waited. It returns how many did; all is final once the LSN is durable.
// b is scratch space. Otherwise it is like Add.
func (e *Engine) Replace(b *store.Batch, old []store.Key, m *store.Message, due int64) (int, store.LSN, error) {
	if err := e.refuse(); err != nil {
		return 0, 0, err
	}
	b.Reset()
	earliest := int64(notArmed)
	for _, key := range old {
		b.Cancel(key)
		earliest = min(earliest, key.Due)
	}
	if m != nil {
		b.AppendDelayed(m, due)
	}
	lsn, err := e.store.Commit(b)
	if err != nil {
		return 0, 0, fmt.Errorf("replace delayed message: %w", err)
	}
	n := 0
	for _, outcome := range b.Outcomes {
		if outcome == store.Cancelled {
			n++
		}
	}
	if n > 0 {
		e.Cancelled(n, earliest)
	}
	if m != nil {
		e.Added(1, b.Keys[0].Due)
	}
	return n, lsn, nil
}

// Err returns why the engine has stopped releasing for good, or nil. For /healthz.
func (e *Engine) Err() error {
	if p := e.failure.Load(); p != nil {
		return *p
	}
	return e.store.Err()
}

// refuse is the answer to those who would add to an engine that releases no more.
func (e *Engine) refuse() error {
	if p := e.failure.Load(); p != nil {
		return *p
	}
	if e.stopped.Load() {
		return ErrStopped
	}
	return nil
}

// signal wakes the goroutine. It never blocks.
func (e *Engine) signal() {
	select {
	case e.wake <- struct{}{}:
	default: // it has a signal waiting
	}
}

// run waits; releaseAll works.
func (e *Engine) run() {
	defer close(e.done)
	for {
		select {
		case <-e.quit:
			return
		case <-e.wake:
		}
		if err := e.releaseAll(); err != nil {
			e.fail(err)
			return
		}
	}
}

// fail ends the release for good: what was popped is in doubt, and a store that has failed
// once is not trusted again. The process has to be restarted, and health says so.
func (e *Engine) fail(err error) {
	e.failure.Store(&err)
	e.mu.Lock()
	e.alarm.Clear()
	e.mu.Unlock()
	e.log.Error("release stopped for good; restart when the store is well", "err", err)
}
