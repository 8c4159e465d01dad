package ladder_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/duepostest"
	"github.com/duepost/duepost/ladder"
)

const queue = "unpaid"

var errDown = errors.New("database is down")

// rig is a broker, a client with its clock, and what a ladder was told and told.
type rig struct {
	t      *testing.T
	broker *duepostest.Broker
	client *duepost.Client
	took   chan ladder.Step

	mu      sync.Mutex
	checks  []error // answers of Check, errDone for done; guarded by mu
	expires []error // answers of Expire; guarded by mu
	expired int     // guarded by mu
}

var errDone = errors.New("done")

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, broker: duepostest.Start(t), took: make(chan ladder.Step, 100)}
	client, err := duepost.Connect(t.Context(), duepost.Options{URL: r.broker.URL, Now: r.broker.Now})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { client.Close() })
	r.client = client
	return r
}

// ladder makes a ladder that asks the rig.
func (r *rig) ladder(s ladder.Steps) *ladder.Ladder {
	r.t.Helper()
	l, err := ladder.New(r.t.Context(), r.client, ladder.Options{
		Steps: s, Check: r.check, Expire: r.expire, Now: r.broker.Now,
		OnStep: func(s ladder.Step) { r.took <- s },
		Consumer: duepost.Consumer{
			Queue: queue, Retry: duepost.Retry{Attempts: 3, Backoff: duepost.Backoff{First: 20 * time.Millisecond}},
		},
	})
	if err != nil {
		r.t.Fatalf("make ladder: %v", err)
	}
	return l
}

// run lets a ladder take steps until the test ends.
func (r *rig) run(l *ladder.Ladder) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Errorf("run ladder: %v", err)
		}
	})
}

func (r *rig) begin(l *ladder.Ladder, id string) {
	r.t.Helper()
	if err := l.Begin(r.t.Context(), id); err != nil {
		r.t.Fatalf("begin: %v", err)
	}
}

// answer says what Check and Expire will answer; nil for ever afterwards.
func (r *rig) answer(checks, expires []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks, r.expires = checks, expires
}

func (r *rig) check(context.Context, string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := first(&r.checks)
	return err == errDone, notDone(err)
}

func (r *rig) expire(context.Context, string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := first(&r.expires)
	if err == nil {
		r.expired++
	}
	return err
}

func first(list *[]error) error {
	if len(*list) == 0 {
		return nil
	}
	err := (*list)[0]
	*list = (*list)[1:]
	if err != nil && err.Error() == "panic" {
		panic("no such luck")
	}
	return err
}

func notDone(err error) error {
	if err == errDone {
		return nil
	}
	return err
}

// next is what came of the next step.
func (r *rig) next() ladder.Step {
	r.t.Helper()
	select {
	case s := <-r.took:
		if s.Received.Before(s.Due) {
			r.t.Errorf("step %d came %v early", s.N, s.Due.Sub(s.Received))
		}
		return s
	case <-time.After(30 * time.Second):
		r.t.Fatal("no step in 30 s")
		return ladder.Step{}
	}
}

// pending reports whether a message waits for an item, and takes it out.
func (r *rig) pending(id string) bool {
	r.t.Helper()
	err := r.client.Cancel(r.t.Context(), "", queue+"/"+id)
	if err != nil && !errors.Is(err, duepost.ErrNotPending) {
		r.t.Fatalf("cancel: %v", err)
	}
	return err == nil
}

// way is the outcomes of steps and when they were due, as text.
func (r *rig) way(advance ...time.Duration) (way []string) {
	r.t.Helper()
	for _, d := range advance {
		r.broker.Advance(d)
		s := r.next()
		way = append(way, fmt.Sprintf("%d at %v: %s", s.N, s.Due.Sub(s.Began), s.Outcome))
	}
	return way
}

func TestClimbsToTheDeadlineAndExpiresOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.ladder(ladder.Steps{Deadline: 30 * time.Minute})
	r.run(l)
	r.begin(l, "17")
	const m = time.Minute
	got := r.way(m, 2*m, 4*m, 8*m, 15*m)
	want := []string{"1 at 1m0s: not yet", "2 at 3m0s: not yet", "3 at 7m0s: not yet", "4 at 15m0s: not yet", "5 at 30m0s: expired"}
	if !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if r.pending("17") {
		t.Error("something waits for an item that has expired")
	}
	if r.expired != 1 {
		t.Errorf("expired %d times", r.expired)
	}
}

func TestDoneLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.ladder(ladder.Steps{Deadline: time.Hour})
	r.run(l)
	r.answer([]error{nil, errDone}, nil)
	r.begin(l, "17")
	got := r.way(time.Minute, 2*time.Minute)
	if want := []string{"1 at 1m0s: not yet", "2 at 3m0s: done"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if r.pending("17") {
		t.Error("something waits for an item that is done")
	}
	r.begin(l, "18")
	if err := l.Finish(t.Context(), "18"); err != nil {
		t.Errorf("finish: %v", err)
	}
	if r.pending("18") {
		t.Error("something waits for an item that was finished")
	}
	if err := l.Finish(t.Context(), "18"); err != nil {
		t.Errorf("finish what is finished: %v", err)
	}
}

func TestFailedCheckIsTriedAgainWithinTheStep(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.ladder(ladder.Steps{Deadline: 3 * time.Minute})
	r.run(l)
	// More failures than attempts: the last of them counts as not yet. Then at the deadline.
	r.answer([]error{errDown, errors.New("panic"), errDown, errDown, nil}, nil)
	r.begin(l, "17")
	got := r.way(time.Minute, 0, 0, 2*time.Minute, 0)
	want := []string{"1 at 1m0s: failed", "1 at 1m0s: failed", "1 at 1m0s: failed", "2 at 3m0s: failed", "2 at 3m0s: expired"}
	if !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRetryDoesNotMoveTheDeadline(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// The pause of 20 ms is longer than what is left of the time.
	l := r.ladder(ladder.Steps{First: 30 * time.Millisecond, Deadline: 40 * time.Millisecond})
	r.run(l)
	r.answer([]error{errDown}, nil)
	r.begin(l, "17")
	r.broker.Advance(time.Second)
	s := r.next()
	if s.N != 1 || s.Outcome != ladder.Failed || !s.Next.Equal(s.Deadline) {
		t.Errorf("first step: got %+v, want the next at the deadline", s)
	}
	if s := r.next(); s.N != 2 || s.Outcome != ladder.Expired {
		t.Errorf("second step: got %+v", s)
	}
}

func TestExpireThatFailsIsRetriedAndParked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.ladder(ladder.Steps{Deadline: time.Minute})
	r.run(l)
	r.answer(nil, []error{errDown, errDown, errDown})
	r.begin(l, "17")
	got := r.way(time.Minute, 0, 0)
	if want := []string{"1 at 1m0s: failed", "1 at 1m0s: failed", "1 at 1m0s: failed"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// What is parked can go on.
	ctx, cancel := context.WithCancel(t.Context())
	err := r.client.Consume(ctx, duepost.Consumer{Queue: queue + ".parked"}, func(ctx context.Context, d *duepost.Delivery) error {
		defer cancel()
		if p, _ := d.Parked(); p.Reason != "expire: database is down" || p.Attempts != 3 {
			t.Errorf("parked: got %+v", p)
		}
		_, err := r.client.Publish(ctx, d.Message)
		return err
	})
	if err != nil {
		t.Fatalf("consume what is parked: %v", err)
	}
	if s := r.next(); s.Outcome != ladder.Expired {
		t.Errorf("published again: got %+v", s)
	}
}

func TestNeverBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.ladder(ladder.Steps{Deadline: time.Hour, First: time.Hour})
	r.run(l)
	m := l.First("17")
	m.At, m.Key = time.Time{}, "" // as if somebody did not want to wait
	if _, err := r.client.Publish(t.Context(), m); err != nil {
		t.Fatalf("publish: %v", err)
	}
	// It must wait again before the clock is moved. Asking whether it does takes it out.
	for !r.pending("17") {
		select {
		case s := <-r.took:
			t.Fatalf("a message that came early: %+v", s)
		default:
		}
	}
	if r.expired != 0 {
		t.Errorf("expired %d times, an hour early", r.expired)
	}
}

func TestWhoIsLateLooksOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.ladder(ladder.Steps{Factor: 1, Deadline: time.Hour})
	r.run(l)
	r.begin(l, "17")
	r.broker.Advance(40 * time.Minute)
	if s := r.next(); s.N != 1 || s.Lateness() < 39*time.Minute {
		t.Errorf("first step: got %+v", s)
	}
	r.broker.Advance(time.Minute)
	if s := r.next(); s.N != 2 || s.Due.Sub(s.Began) < 41*time.Minute {
		t.Errorf("second step: got %+v, want it a minute after the first came", s)
	}
}

func TestDuplicatesAreHarmless(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.ladder(ladder.Steps{Deadline: 3 * time.Minute})
	r.run(l)
	m := l.First("17")
	m.Key = "" // so that both come
	for range 2 {
		if _, err := r.client.Publish(t.Context(), m); err != nil {
			t.Fatalf("publish: %v", err)
		}
	}
	r.broker.Advance(time.Minute)
	for range 2 {
		if s := r.next(); s.N != 1 || s.Outcome != ladder.NotYet {
			t.Errorf("got %+v", s)
		}
	}
	if got, want := r.way(2*time.Minute), []string{"2 at 3m0s: expired"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	r.begin(l, "18") // whatever else waits for 17 would come before
	if s := r.way(time.Minute); s[0] != "1 at 1m0s: not yet" || r.expired != 1 {
		t.Errorf("got %q, expired %d times, want one message after the two", s, r.expired)
	}
}

func TestItemsKeepTheStepsTheyBeganWith(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(r.ladder(ladder.Steps{Deadline: 3 * time.Minute}), "17")
	r.run(r.ladder(ladder.Steps{First: time.Second, Factor: 5, Deadline: time.Hour}))
	got := r.way(time.Minute, 2*time.Minute)
	if want := []string{"1 at 1m0s: not yet", "2 at 3m0s: expired"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMessagesOfAnotherVersionAreParked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run(r.ladder(ladder.Steps{Deadline: time.Minute}))
	_, err := r.client.Publish(t.Context(), duepost.Message{
		RoutingKey: queue, Body: []byte("17"), Headers: map[string]any{"x-ladder": "v=2"},
	})
	if err != nil {
		t.Fatalf("publish: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = r.client.Consume(ctx, duepost.Consumer{Queue: queue + ".parked"}, func(_ context.Context, d *duepost.Delivery) error {
		defer cancel()
		if p, _ := d.Parked(); p.Reason != `read header x-ladder: version is "2", known is 1` || p.Attempts != 1 {
			t.Errorf("parked: got %+v", p)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("consume what is parked: %v", err)
	}
}

func TestWorksInWaitQueues(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tiers := []time.Duration{20 * time.Millisecond}
	client, err := duepost.Connect(t.Context(), duepost.Options{
		URL: r.broker.URL, Mode: duepost.ModeWaitQueues, Wait: duepost.WaitQueues{Tiers: tiers},
	})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { client.Close() })
	r.client = client
	l := r.ladder(ladder.Steps{First: 20 * time.Millisecond, Deadline: 60 * time.Millisecond})
	r.run(l)
	r.begin(l, "17")
	if s := r.next(); s.N != 1 || s.Outcome != ladder.NotYet {
		t.Errorf("got %+v", s)
	}
	if s := r.next(); s.N != 2 || s.Outcome != ladder.Expired {
		t.Errorf("got %+v", s)
	}
}
