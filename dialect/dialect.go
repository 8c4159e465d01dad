// Package dialect is about what differs between the databases that the packages once, outbox
// and sweep work on: placeholders, the clock, row locks and how tables are made.
//
// It is not a query builder and hides nothing else: those packages write their SQL by hand, with
// ? where an argument goes. It knows no driver.
package dialect

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
)

// Dialect names a kind of database. There is no default: the zero value is refused.
type Dialect string

const (
	// Postgres is PostgreSQL 12 and later.
	Postgres Dialect = "postgres"
	// MySQL is MySQL 8.0 and MariaDB 10.6 and later, with InnoDB tables.
	MySQL Dialect = "mysql"
	// SQLite is SQLite 3.35 and later. Let connections wait for each other, say with
	// _pragma=busy_timeout(5000) in the name that modernc.org/sqlite opens: it has one writer.
	SQLite Dialect = "sqlite"
)

// Validate refuses what is not one of the three.
func (d Dialect) Validate() error {
	switch d {
	case Postgres, MySQL, SQLite:
		return nil
	}
	return fmt.Errorf("dialect is %q, must be %q, %q or %q", string(d), Postgres, MySQL, SQLite)
}

// Bind puts the placeholders of this dialect where query has ?, but for those in '…' literals.
func (d Dialect) Bind(query string) string {
	if d != Postgres {
		return query
	}
	var b strings.Builder
	n, quoted := 0, false
	for _, r := range query {
		switch {
		case r == '\'':
			quoted = !quoted
		case r == '?' && !quoted:
			n++
			b.WriteString("$" + strconv.Itoa(n))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Now is an expression for the clock of the database, in milliseconds since 1970. All
// processes see the same one, whatever their own clocks say. On Postgres and SQLite it moves
// within a transaction; time zones and their changes have no effect.
func (d Dialect) Now() string {
	switch d {
	case Postgres:
		return "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)"
	case MySQL:
		return "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000)"
	}
	return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
}

// SkipLocked ends a SELECT that locks its rows and passes over those that others have
// locked; empty in SQLite, whose only writer has locked everything.
func (d Dialect) SkipLocked() string {
	if d == SQLite {
		return ""
	}
	return " FOR UPDATE SKIP LOCKED"
}

// Returning reports whether an UPDATE can return its rows.
func (d Dialect) Returning() bool { return d != MySQL }

// Isolation is for transactions that must lock only the rows that they find. MySQL's own default
// locks the gaps between rows, too, where others want to insert.
func (d Dialect) Isolation() sql.IsolationLevel {
	if d == MySQL {
		return sql.LevelReadCommitted
	}
	return sql.LevelDefault
}

// IgnoreExisting ends an INSERT that does nothing where there is such a row. column is any one
// of the table.
func (d Dialect) IgnoreExisting(column string) string {
	if d == MySQL { // INSERT IGNORE would hide other faults, too
		return " ON DUPLICATE KEY UPDATE " + column + " = " + column
	}
	return " ON CONFLICT DO NOTHING"
}

// migrationLock is the advisory lock of Postgres under which tables are made: IF NOT EXISTS
// alone lets two processes at once run into each other.
const migrationLock = 0x64756570

// Apply runs the statements of schema, which end with ";\n" and must do nothing the second time.
func (d Dialect) Apply(ctx context.Context, db *sql.DB, schema string) error {
	if err := d.Validate(); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer tx.Rollback()
	statements := strings.SplitAfter(schema, ";\n")
	if d == Postgres {
		statements = append([]string{fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", migrationLock)}, statements...)
	}
	for _, s := range statements {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("apply %q: %w", s, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
