package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/dialect"
	"github.com/duepost/duepost/internal/oncetest"
	"github.com/duepost/duepost/once"
	"github.com/duepost/duepost/outbox"
)

// onceBench is a database in which all stores are those of one handler. On SQLite they are one
// store, because only that can skip there.
type onceBench struct {
	e    *engine
	db   *sql.DB
	same map[once.Options]*once.SQL
	mu   *sync.Mutex
}

func (b onceBench) Store(t *testing.T, o once.Options) once.Store[*sql.Tx] {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.same[o] == nil || b.e.dialect != dialect.SQLite {
		b.same[o] = newStore(t, b.e, b.db, "close", o)
	}
	return b.same[o]
}

func newStore(t *testing.T, e *engine, db *sql.DB, scope string, o once.Options) *once.SQL {
	t.Helper()
	s, err := once.NewSQL(db, e.dialect, scope, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func testOnce(t *testing.T, e *engine) {
	oncetest.Exercise(t, func(t *testing.T) oncetest.Bench[*sql.Tx] {
		return onceBench{e: e, db: e.open(t), same: map[once.Options]*once.SQL{}, mu: new(sync.Mutex)}
	})
	run(t, e, map[string]func(*testing.T, *engine){
		"work and record are one":          testOneTransaction,
		"two consumers, the same messages": testTwoConsumers,
		"scopes are apart":                 testScopes,
		"old records go":                   testPurgeRecords,
		"a killed connection undoes all":   testKilledWhileWorking,
		"a skipped key is not locked":      testSkipLeavesNoLock,
	})
}

// closeOrder is work that must not be done twice: it counts.
func closeOrder(id string) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE orders SET closed = closed + 1 WHERE id = '"+id+"'")
		return err
	}
}

