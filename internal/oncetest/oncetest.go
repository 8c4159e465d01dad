// Package oncetest is the suite that every store of package once must pass. It knows stores by
// their interface only: how they are made, and what their work gets, is up to the caller.
package oncetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duepost/duepost/once"
)

// Bench makes stores for a test. All that one Bench makes share their records.
type Bench[T any] interface {
	// Store makes another store, as another process would.
	Store(t *testing.T, o once.Options) once.Store[T]
}

var errWork = errors.New("work went wrong")

// Exercise runs the suite. newBench is called for each test, with records of its own.
func Exercise[T any](t *testing.T, newBench func(t *testing.T) Bench[T]) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Bench[T]){
		"the second call does nothing":         testSecond[T],
		"a failure leaves no record":           testFailure[T],
		"a panic leaves no record":             testPanic[T],
		"keys are told apart":                  testKeys[T],
		"keys that cannot be are refused":      testBadKeys[T],
		"two at once: one waits":               testWait[T],
		"two at once: one waits, then works":   testWaitFailure[T],
		"two at once: one is skipped":          testSkip[T],
		"waiting ends with the context":        testWaitEnds[T],
		"many at once: each key is done once":  testMany[T],
		"work ended by its context is no work": testCanceled[T],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newBench(t))
		})
	}
}

func count[T any](n *atomic.Int64) func(context.Context, T) error {
	return func(context.Context, T) error {
		n.Add(1)
		return nil
	}
}

func testSecond[T any](t *testing.T, b Bench[T]) {
	var n atomic.Int64
	for range 3 {
		if err := once.Do(t.Context(), b.Store(t, once.Options{}), "order 17", count[T](&n)); err != nil {
			t.Fatalf("do: %v", err)
		}
	}
	if n.Load() != 1 {
		t.Errorf("work was done %d times, want once", n.Load())
	}
}

func testFailure[T any](t *testing.T, b Bench[T]) {
	var n atomic.Int64
	s := b.Store(t, once.Options{})
	err := once.Do(t.Context(), s, "k", func(context.Context, T) error { return errWork })
	if !errors.Is(err, errWork) {
		t.Errorf("do: got %v, want the error of the work", err)
	}
	if err := once.Do(t.Context(), s, "k", count[T](&n)); err != nil || n.Load() != 1 {
		t.Errorf("next try: got %v and %d times, want the work done", err, n.Load())
	}
}

func testPanic[T any](t *testing.T, b Bench[T]) {
	var n atomic.Int64
	s := b.Store(t, once.Options{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("recovered nothing, want the panic of the work")
			}
		}()
		var nothing []error
		_ = once.Do(t.Context(), s, "k", func(context.Context, T) error { return nothing[n.Load()] })
	}()
	if err := once.Do(t.Context(), s, "k", count[T](&n)); err != nil || n.Load() != 1 {
		t.Errorf("next try: got %v and %d times, want the work done", err, n.Load())
	}
}

func testKeys[T any](t *testing.T, b Bench[T]) {
	var n atomic.Int64
	s := b.Store(t, once.Options{})
	keys := []string{"a", "A", "a ", "ä", "a%", strings.Repeat("x", 255), strings.Repeat("x", 254)}
	for _, key := range keys {
		if err := once.Do(t.Context(), s, key, count[T](&n)); err != nil {
			t.Errorf("do %q: %v", key, err)
		}
	}
	if int(n.Load()) != len(keys) {
		t.Errorf("got %d keys, want %d", n.Load(), len(keys))
	}
}

func testBadKeys[T any](t *testing.T, b Bench[T]) {
	var n atomic.Int64
	for _, key := range []string{"", "\xff", "a\x00", strings.Repeat("x", 256)} {
		if err := once.Do(t.Context(), b.Store(t, once.Options{}), key, count[T](&n)); !errors.Is(err, once.ErrInvalid) {
			t.Errorf("do %q: got %v, want ErrInvalid", key, err)
		}
	}
	if n.Load() != 0 {
		t.Errorf("work was done %d times, want never", n.Load())
	}
}

