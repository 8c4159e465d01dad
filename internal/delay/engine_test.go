package delay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/store"
)

func expectNames(t *testing.T, got []handOver, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), names(got)); diff != "" {
		t.Errorf("handed over (-want +got):\n%s", diff)
	}
}

// TestEngineRandomDelays adds entries with random delays and looks at each hand-over: in
// order, at the very millisecond, all of them.
func TestEngineRandomDelays(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	rigTest(t, Config{MaxBatch: 7}, func(t *testing.T, r *rig) {
		var want []store.Key
		for range 500 {
			due := CeilMillis(r.clock.Now()) + rng.Int64N(2000)
			key, _, err := r.engine.Add(&store.Message{Body: []byte("m"), TTL: -1}, due)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, key)
			time.Sleep(time.Duration(rng.IntN(5000)) * time.Microsecond)
		}
		time.Sleep(time.Minute)
		var got []store.Key
		for _, h := range r.sink.take() {
			got = append(got, h.key)
			if h.at < h.key.Due {
				t.Errorf("released %d ms early", h.key.Due-h.at)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("released: got %d, want %d", len(got), len(want))
		}
		stats := r.engine.Stats()
		if late := stats.Lateness.Quantile(1); late > time.Microsecond {
			t.Errorf("latest: got %v, want on the millisecond", late)
		}
	})
}

func TestEngineOrder(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{MaxBatch: 3}, func(t *testing.T, r *rig) {
		base := r.clock.in(time.Second)
		var want []string
		for i := range 10 { // all due at once: in the order in which they were accepted
			name := fmt.Sprint("same ", i)
			r.publish(name, base+500)
			want = append(want, name)
		}
		r.publish("first", base)
		r.publish("last", base+501)
		advance(time.Minute)
		expectNames(t, r.sink.take(), append(append([]string{"first"}, want...), "last")...)
	})
}

func TestEngineEarlierEntryMovesTheAlarm(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		r.publish("far", r.clock.in(24*time.Hour))
		advance(time.Hour)
		near := r.clock.in(time.Second)
		r.publish("near", near)
		advance(time.Second)
		got := r.sink.take()
		expectNames(t, got, "near")
		if got[0].at != near {
			t.Errorf("near: handed over %d ms late", got[0].at-near)
		}
		advance(24 * time.Hour)
		expectNames(t, r.sink.take(), "far")
	})
}

// TestEngineAddWhileItGoesToSleep adds an entry at the worst moment: the engine has looked for
// the earliest entry and has not yet set its alarm.
func TestEngineAddWhileItGoesToSleep(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		r.publish("far", r.clock.in(time.Hour))
		synctest.Wait()
		r.store.mu.Lock()
		r.store.afterNext = func() { r.publish("near", r.clock.in(time.Second)) }
		r.store.mu.Unlock()
		r.engine.signal()
		advance(time.Second)
		expectNames(t, r.sink.take(), "near")
	})
}

func TestEngineOverdueGoesAtOnce(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		r.publish("past", r.clock.in(-time.Hour))
		r.publish("now", r.clock.in(0))
		expectNames(t, r.sink.take(), "past", "now")
	})
}

// TestEngineSleepsWhenNothingIsPending counts wakes over a year.
func TestEngineSleepsWhenNothingIsPending(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		r.publish("one", r.clock.in(time.Second))
		advance(time.Minute)
		cancelled := r.publish("two", r.clock.in(time.Hour))
		if outcome, _, err := r.engine.Cancel(cancelled); outcome != store.Cancelled || err != nil {
			t.Fatalf("cancel: got %v, %v", outcome, err)
		}
		synctest.Wait()
		before := r.alarms.Stats()
		if before.Set != 0 {
			t.Errorf("alarms set with nothing pending: got %d, want 0", before.Set)
		}
		advance(365 * 24 * time.Hour)
		if after := r.alarms.Stats(); after.Wakes != before.Wakes {
			t.Errorf("wakes in a year with nothing pending: got %d, want 0", after.Wakes-before.Wakes)
		}
		expectNames(t, r.sink.take(), "one")
	})
}

