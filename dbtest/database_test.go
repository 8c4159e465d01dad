package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/duepost/duepost/dialect"
	"github.com/duepost/duepost/internal/testdatabase"
	"github.com/duepost/duepost/once"
	"github.com/duepost/duepost/outbox"
	"github.com/duepost/duepost/sweep"
)

// engine is a kind of database with what tests do to it.
type engine struct {
	dialect dialect.Dialect
	server  *testdatabase.Server // nil for SQLite
	made    atomic.Int64         // databases made so far
	names   sync.Map             // *sql.DB -> name of its database
	dir     string               // of SQLite
}

func (e *engine) source(name string) (driver, source string) {
	switch e.dialect {
	case dialect.Postgres:
		return "pgx", fmt.Sprintf("host=%s port=5432 user=postgres dbname=%s", e.server.Dir, name)
	case dialect.MySQL:
		return "mysql", fmt.Sprintf("root@unix(%s)/%s", e.server.Socket, name)
	}
	return "sqlite", "file:" + filepath.Join(e.dir, name) + "?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)"
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	all(t, &engine{dialect: dialect.SQLite, dir: t.TempDir()})
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	e := &engine{dialect: dialect.Postgres, server: testdatabase.Postgres(t)}
	all(t, e)
	crashes(t, e)
}

func TestMariaDB(t *testing.T) {
	t.Parallel()
	e := &engine{dialect: dialect.MySQL, server: testdatabase.MariaDB(t)}
	all(t, e)
	crashes(t, e)
}

// all runs every suite; it returns when all tests have ended.
func all(t *testing.T, e *engine) {
	t.Run("all", func(t *testing.T) {
		t.Run("once", func(t *testing.T) { testOnce(t, e) })
		t.Run("outbox", func(t *testing.T) { testOutbox(t, e) })
		t.Run("sweep", func(t *testing.T) { testSweep(t, e) })
	})
}

// run runs tests side by side.
func run(t *testing.T, e *engine, tests map[string]func(*testing.T, *engine)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// open makes a database with all our tables and a table of orders.
func (e *engine) open(t *testing.T) *sql.DB {
	t.Helper()
	name := fmt.Sprintf("test%d", e.made.Add(1))
	if e.server != nil {
		admin := map[dialect.Dialect]string{dialect.Postgres: "postgres", dialect.MySQL: ""}[e.dialect]
		db := e.connect(t, admin)
		must(t, db, "CREATE DATABASE "+name)
		db.Close()
	}
	db := e.connect(t, name)
	for range 2 { // the second time changes nothing
		for _, migrate := range []func(context.Context, *sql.DB, dialect.Dialect) error{
			once.Migrate, outbox.Migrate, sweep.Migrate,
		} {
			if err := migrate(t.Context(), db, e.dialect); err != nil {
				t.Fatal(err)
			}
		}
	}
	must(t, db, "CREATE TABLE orders (id VARCHAR(50) NOT NULL PRIMARY KEY, status VARCHAR(20) NOT NULL, "+
		"closed INTEGER NOT NULL DEFAULT 0, expires_at BIGINT NOT NULL)")
	return db
}

func (e *engine) connect(t *testing.T, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open(e.source(name))
	if err != nil {
		t.Fatalf("open database: %v", err)
	}
	db.SetMaxOpenConns(12)
	e.names.Store(db, name)
	t.Cleanup(func() { db.Close() })
	return db
}

// again is another pool of the same database, as another process has it.
func (e *engine) again(t *testing.T, db *sql.DB) *sql.DB {
	t.Helper()
	name, _ := e.names.Load(db)
	return e.connect(t, name.(string))
}

// must runs a statement, with ? for arguments in any dialect.
func must(t *testing.T, db *sql.DB, query string, args ...any) int64 {
	t.Helper()
	result, err := db.ExecContext(t.Context(), bind(db, query), args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// number is the number that a query returns.
func number(t *testing.T, db *sql.DB, query string, args ...any) (n int64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), bind(db, query), args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func bind(db *sql.DB, query string) string {
	if strings.Contains(fmt.Sprintf("%T", db.Driver()), "stdlib") {
		return dialect.Postgres.Bind(query)
	}
	return query
}

// wantNumber compares what a query returns.
func wantNumber(t *testing.T, db *sql.DB, want int64, query string, args ...any) {
	t.Helper()
	if n := number(t, db, query, args...); n != want {
		t.Errorf("%s: got %d, want %d", query, n, want)
	}
}