// hold begins work on a key and returns when it is under way. end lets it return err and tells
// what Do returned.
func hold[T any](t *testing.T, s once.Store[T], key string, err error) (end func() error) {
	t.Helper()
	began, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- once.Do(context.WithoutCancel(t.Context()), s, key, func(context.Context, T) error {
			close(began)
			<-goOn
			return err
		})
	}()
	end = sync.OnceValue(func() error { close(goOn); return <-ended })
	t.Cleanup(func() { _ = end() })
	select {
	case <-began:
	case err := <-ended:
		ended <- err
		t.Fatalf("work did not begin: %v", err)
	}
	return end
}

func testWait[T any](t *testing.T, b Bench[T]) {
	var n atomic.Int64
	end := hold(t, b.Store(t, once.Options{}), "k", nil)
	second := make(chan error, 1)
	go func() { second <- once.Do(t.Context(), b.Store(t, once.Options{}), "k", count[T](&n)) }()
	select {
	case err := <-second:
		t.Errorf("second call returned %v while the first was at work", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := end(); err != nil {
		t.Errorf("first call: %v", err)
	}
	if err := <-second; err != nil || n.Load() != 0 {
		t.Errorf("second call: got %v and work done %d times, want nil and never", err, n.Load())
	}
}

func testWaitFailure[T any](t *testing.T, b Bench[T]) {
	var n atomic.Int64
	end := hold(t, b.Store(t, once.Options{}), "k", errWork)
	second := make(chan error, 1)
	go func() { second <- once.Do(t.Context(), b.Store(t, once.Options{}), "k", count[T](&n)) }()
	if err := end(); !errors.Is(err, errWork) {
		t.Errorf("first call: got %v, want the error of its work", err)
	}
	if err := <-second; err != nil || n.Load() != 1 {
		t.Errorf("second call: got %v and work done %d times, want nil and once", err, n.Load())
	}
}

func testSkip[T any](t *testing.T, b Bench[T]) {
	var n atomic.Int64
	s := b.Store(t, once.Options{Duplicates: once.Skip})
	end := hold(t, s, "k", nil)
	if err := once.Do(t.Context(), s, "k", count[T](&n)); !errors.Is(err, once.ErrBusy) {
		t.Errorf("while another works: got %v, want ErrBusy", err)
	}
	if err := end(); err != nil {
		t.Errorf("first call: %v", err)
	}
	if err := once.Do(t.Context(), s, "k", count[T](&n)); err != nil || n.Load() != 0 {
		t.Errorf("after it is done: got %v and work done %d times, want nil and never", err, n.Load())
	}
}

func testWaitEnds[T any](t *testing.T, b Bench[T]) {
	var n atomic.Int64
	end := hold(t, b.Store(t, once.Options{}), "k", nil)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := once.Do(ctx, b.Store(t, once.Options{}), "k", count[T](&n)); err == nil || n.Load() != 0 {
		t.Errorf("got %v and work done %d times, want an error and never", err, n.Load())
	}
	if err := end(); err != nil {
		t.Errorf("first call: %v", err)
	}
}

func testMany[T any](t *testing.T, b Bench[T]) {
	const keys, callers = 5, 4
	var n atomic.Int64
	var all sync.WaitGroup
	for range callers {
		s := b.Store(t, once.Options{})
		all.Go(func() {
			for k := range keys {
				if err := once.Do(t.Context(), s, fmt.Sprint("key ", k), count[T](&n)); err != nil {
					t.Errorf("do: %v", err)
				}
			}
		})
	}
	all.Wait()
	if n.Load() != keys {
		t.Errorf("work was done %d times, want %d", n.Load(), keys)
	}
}

func testCanceled[T any](t *testing.T, b Bench[T]) {
	var n atomic.Int64
	s := b.Store(t, once.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	err := once.Do(ctx, s, "k", func(ctx context.Context, _ T) error {
		cancel()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was canceled", err)
	}
	if err := once.Do(t.Context(), s, "k", count[T](&n)); err != nil || n.Load() != 1 {
		t.Errorf("next try: got %v and %d times, want the work done", err, n.Load())
	}
}
