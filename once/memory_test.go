package once_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/oncetest"
	"github.com/duepost/duepost/once"
)

// memoryBench has one store for all.
type memoryBench struct{ leases once.Leases }

func (b memoryBench) Store(t *testing.T, o once.Options) once.Store[once.Lease] {
	t.Helper()
	s, err := once.NewLeased(b.leases, o)
	if err != nil {
		t.Fatalf("make store: %v", err)
	}
	return s
}

func TestMemory(t *testing.T) {
	t.Parallel()
	oncetest.Exercise(t, func(*testing.T) oncetest.Bench[once.Lease] {
		return memoryBench{once.NewMemoryLeases()}
	})
}

func newMemory(t *testing.T, o once.Options) once.Store[once.Lease] {
	t.Helper()
	s, err := once.NewMemory(o)
	if err != nil {
		t.Fatalf("make store: %v", err)
	}
	return s
}

func TestMemoryForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t, once.Options{Keep: time.Hour})
		n := 0
		work := func(context.Context, once.Lease) error { n++; return nil }
		for _, step := range []struct {
			pass time.Duration
			want int
		}{{0, 1}, {time.Hour - 1, 1}, {1, 2}} {
			time.Sleep(step.pass)
			if err := once.Do(t.Context(), s, "k", work); err != nil || n != step.want {
				t.Errorf("after %v: got %v and %d times, want %d", step.pass, err, n, step.want)
			}
		}
	})
}

func TestLeaseIsRenewedWhileTheWorkRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t, once.Options{Lease: time.Second, Duplicates: once.Skip})
		err := once.Do(t.Context(), s, "k", func(ctx context.Context, _ once.Lease) error {
			time.Sleep(10 * time.Second)
			other := once.Do(ctx, s, "k", func(context.Context, once.Lease) error { return nil })
			if !errors.Is(other, once.ErrBusy) {
				t.Errorf("another after ten leases: got %v, want ErrBusy", other)
			}
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("do: %v", err)
		}
	})
}

// A process that dies while it works: nobody renews and nobody releases.
func TestLapsedLeaseIsGrantedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := once.NewMemoryLeases()
		dead, err := leases.Claim(t.Context(), "k", time.Minute)
		if err != nil || dead.Lease.Holder == "" {
			t.Fatalf("claim: got %+v, %v", dead, err)
		}
		began := time.Now()
		s := memoryBench{leases}.Store(t, once.Options{})
		var next once.Lease
		err = once.Do(t.Context(), s, "k", func(_ context.Context, l once.Lease) error { next = l; return nil })
		if waited := time.Since(began); err != nil || waited < time.Minute || waited > time.Minute+time.Second {
			t.Errorf("do: got %v after %v, want it done after the lease of a minute", err, waited)
		}
		if next.Fence <= dead.Lease.Fence {
			t.Errorf("fence: got %d after %d, want it to grow", next.Fence, dead.Lease.Fence)
		}
		held, err := leases.Finish(t.Context(), dead.Lease, time.Hour)
		if held || err != nil {
			t.Errorf("finish of the dead one: got %v, %v, want that it is not held", held, err)
		}
	})
}

// flakyLeases stops answering once it is down.
type flakyLeases struct {
	once.Leases
	down bool
}

var errDown = errors.New("store is down")

func (f *flakyLeases) Renew(ctx context.Context, l once.Lease, d time.Duration) (bool, error) {
	if f.down {
		return false, errDown
	}
	return f.Leases.Renew(ctx, l, d)
}

func (f *flakyLeases) Finish(ctx context.Context, l once.Lease, d time.Duration) (bool, error) {
	if f.down {
		return false, errDown
	}
	return f.Leases.Finish(ctx, l, d)
}

func TestWorkEndsWhenItsLeaseIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := &flakyLeases{Leases: once.NewMemoryLeases()}
		s := memoryBench{leases}.Store(t, once.Options{Lease: 3 * time.Second})
		var ended time.Duration
		err := once.Do(t.Context(), s, "k", func(ctx context.Context, _ once.Lease) error {
			leases.down = true
			began := time.Now()
			<-ctx.Done()
			ended = time.Since(began)
			return context.Cause(ctx)
		})
		if !errors.Is(err, once.ErrLeaseLost) || ended != 3*time.Second {
			t.Errorf("got %v after %v, want ErrLeaseLost when the lease of 3s has lapsed", err, ended)
		}
	})
}

func TestWorkNotRecordedIsAnError(t *testing.T) {
	t.Parallel()
	leases := &flakyLeases{Leases: once.NewMemoryLeases()}
	s := memoryBench{leases}.Store(t, once.Options{})
	err := once.Do(t.Context(), s, "k", func(context.Context, once.Lease) error { leases.down = true; return nil })
	if !errors.Is(err, errDown) {
		t.Errorf("got %v, want the error of the store: the message must come again", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, o := range []once.Options{
		{Keep: time.Millisecond}, {Keep: -time.Hour}, {Lease: -1}, {Duplicates: 2},
	} {
		if _, err := once.NewMemory(o); !errors.Is(err, once.ErrInvalid) {
			t.Errorf("%+v: got %v, want ErrInvalid", o, err)
		}
	}
}
