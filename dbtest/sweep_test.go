package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/dialect"
	"github.com/duepost/duepost/sweep"
)

func testSweep(t *testing.T, e *engine) {
	run(t, e, map[string]func(*testing.T, *engine){
		"only what is due and not done":     testFinds,
		"rows that fail hold up nobody":     testFailing,
		"columns of the database's own":     testOwnTypes,
		"one leader at a time":              testLeader,
		"a leader that lost its lease ends": testLeaseLost,
		"no faster than the rate":           testRate,
		"the clock of the process":          testClock,
		"an index is looked for":            testCheck,
		"runs until its context ends":       testSweepRuns,
	})
}

// seen gathers what a sweep handles.
type seen struct {
	mu  sync.Mutex
	ids []string
}

func (s *seen) handle(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, id)
	return nil
}

// unpaid is a job over the orders.
func unpaid(o sweep.Options) sweep.Options {
	o.Name, o.Table, o.ID, o.Due, o.Where = "close", "orders", "id", "expires_at", "status = 'unpaid'"
	o.Bound = func(t time.Time) any { return t.UnixMilli() }
	if o.Rate == 0 {
		o.Rate = 1e6
	}
	return o
}

func newSweep(t *testing.T, e *engine, db *sql.DB, o sweep.Options) *sweep.Sweep {
	t.Helper()
	s, err := sweep.New(db, e.dialect, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantRound(t *testing.T, s *sweep.Sweep, want sweep.Round) {
	t.Helper()
	got, err := s.SweepOnce(t.Context())
	if err != nil || got != want {
		t.Errorf("round: got %+v, %v, want %+v", got, err, want)
	}
}

// order adds an order whose deadline was some time ago.
func order(t *testing.T, db *sql.DB, id, status string, ago time.Duration) {
	t.Helper()
	must(t, db, "INSERT INTO orders VALUES (?, ?, 0, ?)", id, status, time.Now().Add(-ago).UnixMilli())
}

func testFinds(t *testing.T, e *engine) {
	db := e.open(t)
	var want []string
	for i := range 25 { // many with the same deadline, over the ends of pages
		ago := time.Hour - time.Duration(i/10)*time.Second
		id := fmt.Sprintf("%02d", i)
		must(t, db, "INSERT INTO orders VALUES (?, 'unpaid', 0, ?)", id, time.Now().Add(-ago).Truncate(time.Minute).UnixMilli()+int64(i/10))
		want = append(want, id)
	}
	order(t, db, "paid", "paid", time.Hour)
	order(t, db, "grace", "unpaid", 30*time.Second)
	order(t, db, "later", "unpaid", -time.Hour)
	var got seen
	s := newSweep(t, e, db, unpaid(sweep.Options{Page: 4, Handle: func(ctx context.Context, id string) error {
		must(t, db, "UPDATE orders SET status = 'closed' WHERE id = ? AND status = 'unpaid'", id)
		return got.handle(ctx, id)
	}}))
	wantRound(t, s, sweep.Round{Leader: true, Found: 25})
	slices.Sort(got.ids)
	if diff := cmp.Diff(want, got.ids); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
	wantRound(t, s, sweep.Round{Leader: true})
}

func testFailing(t *testing.T, e *engine) {
	db := e.open(t)
	for i := range 10 {
		order(t, db, fmt.Sprintf("%02d", i), "unpaid", time.Hour)
	}
	var got seen
	s := newSweep(t, e, db, unpaid(sweep.Options{Page: 3, Handle: func(ctx context.Context, id string) error {
		_ = got.handle(ctx, id)
		switch id {
		case "03":
			return errors.New("locked")
		case "05":
			panic("oops")
		}
		return nil
	}}))
	// None is done: each comes once in each round.
	wantRound(t, s, sweep.Round{Leader: true, Found: 10, Failed: 2})
	wantRound(t, s, sweep.Round{Leader: true, Found: 10, Failed: 2})
	if len(got.ids) != 20 {
		t.Errorf("handled %d, want each of 10 twice", len(got.ids))
	}
}

// Instants as the database has them, and numbers for names.
func testOwnTypes(t *testing.T, e *engine) {
	if e.dialect == dialect.SQLite {
		return // has no type for instants
	}
	db := e.open(t)
	kind := map[dialect.Dialect]string{dialect.Postgres: "TIMESTAMPTZ", dialect.MySQL: "DATETIME(6)"}[e.dialect]
	must(t, db, "CREATE TABLE bills (n BIGINT NOT NULL PRIMARY KEY, due_at "+kind+")")
	due := time.Now().UTC().Add(-time.Hour).Truncate(time.Microsecond)
	for i := range 12 {
		must(t, db, "INSERT INTO bills VALUES (?, ?)", i, due.Add(time.Duration(i/3)*time.Microsecond))
	}
	must(t, db, "INSERT INTO bills VALUES (100, ?)", due.Add(2*time.Hour))
	must(t, db, "INSERT INTO bills VALUES (101, NULL)")
	var got seen
	s := newSweep(t, e, db, sweep.Options{Name: "bills", Table: "bills", ID: "n", Due: "due_at", Page: 2, Rate: 1e6, Handle: got.handle})
	wantRound(t, s, sweep.Round{Leader: true, Found: 12})
	if diff := cmp.Diff(strings.Fields("0 1 2 3 4 5 6 7 8 9 10 11"), got.ids); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
}

func testLeader(t *testing.T, e *engine) {
	db := e.open(t)
	order(t, db, "17", "unpaid", time.Hour)
	var got seen
	one := newSweep(t, e, db, unpaid(sweep.Options{Handle: got.handle}))
	two := newSweep(t, e, e.again(t, db), unpaid(sweep.Options{Handle: got.handle}))
	wantRound(t, one, sweep.Round{Leader: true, Found: 1})
	wantRound(t, two, sweep.Round{})
	wantRound(t, one, sweep.Round{Leader: true, Found: 1})
	// The leader dies.
	must(t, db, "UPDATE duepost_sweep SET lease_until = lease_until - 60000")
	wantRound(t, two, sweep.Round{Leader: true, Found: 1})
	wantRound(t, one, sweep.Round{})
	other := unpaid(sweep.Options{Handle: got.handle})
	other.Name = "another job"
	wantRound(t, newSweep(t, e, db, other), sweep.Round{Leader: true, Found: 1})
}

func testLeaseLost(t *testing.T, e *engine) {
	db := e.open(t)
	order(t, db, "1", "unpaid", time.Hour)
	order(t, db, "2", "unpaid", time.Hour)
	n := 0
	s := newSweep(t, e, db, unpaid(sweep.Options{Lease: 300 * time.Millisecond, Handle: func(ctx context.Context, _ string) error {
		n++
		must(t, db, "UPDATE duepost_sweep SET holder = 'another', lease_until = lease_until + 60000")
		<-ctx.Done() // the lease is renewed, which finds that it is lost
		return ctx.Err()
	}}))
	round, err := s.SweepOnce(t.Context())
	if err == nil || !round.Leader || n != 1 {
		t.Errorf("got %+v, %v and %d rows handled, want an error after the first", round, err, n)
	}
}

func testRate(t *testing.T, e *engine) {
	db := e.open(t)
	for i := range 11 {
		order(t, db, fmt.Sprint(i), "unpaid", time.Hour)
	}
	var got seen
	s := newSweep(t, e, db, unpaid(sweep.Options{Rate: 50, Handle: got.handle}))
	began := time.Now()
	wantRound(t, s, sweep.Round{Leader: true, Found: 11})
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("11 rows at 50 a second took %v, want at least 200ms", took)
	}
}

// A process may have a clock of its own; without one that of the database counts.
func testClock(t *testing.T, e *engine) {
	db := e.open(t)
	order(t, db, "17", "unpaid", -time.Hour)
	var got seen
	wantRound(t, newSweep(t, e, db, unpaid(sweep.Options{Handle: got.handle})), sweep.Round{Leader: true})
	must(t, db, "UPDATE duepost_sweep SET lease_until = 0")
	ahead := func() time.Time { return time.Now().Add(2 * time.Hour) }
	wantRound(t, newSweep(t, e, db, unpaid(sweep.Options{Handle: got.handle, Now: ahead})), sweep.Round{Leader: true, Found: 1})
}

func testCheck(t *testing.T, e *engine) {
	db := e.open(t)
	var got seen
	s := newSweep(t, e, db, unpaid(sweep.Options{Handle: got.handle}))
	for i := range 50 {
		order(t, db, fmt.Sprint(i), "unpaid", time.Hour)
	}
	for _, step := range []struct {
		make string
		want bool
	}{
		{"", false},
		{"CREATE INDEX by_status ON orders (status)", false},
		{"CREATE INDEX by_due ON orders (status, expires_at, id)", true},
		// Now the database knows how few rows there are.
		{map[dialect.Dialect]string{dialect.MySQL: "ANALYZE TABLE orders"}[e.dialect], true},
		{map[dialect.Dialect]string{dialect.Postgres: "ANALYZE orders", dialect.SQLite: "ANALYZE"}[e.dialect], true},
	} {
		if step.make != "" {
			must(t, db, step.make)
		}
		err := s.Check(t.Context())
		var none *sweep.NoIndexError
		if errors.As(err, &none) == step.want || err != nil && none == nil {
			t.Errorf("after %q: got %v, want an index: %v", step.make, err, step.want)
		}
		if none != nil && (none.Plan == "" || !strings.Contains(none.Hint, "expires_at, id")) {
			t.Errorf("error does not tell plan and index: %+v", none)
		}
	}
}

func testSweepRuns(t *testing.T, e *engine) {
	db := e.open(t)
	order(t, db, "17", "unpaid", time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	rounds := make(chan sweep.Round)
	s := newSweep(t, e, db, unpaid(sweep.Options{
		Interval: time.Millisecond, Handle: func(context.Context, string) error { return nil },
		OnRound: func(r sweep.Round, err error) {
			if err != nil {
				t.Errorf("round: %v", err)
			}
			select {
			case rounds <- r:
			case <-ctx.Done():
			}
		},
	}))
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	for range 2 {
		if r := <-rounds; r != (sweep.Round{Leader: true, Found: 1}) {
			t.Errorf("round: got %+v", r)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run: got %v, want nil", err)
	}
	wantNumber(t, db, 0, "SELECT lease_until FROM duepost_sweep") // resigned
	if _, err := sweep.New(db, e.dialect, sweep.Options{}); !errors.Is(err, duepost.ErrInvalid) {
		t.Errorf("no settings: got %v, want ErrInvalid", err)
	}
}
