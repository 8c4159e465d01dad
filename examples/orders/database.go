package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/duepost/duepost/dialect"
)

// maxConnections is enough for all that the shop does at once.
const maxConnections = 16

// database is a database that may be removed when it is closed.
type database struct {
	*sql.DB
	dialect dialect.Dialect
	remove  string // a directory; empty for none
}

// openDatabase opens what the flag names.
func openDatabase(name string) (db *database, err error) {
	db = &database{}
	if name == "" {
		if db.remove, err = os.MkdirTemp("", "orders"); err != nil {
			return nil, err
		}
		name = "sqlite:" + filepath.Join(db.remove, "orders.db")
	}
	kind, rest, _ := strings.Cut(name, ":")
	switch kind {
	case "sqlite":
		// One writer at a time: the others wait instead of getting an error.
		db.dialect = dialect.SQLite
		db.DB, err = sql.Open("sqlite", "file:"+rest+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	case "postgres", "postgresql":
		db.dialect = dialect.Postgres
		db.DB, err = sql.Open("pgx", name)
	case "mysql":
		db.dialect = dialect.MySQL
		db.DB, err = sql.Open("mysql", strings.TrimPrefix(rest, "//"))
	default:
		return nil, fmt.Errorf("open database %q: it must begin with sqlite:, postgres: or mysql:", name)
	}
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db.SetMaxOpenConns(maxConnections)
	return db, nil
}

// Close closes the database.
func (db *database) Close() error {
	err := db.DB.Close()
	if db.remove != "" {
		err = errors.Join(err, os.RemoveAll(db.remove))
	}
	return err
}
