package once

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/duepost/duepost/dialect"
)

// SQL keeps records in the database of the work, each in the transaction of its work. Made by
// [NewSQL]; its methods may be called concurrently.
//
// A call that waits for another holds a connection. On SQLite work that is [Skip]ped must be
// of the same SQL value to be seen at once; work of other processes is waited for, as every
// writer waits there, as long as busy_timeout says.
type SQL struct {
	db      *sql.DB
	dialect dialect.Dialect
	scope   string
	o       Options

	mu sync.Mutex
	// running has the keys that are worked on here, for Skip on SQLite. Guarded by mu.
	running map[string]bool
}

// NewSQL returns a store over db, whose table [Migrate] makes. scope is what the keys are about,
// say the name of the queue: two handlers of the same message need two scopes, or the second
// finds that all is done.
func NewSQL(db *sql.DB, d dialect.Dialect, scope string, o Options) (*SQL, error) {
	o, err := o.withDefaults(scope)
	if err == nil {
		err = d.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("make store: %w", err)
	}
	return &SQL{db: db, dialect: d, scope: scope, o: o, running: map[string]bool{}}, nil
}

// Once runs work in a transaction that also has the record of key, and commits it when work
// returns nil. Work must neither commit nor roll back. When the commit's answer is lost the error says so,
// and the next call finds out what became of it.
func (s *SQL) Once(ctx context.Context, key string, work func(context.Context, *sql.Tx) error) error {
	switch s.dialect {
	case dialect.MySQL:
		return s.lockMySQL(ctx, key, work)
	case dialect.SQLite:
		if s.o.Duplicates == Skip {
			if !s.enter(key) {
				return ErrBusy
			}
			defer s.leave(key)
		}
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	return s.in(ctx, tx, key, work)
}

// in does the work in tx, which it ends. It begins with a write, which on Postgres and SQLite
// waits for whoever has the same key.
func (s *SQL) in(ctx context.Context, tx *sql.Tx, key string, work func(context.Context, *sql.Tx) error) error {
	defer tx.Rollback() // does nothing after the commit; undoes all when work panics
	if s.dialect == dialect.Postgres && s.o.Duplicates == Skip {
		free := false
		err := tx.QueryRowContext(ctx, "SELECT pg_try_advisory_xact_lock($1)", int64(s.hash(key))).Scan(&free)
		if err != nil {
			return fmt.Errorf("lock key: %w", err)
		}
		if !free {
			return ErrBusy
		}
	}
	isNew, err := s.record(ctx, tx, key)
	if err != nil {
		return fmt.Errorf("record key: %w", err)
	}
	if !isNew {
		return nil
	}
	if err := work(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// record reports whether key was not recorded before.
func (s *SQL) record(ctx context.Context, tx *sql.Tx, key string) (bool, error) {
	insert := "INSERT INTO duepost_once (scope, name, kept_until) VALUES (?, ?, " + s.dialect.Now() + " + ?)"
	if s.dialect == dialect.MySQL {
		// How many rows an insert has changed depends on the settings of the connection.
		// The lock makes it right to look first.
		n := 0
		err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM duepost_once WHERE scope = ? AND name = ?",
			s.scope, key).Scan(&n)
		if err != nil || n > 0 {
			return false, err
		}
	} else {
		insert += s.dialect.IgnoreExisting("scope")
	}
	result, err := tx.ExecContext(ctx, s.dialect.Bind(insert), s.scope, key, s.o.Keep.Milliseconds())
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// lockMySQL does the work under a lock of the connection: there is none that belongs to a
// transaction, and rows to be inserted twice end in deadlocks. The server gives it back when the
// connection ends.
func (s *SQL) lockMySQL(ctx context.Context, key string, work func(context.Context, *sql.Tx) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	name := fmt.Sprintf("duepost_once %016x", s.hash(key))
	if err := s.acquireMySQL(ctx, conn, name); err != nil {
		return err
	}
	defer releaseMySQL(ctx, conn, name)
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	return s.in(ctx, tx, key, work)
}

// mysqlLock is the name of a lock: all databases of a server have the same ones.
const mysqlLock = "MD5(CONCAT(COALESCE(DATABASE(), ''), ' ', ?))"

// acquireMySQL waits a second at a time: a server does not notice soon that the one who waits
// has gone.
func (s *SQL) acquireMySQL(ctx context.Context, conn *sql.Conn, name string) error {
	wait := 1
	if s.o.Duplicates == Skip {
		wait = 0
	}
	for {
		var got sql.NullInt64
		if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK("+mysqlLock+", ?)", name, wait).Scan(&got); err != nil {
			return fmt.Errorf("lock key: %w", err)
		}
		if got.Int64 == 1 {
			return nil
		}
		if s.o.Duplicates == Skip {
			return ErrBusy
		}
	}
}

// releaseMySQL gives the lock back or, where that cannot be, ends the connection that has it.
func releaseMySQL(ctx context.Context, conn *sql.Conn, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var released sql.NullInt64
	err := conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK("+mysqlLock+")", name).Scan(&released)
	if err != nil || released.Int64 != 1 {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

func (s *SQL) hash(key string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s", s.scope, key)
	return h.Sum64()
}

func (s *SQL) enter(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[key] {
		return false
	}
	s.running[key] = true
	return true
}

func (s *SQL) leave(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, key)
}
