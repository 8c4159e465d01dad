package redisonce_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/duepost/duepost/internal/oncetest"
	"github.com/duepost/duepost/internal/testdatabase"
	"github.com/duepost/duepost/once"
	"github.com/duepost/duepost/once/redisonce"
)

// bench is a scope of its own.
type bench struct {
	client *redis.Client
	scope  string
}

func (b bench) Store(t *testing.T, o once.Options) once.Store[once.Lease] {
	t.Helper()
	s, err := redisonce.New(b.client, b.scope, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func connect(t *testing.T, server *testdatabase.Server) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: server.Socket, MaxRetries: -1})
	t.Cleanup(func() { client.Close() })
	return client
}

func TestRedis(t *testing.T) {
	t.Parallel()
	client := connect(t, testdatabase.Redis(t))
	var scopes atomic.Int64
	newBench := func(*testing.T) oncetest.Bench[once.Lease] {
		return bench{client, fmt.Sprint("scope", scopes.Add(1))}
	}
	t.Run("every store", func(t *testing.T) { oncetest.Exercise(t, newBench) })
	for name, test := range map[string]func(*testing.T, bench){
		"a dead holder's lease lapses":        testLapse,
		"a lease is renewed":                  testRenew,
		"records are kept as long as asked":   testKeep,
		"one that lost its lease is told":     testLost,
		"a successor keeps its lease":         testSuccessor,
		"what failed leaves no key for ever":  testFailedKey,
		"settings that cannot be are refused": testRefused,
	} {
		t.Run(name, func(t *testing.T) { test(t, newBench(t).(bench)) })
	}
}

func done(context.Context, once.Lease) error { return nil }

// key is the only key of the scope.
func (b bench) key(t *testing.T) string {
	t.Helper()
	keys, err := b.client.Keys(t.Context(), "duepost:once:"+b.scope+":*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys: got %v, %v, want one", keys, err)
	}
	return keys[0]
}