func TestEngineCancel(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		key := r.publish("cancelled", r.clock.in(time.Second))
		kept := r.publish("kept", r.clock.in(time.Second))
		cancel := func(key store.Key, want store.Outcome) {
			t.Helper()
			if got, _, err := r.engine.Cancel(key); got != want || err != nil {
				t.Errorf("cancel: got %v, %v, want %v", got, err, want)
			}
		}
		cancel(key, store.Cancelled)
		cancel(key, store.NotFound)
		r.sink.onRoute(func([]store.Due) { cancel(kept, store.AlreadyDue) })
		advance(time.Minute)
		expectNames(t, r.sink.take(), "kept")
		cancel(kept, store.NotFound)
		if got := r.engine.Stats(); got.Cancelled != 1 || got.Released != 1 || got.Pending.Count != 0 {
			t.Errorf("stats: got %+v, want 1 cancelled, 1 released, none pending", got)
		}
	})
}

func TestEngineFillsInOutcomes(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		r.sink.rule("ttl", Outcome{Verdict: Moved, TTL: 5000, Persistent: true, Arrived: 77})
		r.sink.rule("parked", Outcome{Verdict: Parked, Reason: "no queue", TTL: -1})
		r.sink.rule("dropped", Outcome{Verdict: Dropped})
		r.sink.rule("copied", Outcome{Verdict: Copied})
		for _, name := range []string{"plain", "ttl", "parked", "dropped", "copied"} {
			r.publish(name, r.clock.in(time.Second))
		}
		advance(time.Second)
		now := r.clock.in(0)
		var got []Outcome
		for _, h := range r.sink.take() {
			got = append(got, h.outcome)
		}
		want := []Outcome{
			{Verdict: Moved, Targets: []store.Target{{Queue: testQueue, Pos: 1}}, Holds: 1, Arrived: now, TTL: -1},
			{Verdict: Moved, Targets: []store.Target{{Queue: testQueue, Pos: 2}}, Holds: 1, Arrived: 77, TTL: 5000,
				Persistent: true},
			{Verdict: Parked, Targets: []store.Target{{Queue: parkingQueue, Pos: 3}}, Holds: 1, TTL: -1, Reason: "no queue"},
			{Verdict: Dropped},
			{Verdict: Copied},
		}
		if diff := cmp.Diff(want, got, cmp.Transformer("targets", slices.Clone[[]store.Target])); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		stats := r.engine.Stats()
		if stats.Released != 3 || stats.Parked != 1 || stats.Dropped != 1 || stats.Added != 5 || stats.Batches != 1 ||
			stats.Pending.Count != 0 {
			t.Errorf("stats: got %+v", stats)
		}
	})
}

// TestEngineKeepsOutcomesApart uses the scratch space many times, with different numbers of
// targets, and looks whether an outcome has what belongs to another.
func TestEngineKeepsOutcomesApart(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{MaxBatch: 4}, func(t *testing.T, r *rig) {
		for i := range 40 {
			if i%3 == 0 {
				r.sink.rule(fmt.Sprint(i), Outcome{Verdict: Dropped})
			}
			r.publish(fmt.Sprint(i), r.clock.in(time.Second))
		}
		advance(time.Second)
		for i, h := range r.sink.take() {
			want := []store.Target{{Queue: testQueue, Pos: uint64(i + 1)}}
			if i%3 == 0 {
				want = nil
			}
			if !slices.Equal(h.outcome.Targets, want) {
				t.Errorf("%s: got %v, want %v", h.name, h.outcome.Targets, want)
			}
		}
	})
}

// TestEngineUsesThePlacesThatCommitReports has a store that says the records have moved, as
// its cleaner may.
func TestEngineUsesThePlacesThatCommitReports(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		r.sink.rule("rejected", Outcome{Verdict: Retry})
		r.sink.rule("parked", Outcome{Verdict: Parked, TTL: -1})
		r.sink.rule("dropped", Outcome{Verdict: Dropped})
		for _, name := range []string{"a", "rejected", "parked", "dropped", "b"} {
			r.publish(name, r.clock.in(time.Second))
		}
		var before []store.Ref
		r.sink.onRoute(func(batch []store.Due) {
			for _, d := range batch {
				before = append(before, d.Ref)
			}
			r.sink.onRoute(nil)
		})
		r.store.mu.Lock()
		r.store.shift = 1000
		r.store.mu.Unlock()
		advance(time.Second)
		for i, h := range r.sink.take() {
			want := before[i]
			if v := h.outcome.Verdict; v == Moved || v == Parked {
				want.File += 1000
			}
			if h.ref != want {
				t.Errorf("entry %d: got place %v, want %v", i, h.ref, want)
			}
		}
	})
}

