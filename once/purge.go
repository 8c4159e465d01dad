package once

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// purgeBatch is how many records one statement removes, so that none locks for long.
const purgeBatch = 1000

// Purge removes the records of all scopes that need not be kept any longer and says how many
// they were.
func (s *SQL) Purge(ctx context.Context) (removed int64, err error) {
	for {
		n, err := s.purgeSome(ctx)
		removed += n
		if err != nil {
			return removed, fmt.Errorf("purge records: %w", err)
		}
		if n < purgeBatch {
			return removed, nil
		}
	}
}

func (s *SQL) purgeSome(ctx context.Context) (int64, error) {
	var until sql.NullInt64
	err := s.db.QueryRowContext(ctx, s.dialect.Bind("SELECT MAX(kept_until) FROM "+
		"(SELECT kept_until FROM duepost_once WHERE kept_until <= "+s.dialect.Now()+
		" ORDER BY kept_until LIMIT ?) AS old"), purgeBatch).Scan(&until)
	if err != nil || !until.Valid {
		return 0, err
	}
	result, err := s.db.ExecContext(ctx, s.dialect.Bind("DELETE FROM duepost_once WHERE kept_until <= ?"), until.Int64)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Run purges every hour until ctx ends; one process is enough. It returns nil. onError is
// told what went wrong, to log it; nil ignores it. The next hour tries again.
func (s *SQL) Run(ctx context.Context, onError func(error)) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if _, err := s.Purge(ctx); err != nil && ctx.Err() == nil && onError != nil {
			onError(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