func testOneTransaction(t *testing.T, e *engine) {
	db := e.open(t)
	must(t, db, "INSERT INTO orders VALUES ('17', 'unpaid', 0, 0)")
	s := newStore(t, e, db, "close", once.Options{})
	failure := errors.New("stock is locked")
	err := once.Do(t.Context(), s, "17", func(ctx context.Context, tx *sql.Tx) error {
		if err := closeOrder("17")(ctx, tx); err != nil {
			return err
		}
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("got %v, want the error of the work", err)
	}
	wantNumber(t, db, 0, "SELECT closed FROM orders")
	wantNumber(t, db, 0, "SELECT COUNT(*) FROM duepost_once")
	for range 2 {
		if err := once.Do(t.Context(), s, "17", closeOrder("17")); err != nil {
			t.Error(err)
		}
	}
	wantNumber(t, db, 1, "SELECT closed FROM orders")
	wantNumber(t, db, 1, "SELECT COUNT(*) FROM duepost_once")
}

// Two consumers with a pool and a store each get the same messages in the same order.
func testTwoConsumers(t *testing.T, e *engine) {
	const orders = 20
	db := e.open(t)
	for i := range orders {
		must(t, db, "INSERT INTO orders VALUES (?, 'unpaid', 0, 0)", fmt.Sprint(i))
	}
	var all sync.WaitGroup
	for _, duplicates := range []once.Duplicates{once.Wait, once.Skip} {
		s := newStore(t, e, db, "close", once.Options{Duplicates: duplicates})
		all.Go(func() {
			for i := range orders {
				err := once.Do(t.Context(), s, fmt.Sprint(i), closeOrder(fmt.Sprint(i)))
				if err != nil && !errors.Is(err, once.ErrBusy) {
					t.Errorf("order %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	wantNumber(t, db, orders, "SELECT COUNT(*) FROM orders WHERE closed = 1")
}

func testScopes(t *testing.T, e *engine) {
	db := e.open(t)
	n := 0
	for _, scope := range []string{"close", "mail"} {
		err := once.Do(t.Context(), newStore(t, e, db, scope, once.Options{}), "17",
			func(context.Context, *sql.Tx) error { n++; return nil })
		if err != nil {
			t.Error(err)
		}
	}
	if n != 2 {
		t.Errorf("work was done %d times in two scopes, want twice", n)
	}
}

func testPurgeRecords(t *testing.T, e *engine) {
	db := e.open(t)
	s := newStore(t, e, db, "close", once.Options{Keep: time.Hour})
	for i := range 3 {
		if err := once.Do(t.Context(), s, fmt.Sprint(i), func(context.Context, *sql.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Purge(t.Context()); n != 0 || err != nil {
		t.Errorf("purge at once: got %d, %v, want 0", n, err)
	}
	// An hour passes for two of them, save two minutes for one.
	must(t, db, "UPDATE duepost_once SET kept_until = kept_until - 3600000 WHERE name = '0'")
	must(t, db, "UPDATE duepost_once SET kept_until = kept_until - 3480000 WHERE name = '1'")
	if n, err := s.Purge(t.Context()); n != 1 || err != nil {
		t.Errorf("purge after an hour: got %d, %v, want 1", n, err)
	}
	wantNumber(t, db, 2, "SELECT COUNT(*) FROM duepost_once")
}

// The connection goes after the work and before the commit.
func testKilledWhileWorking(t *testing.T, e *engine) {
	if e.server == nil {
		return // SQLite has no connections to kill; TestSQLiteProcessDies has what there is
	}
	db := e.open(t)
	must(t, db, "INSERT INTO orders VALUES ('17', 'unpaid', 0, 0)")
	s := newStore(t, e, db, "close", once.Options{})
	err := once.Do(t.Context(), s, "17", func(ctx context.Context, tx *sql.Tx) error {
		if err := closeOrder("17")(ctx, tx); err != nil {
			return err
		}
		var id int64
		ask, kill := "SELECT pg_backend_pid()", "SELECT pg_terminate_backend(%d)"
		if e.dialect == dialect.MySQL {
			ask, kill = "SELECT CONNECTION_ID()", "KILL %d"
		}
		if err := tx.QueryRowContext(ctx, ask).Scan(&id); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, fmt.Sprintf(kill, id))
		return err
	})
	if err == nil {
		t.Error("the connection was killed: got nil, want an error")
	}
	if err := once.Do(t.Context(), s, "17", closeOrder("17")); err != nil {
		t.Errorf("the message comes again: %v", err)
	}
	wantNumber(t, db, 1, "SELECT closed FROM orders")
}

// After a call that was skipped nobody is kept from the key.
func testSkipLeavesNoLock(t *testing.T, e *engine) {
	db := e.open(t)
	must(t, db, "INSERT INTO orders VALUES ('17', 'unpaid', 0, 0)")
	s := newStore(t, e, db, "close", once.Options{Duplicates: once.Skip})
	for range 5 {
		err := once.Do(t.Context(), s, "17", func(ctx context.Context, _ *sql.Tx) error {
			if err := once.Do(ctx, s, "17", closeOrder("17")); !errors.Is(err, once.ErrBusy) {
				t.Errorf("got %v, want ErrBusy", err)
			}
			return errors.New("not this time")
		})
		if err == nil {
			t.Error("got nil, want the error of the work")
		}
	}
	if err := once.Do(t.Context(), s, "17", closeOrder("17")); err != nil {
		t.Error(err)
	}
	wantNumber(t, db, 1, "SELECT closed FROM orders")
}

// crashes kills the server, when nothing else needs it, in the middle of the work.
func crashes(t *testing.T, e *engine) {
	t.Run("the server dies while work is done", func(t *testing.T) {
		db := e.open(t)
		must(t, db, "INSERT INTO orders VALUES ('17', 'unpaid', 0, 0)")
		s := newStore(t, e, db, "close", once.Options{})
		err := once.Do(t.Context(), s, "17", func(ctx context.Context, tx *sql.Tx) error {
			if err := closeOrder("17")(ctx, tx); err != nil {
				return err
			}
			e.server.Kill(t)
			return nil
		})
		if err == nil {
			t.Error("got nil, want an error: it was not committed")
		}
		if err := once.Do(t.Context(), s, "17", closeOrder("17")); err == nil {
			t.Error("while the server is down: got nil, want an error")
		}
		e.server.Start(t)
		for range 2 {
			if err := retry(t, func() error { return once.Do(t.Context(), s, "17", closeOrder("17")) }); err != nil {
				t.Errorf("the message comes again: %v", err)
			}
		}
		wantNumber(t, db, 1, "SELECT closed FROM orders")
	})
	t.Run("a relay outlives the server", func(t *testing.T) {
		db := e.open(t)
		box := newOutbox(t, e, db, outbox.Options{Interval: 10 * time.Millisecond})
		p := fakePublisher{told: make(chan duepost.Message)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- box.Relay(ctx, &p) }()
		add(t, db, box, body("before"))
		<-p.told
		e.server.Kill(t)
		if _, err := box.Stats(t.Context()); err == nil {
			t.Error("while the server is down: got nil, want an error")
		}
		e.server.Start(t)
		if err := retry(t, func() error { return db.PingContext(t.Context()) }); err != nil {
			t.Fatal(err)
		}
		add(t, db, box, body("after"))
		for m := range p.told {
			if string(m.Body) == "after" { // the first may come again: its mark was lost
				break
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("relay: %v", err)
		}
	})
}

// dyingVariable names the database in a process that is to die at its work.
const dyingVariable = "DUEPOST_TEST_DYING"

// A process is killed after the work and before the commit.
func TestSQLiteProcessDies(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(dyingVariable); dir != "" {
		e := &engine{dialect: dialect.SQLite, dir: dir}
		err := once.Do(t.Context(), newStore(t, e, e.connect(t, "test1"), "close", once.Options{}), "17",
			func(ctx context.Context, tx *sql.Tx) error {
				if err := closeOrder("17")(ctx, tx); err != nil {
					return err
				}
				return syscall.Kill(os.Getpid(), syscall.SIGKILL)
			})
		t.Fatalf("still here: %v", err)
	}
	e := &engine{dialect: dialect.SQLite, dir: t.TempDir()}
	db := e.open(t)
	must(t, db, "INSERT INTO orders VALUES ('17', 'unpaid', 0, 0)")
	cmd := exec.Command(os.Args[0], "-test.run=^TestSQLiteProcessDies$")
	cmd.Env = append(os.Environ(), dyingVariable+"="+e.dir)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("process that dies: %v\n%s", err, out)
	}
	wantNumber(t, db, 0, "SELECT closed FROM orders")
	for range 2 {
		if err := once.Do(t.Context(), newStore(t, e, db, "close", once.Options{}), "17", closeOrder("17")); err != nil {
			t.Errorf("the message comes again: %v", err)
		}
	}
	wantNumber(t, db, 1, "SELECT closed FROM orders")
}

// retry tries until a server that starts takes queries.
func retry(t *testing.T, f func() error) (err error) {
	for range 300 {
		if err = f(); err == nil {
			return nil
		}
		select {
		case <-t.Context().Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
	return err
}