func TestEngineRejectedEntryHoldsUpNobody(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{RetryMin: 100 * time.Millisecond, RetryMax: time.Second}, func(t *testing.T, r *rig) {
		reject := Outcome{Verdict: Retry}
		r.sink.rule("full", reject, reject, reject)
		start := r.clock.in(time.Second)
		r.publish("full", start)
		r.publish("other", start)
		r.publish("later", start+150)
		advance(time.Minute)
		var got []string
		for _, h := range r.sink.take() {
			if h.outcome.Verdict == Moved {
				got = append(got, fmt.Sprintf("%s +%d", h.name, h.at-start))
			}
		}
		want := []string{"other +0", "later +150", "full +700"} // 100 + 200 + 400
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("moved (-want +got):\n%s", diff)
		}
		if got := r.engine.Stats(); got.Retried != 3 || got.Released != 3 {
			t.Errorf("stats: got %+v, want 3 retried and 3 released", got)
		}
		if n := len(r.engine.release.retry.attempts); n != 0 {
			t.Errorf("attempts remembered: got %d, want 0", n)
		}
	})
}

// TestEngineRetryNeverSpins lets the sink ask for attempts in the past.
func TestEngineRetryNeverSpins(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		r.sink.rule("full", slices.Repeat([]Outcome{{Verdict: Retry, RetryAt: 1}}, 5)...)
		start := r.clock.in(0)
		r.publish("full", start)
		advance(time.Second)
		got := r.sink.take()
		if len(got) != 6 || got[5].at-start != 5 {
			t.Errorf("got %d attempts, the last after %d ms, want 6 after 5 ms", len(got), got[len(got)-1].at-start)
		}
	})
}

func TestEngineClockStepsForward(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		r.publish("in an hour", r.clock.in(time.Hour))
		r.publish("in three", r.clock.in(3*time.Hour))
		r.clock.step(2 * time.Hour)
		r.alarms.Recheck()
		expectNames(t, r.sink.take(), "in an hour")
		advance(time.Hour)
		expectNames(t, r.sink.take(), "in three")
	})
}

func TestEngineClockStepsBack(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		due := r.clock.in(time.Hour)
		r.publish("in an hour", due)
		r.clock.step(-30 * time.Minute)
		advance(time.Hour) // the timer goes off, and finds that it is early
		expectNames(t, r.sink.take())
		r.publish("in a minute", r.clock.in(time.Minute)) // counts from the new time
		advance(time.Minute)
		expectNames(t, r.sink.take(), "in a minute")
		advance(time.Hour)
		got := r.sink.take()
		expectNames(t, got, "in an hour")
		if got[0].at != due {
			t.Errorf("handed over %d ms late", got[0].at-due)
		}
	})
}

// TestEngineClockStepsBackAfterForward goes a year ahead by mistake and back again.
func TestEngineClockStepsBackAfterForward(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		year := 365 * 24 * time.Hour
		r.publish("half a year", r.clock.in(year/2))
		r.publish("two years", r.clock.in(2*year))
		r.clock.step(year)
		r.alarms.Recheck()
		expectNames(t, r.sink.take(), "half a year")
		r.clock.step(-year)
		r.alarms.Recheck()
		r.publish("a second", r.clock.in(time.Second))
		advance(time.Second)
		expectNames(t, r.sink.take(), "a second")
		advance(2 * year)
		expectNames(t, r.sink.take(), "two years")
	})
}

func TestEngineRestart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		down func(*rig)
	}{{"stopped", (*rig).stop}, {"killed", (*rig).kill}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rigTest(t, Config{}, func(t *testing.T, r *rig) {
				r.publish("released", r.clock.in(time.Second))
				r.publish("c", r.clock.in(3*time.Hour))
				r.publish("a", r.clock.in(time.Hour))
				r.publish("b", r.clock.in(2*time.Hour))
				advance(time.Minute) // the release is durable by now
				expectNames(t, r.sink.take(), "released")
				c.down(r)
				advance(150 * time.Minute)
				r.open()
				if got := r.engine.Stats().Pending.Count; got != 3 {
					t.Errorf("pending after the restart: got %d, want 3", got)
				}
				r.start()
				expectNames(t, r.sink.take(), "a", "b")
				advance(time.Hour)
				expectNames(t, r.sink.take(), "c")
			})
		})
	}
}