// die leaves a lease behind, as a process that was killed at work does.
func (b bench) die(t *testing.T, lease time.Duration) once.Lease {
	t.Helper()
	var left once.Lease
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = once.Do(context.Background(), b.Store(t, once.Options{Lease: lease}), "k", func(_ context.Context, l once.Lease) error {
			left = l
			return nil
		})
	}()
	<-stopped
	// Undone: as if it had not come to the end.
	err := b.client.HDel(t.Context(), b.key(t), "done").Err()
	if err == nil {
		err = b.client.HSet(t.Context(), b.key(t), "until", time.Now().Add(lease).UnixMicro()).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func testLapse(t *testing.T, b bench) {
	dead := b.die(t, 200*time.Millisecond)
	skip := b.Store(t, once.Options{Duplicates: once.Skip})
	if err := once.Do(t.Context(), skip, "k", done); !errors.Is(err, once.ErrBusy) {
		t.Errorf("before the lease lapses: got %v, want ErrBusy", err)
	}
	var next once.Lease
	err := once.Do(t.Context(), b.Store(t, once.Options{}), "k", func(_ context.Context, l once.Lease) error { next = l; return nil })
	if err != nil || next.Fence <= dead.Fence {
		t.Errorf("after it: got %v, fence %d, want the work done with a fence above %d", err, next.Fence, dead.Fence)
	}
}

func testRenew(t *testing.T, b bench) {
	s := b.Store(t, once.Options{Lease: 300 * time.Millisecond, Duplicates: once.Skip})
	err := once.Do(t.Context(), s, "k", func(ctx context.Context, _ once.Lease) error {
		<-time.After(700 * time.Millisecond)
		if err := once.Do(ctx, s, "k", done); !errors.Is(err, once.ErrBusy) {
			t.Errorf("another after two leases: got %v, want ErrBusy", err)
		}
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
}

func testKeep(t *testing.T, b bench) {
	if err := once.Do(t.Context(), b.Store(t, once.Options{Keep: time.Hour}), "k", done); err != nil {
		t.Fatal(err)
	}
	if ttl, err := b.client.PTTL(t.Context(), b.key(t)).Result(); err != nil || ttl > time.Hour || ttl < 59*time.Minute {
		t.Errorf("time to live: got %v, %v, want an hour", ttl, err)
	}
}

func testLost(t *testing.T, b bench) {
	s := b.Store(t, once.Options{})
	err := once.Do(t.Context(), s, "k", func(ctx context.Context, _ once.Lease) error {
		if err := b.client.HSet(ctx, b.key(t), "until", 0).Err(); err != nil { // held up for too long
			return err
		}
		return once.Do(ctx, s, "k", done)
	})
	if !errors.Is(err, once.ErrLeaseLost) {
		t.Errorf("got %v, want ErrLeaseLost", err)
	}
}

// The one who was held up ends while his successor is at work, and must not end that one's lease.
func testSuccessor(t *testing.T, b bench) {
	s := b.Store(t, once.Options{})
	goOn, second := make(chan struct{}), make(chan error, 1)
	err := once.Do(t.Context(), s, "k", func(ctx context.Context, _ once.Lease) error {
		if err := b.client.HSet(ctx, b.key(t), "until", 0).Err(); err != nil {
			return err
		}
		began := make(chan struct{})
		go func() {
			second <- once.Do(context.WithoutCancel(ctx), s, "k", func(context.Context, once.Lease) error {
				close(began)
				<-goOn
				return nil
			})
		}()
		<-began
		return nil
	})
	if !errors.Is(err, once.ErrLeaseLost) {
		t.Errorf("the one held up: got %v, want ErrLeaseLost", err)
	}
	skip := b.Store(t, once.Options{Duplicates: once.Skip})
	if err := once.Do(t.Context(), skip, "k", done); !errors.Is(err, once.ErrBusy) {
		t.Errorf("a third: got %v, want ErrBusy", err)
	}
	close(goOn)
	if err := <-second; err != nil {
		t.Errorf("the successor: %v", err)
	}
}

func testFailedKey(t *testing.T, b bench) {
	err := once.Do(t.Context(), b.Store(t, once.Options{Keep: time.Minute}), "k",
		func(context.Context, once.Lease) error { return errors.New("no") })
	if err == nil {
		t.Error("got nil, want the error of the work")
	}
	if ttl, err := b.client.PTTL(t.Context(), b.key(t)).Result(); err != nil || ttl <= 0 || ttl > time.Minute {
		t.Errorf("time to live: got %v, %v, want at most a minute", ttl, err)
	}
}

func testRefused(t *testing.T, b bench) {
	for _, err := range []error{
		second(redisonce.New(nil, "x", once.Options{})),
		second(redisonce.New(b.client, "", once.Options{})),
		second(redisonce.New(b.client, "x", once.Options{Keep: -1})),
	} {
		if !errors.Is(err, once.ErrInvalid) {
			t.Errorf("got %v, want ErrInvalid", err)
		}
	}
}

func second(_ once.Store[once.Lease], err error) error { return err }

// Redis dies between the work and its record, and comes back having forgotten all: the work may
// be done twice, but no call hangs and no key is stuck.
func TestRedisDies(t *testing.T) {
	t.Parallel()
	server := testdatabase.Redis(t)
	b := bench{connect(t, server), "scope"}
	s := b.Store(t, once.Options{Lease: time.Second})
	err := once.Do(t.Context(), s, "k", func(context.Context, once.Lease) error { server.Kill(t); return nil })
	if err == nil {
		t.Error("work that was not recorded: got nil, want an error")
	}
	if err := once.Do(t.Context(), s, "k", done); err == nil {
		t.Error("while Redis is down: got nil, want an error")
	}
	server.Start(t)
	n := 0
	for range 2 {
		if err := once.Do(t.Context(), s, "k", func(context.Context, once.Lease) error { n++; return nil }); err != nil || n != 1 {
			t.Errorf("when it is back: got %v and %d times, want once", err, n)
		}
	}
}
