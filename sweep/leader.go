package sweep

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/duepost/duepost/dialect"
)

// errLeaseLost ends a round when another process may be the leader.
var errLeaseLost = errors.New("lease lost")

// Schema is the table duepost_sweep as statements that do nothing if it is there.
func Schema(d dialect.Dialect) string {
	name, end := "TEXT", ";\n"
	if d == dialect.MySQL {
		name, end = "VARBINARY(255)", " ENGINE=InnoDB;\n"
	}
	return fmt.Sprintf(`CREATE TABLE IF NOT EXISTS duepost_sweep (
	name %[1]s NOT NULL PRIMARY KEY,
	holder %[1]s NOT NULL,
	lease_until BIGINT NOT NULL
)%[2]s`, name, end)
}

// Migrate makes the table where it is not there.
func Migrate(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
	if err := d.Apply(ctx, db, Schema(d)); err != nil {
		return fmt.Errorf("migrate sweep: %w", err)
	}
	return nil
}

// lead takes or renews the lease and reports whether it is ours. The clock of the database
// decides.
func (s *Sweep) lead(ctx context.Context) (bool, error) {
	_, err := s.db.ExecContext(ctx, s.dialect.Bind("INSERT INTO duepost_sweep (name, holder, lease_until) VALUES (?, '', 0)"+
		s.dialect.IgnoreExisting("name")), s.o.Name)
	if err == nil {
		_, err = s.db.ExecContext(ctx, s.dialect.Bind("UPDATE duepost_sweep SET holder = ?, lease_until = "+
			s.dialect.Now()+" + ? WHERE name = ? AND (holder = ? OR lease_until <= "+s.dialect.Now()+")"),
			s.holder, s.o.Lease.Milliseconds(), s.o.Name, s.holder)
	}
	holder := ""
	if err == nil {
		err = s.db.QueryRowContext(ctx, s.dialect.Bind("SELECT holder FROM duepost_sweep WHERE name = ?"), s.o.Name).Scan(&holder)
	}
	if err != nil {
		return false, fmt.Errorf("take lease: %w", err)
	}
	return holder == s.holder, nil
}

// whileLeader runs f and renews the lease; f's context ends when that cannot be done.
func (s *Sweep) whileLeader(ctx context.Context, f func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		if !s.renew(ctx) {
			stop(errLeaseLost)
		}
	}()
	err := f(ctx)
	if errors.Is(context.Cause(ctx), errLeaseLost) {
		err = errors.Join(errLeaseLost, err)
	}
	stop(nil)
	<-renewed
	return err
}

// renew keeps the lease until ctx ends and reports whether it never lost it.
func (s *Sweep) renew(ctx context.Context) (kept bool) {
	every := time.NewTicker(s.o.Lease / 3)
	defer every.Stop()
	lapses := time.Now().Add(s.o.Lease)
	for {
		select {
		case <-ctx.Done():
			return true
		case <-every.C:
		}
		asked := time.Now()
		try, cancel := context.WithDeadline(ctx, lapses)
		leader, err := s.lead(try)
		cancel()
		switch {
		case ctx.Err() != nil:
			return true
		case err == nil && !leader, err != nil && !time.Now().Before(lapses):
			return false
		case err == nil:
			lapses = asked.Add(s.o.Lease)
		}
	}
}

// resign lets another process follow at once.
func (s *Sweep) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	// If it cannot be done the lease lapses.
	_, _ = s.db.ExecContext(ctx, s.dialect.Bind("UPDATE duepost_sweep SET lease_until = 0 WHERE name = ? AND holder = ?"),
		s.o.Name, s.holder)
}