func TestEngineStopDuringRelease(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{MaxBatch: 1}, func(t *testing.T, r *rig) {
		begun, finish := make(chan bool), make(chan bool)
		var once sync.Once
		r.sink.onRoute(func([]store.Due) {
			once.Do(func() { close(begun); <-finish })
		})
		r.publish("under way", r.clock.in(time.Second))
		r.publish("pending", r.clock.in(time.Second))
		<-begun
		stopped := make(chan bool)
		go func() { r.engine.Stop(); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("Stop did not wait for the batch under way")
		default:
		}
		close(finish)
		<-stopped
		expectNames(t, r.sink.take(), "under way")
		if _, _, err := r.engine.Add(&store.Message{}, 0); !errors.Is(err, ErrStopped) {
			t.Errorf("add after Stop: got %v, want %v", err, ErrStopped)
		}
		if _, _, err := r.engine.Cancel(store.Key{}); !errors.Is(err, ErrStopped) {
			t.Errorf("cancel after Stop: got %v, want %v", err, ErrStopped)
		}
		r.stop()
		r.open()
		r.start()
		expectNames(t, r.sink.take(), "pending")
	})
}

func TestEngineStopWithoutStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Store: &flakyStore{}, Alarms: NewAlarms(SystemClock{}, nil), Clock: SystemClock{}})
		e.Stop()
		e.Stop()
	})
}

// TestEngineStopsWithItsStore lets the store fail in the two ways it can.
func TestEngineStopsWithItsStore(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk is gone")
	for _, c := range []struct {
		name           string
		commit, always error
	}{{"commit", broken, nil}, {"sync", nil, broken}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rigTest(t, Config{}, func(t *testing.T, r *rig) {
				r.publish("before", r.clock.in(time.Second))
				advance(time.Second)
				expectNames(t, r.sink.take(), "before")

				r.publish("lost sight of", r.clock.in(time.Second))
				r.publish("later", r.clock.in(time.Minute))
				r.store.fail(c.commit, c.always)
				advance(2 * time.Second)
				expectNames(t, r.sink.take())
				if err := r.engine.Err(); !errors.Is(err, broken) {
					t.Errorf("Err: got %v, want %v", err, broken)
				}
				if !strings.Contains(r.log.String(), "release stopped for good") {
					t.Errorf("log: got %q, want it to say that release stopped", r.log)
				}
				if _, _, err := r.engine.Add(&store.Message{}, 0); !errors.Is(err, broken) {
					t.Errorf("add: got %v, want %v", err, broken)
				}

				r.store.fail(nil, nil) // a store that seems well again is not believed
				advance(time.Hour)
				expectNames(t, r.sink.take())
				if !r.engine.Stats().Failed {
					t.Error("stats: got not failed, want failed")
				}

				r.stop()
				r.open()
				r.start()
				expectNames(t, r.sink.take(), "lost sight of", "later")
			})
		})
	}
}

func TestEngineHoldsOnFullDisk(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		r.publish("a", r.clock.in(time.Second))
		r.store.fail(store.ErrFull, nil)
		advance(10 * time.Second)
		expectNames(t, r.sink.take())
		if got := r.engine.Stats(); !got.Held || got.Failed {
			t.Errorf("stats: got %+v, want held and not failed", got)
		}
		r.publish("b", r.clock.in(0))
		r.store.fail(nil, nil)
		advance(fullRetry)
		expectNames(t, r.sink.take(), "a", "b")
		if got := r.engine.Stats(); got.Held {
			t.Error("stats: got held, want not")
		}
		if got := strings.Count(r.log.String(), "no room on the disk"); got != 1 {
			t.Errorf("said %d times that the disk is full, want once:\n%s", got, r.log)
		}
		if r.sink.routed != 2 {
			t.Errorf("Route: got %d calls, want 2: a held batch is not routed again", r.sink.routed)
		}
	})
}

// TestEngineDamagedRetry: what cannot be written again is dropped, and all else goes on.
func TestEngineDamagedRetry(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		var want []string
		for i := range 20 {
			name := fmt.Sprint(i)
			r.publish(name, r.clock.in(time.Second))
			if i%5 == 2 {
				r.sink.rule(name, Outcome{Verdict: Retry})
			} else {
				want = append(want, name)
			}
		}
		r.store.breakRetries(&store.CorruptError{File: "run-1", Reason: "checksum mismatch"})
		advance(time.Second)
		var moved []string
		dropped := 0
		for _, h := range r.sink.take() {
			switch h.outcome.Verdict {
			case Moved:
				moved = append(moved, h.name)
			case Dropped:
				dropped++
			}
		}
		if diff := cmp.Diff(want, moved); diff != "" {
			t.Errorf("moved (-want +got):\n%s", diff)
		}
		if dropped != 4 {
			t.Errorf("dropped: got %d, want 4", dropped)
		}
		if err := r.engine.Err(); err != nil {
			t.Errorf("Err: got %v, want nil", err)
		}
		if n := r.store.PendingTotal().Count; n != 0 {
			t.Errorf("pending: got %d, want 0", n)
		}
	})
}

// TestEngineAddedByOthers puts an entry in with a batch of the store, as a transaction does.
func TestEngineAddedByOthers(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		var b store.Batch
		due := r.clock.in(time.Minute)
		b.AppendDelayed(&store.Message{Body: []byte("tx"), TTL: -1}, due)
		if _, err := r.store.Commit(&b); err != nil {
			t.Fatal(err)
		}
		r.engine.Added(1, due)
		advance(time.Minute)
		expectNames(t, r.sink.take(), "tx")
	})
}

// TestEngineConcurrentAdds looks for lost wakes: adders race with the goroutine going to sleep.
func TestEngineConcurrentAdds(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{MaxBatch: 8}, func(t *testing.T, r *rig) {
		const adders, each = 8, 500
		var wg sync.WaitGroup
		for range adders {
			wg.Go(func() {
				for i := range each {
					due := r.clock.in(time.Duration(i%3) * time.Millisecond)
					if _, _, err := r.engine.Add(&store.Message{TTL: -1}, due); err != nil {
						t.Errorf("add: %v", err)
					}
					if i%50 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		wg.Wait()
		advance(10 * time.Millisecond)
		if got := len(r.sink.take()); got != adders*each {
			t.Errorf("handed over: got %d, want %d", got, adders*each)
		}
	})
}

// TestEngineMillionAtOneInstant releases a million entries that are due at once, in order.
func TestEngineMillionAtOneInstant(t *testing.T) {
	t.Parallel()
	n := 1_000_000
	if raceDetector {
		n = 100_000
	}
	e, _ := engineOn(t)
	m := &store.Message{Body: []byte("flood"), TTL: -1}
	for range n {
		if _, _, err := e.Add(m, 1000); err != nil {
			t.Fatal(err)
		}
	}
	sink := &countingSink{want: n, done: make(chan struct{})}
	e.Start(sink)
	<-sink.done
	e.Stop()
	if sink.n != n || sink.disorder != 0 {
		t.Errorf("released: got %d, %d out of order, want %d in order", sink.n, sink.disorder, n)
	}
	if got := e.Stats(); got.Released != uint64(n) {
		t.Errorf("stats: got %+v, want all released", got)
	}
}

// countingSink moves everything to testQueue and counts what is out of order.
type countingSink struct {
	n, disorder int
	pos         uint64
	last        store.Key
	want        int           // closes done when n is that
	done        chan struct{} // may be nil
}

func (s *countingSink) Route(batch []store.Due, out []Outcome) {
	for i := range batch {
		s.pos++
		out[i].Verdict = Moved
		out[i].Targets = append(out[i].Targets, store.Target{Queue: testQueue, Pos: s.pos})
	}
}

func (s *countingSink) Push(batch []store.Due, _ []Outcome) {
	for i := range batch {
		if !s.last.Less(batch[i].Key) {
			s.disorder++
		}
		s.last = batch[i].Key
		s.n++
	}
	if s.done != nil && s.n == s.want {
		close(s.done)
	}
}

// TestHoldReleasesNothingAndTakesEverything: what falls due while clients are waited for stays.
func TestHoldReleasesNothingAndTakesEverything(t *testing.T) {
	t.Parallel()
	rigTest(t, Config{}, func(t *testing.T, r *rig) {
		r.publish("pending", r.clock.in(time.Second))
		r.engine.Hold()
		r.publish("taken", r.clock.in(time.Second))
		advance(time.Hour)
		expectNames(t, r.sink.take())
		r.stop()
		r.open()
		r.start()
		expectNames(t, r.sink.take(), "pending", "taken")
	})
}
