package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/duepost/duepost"
)

// Parked is a message that was given up.
type Parked struct {
	ID       int64 // for [Outbox.Retry]
	Message  duepost.Message
	Error    string
	Attempts int       // how often it was at fault
	Time     time.Time // when it was parked, by the clock of the database
}

// Parked returns the messages that were parked last, at most limit.
func (o *Outbox) Parked(ctx context.Context, limit int) ([]Parked, error) {
	rows, err := o.db.QueryContext(ctx, o.dialect.Bind("SELECT id, message, body, error, failures, changed_at "+
		"FROM duepost_outbox WHERE state = ? ORDER BY changed_at DESC LIMIT ?"), parked, limit)
	if err != nil {
		return nil, fmt.Errorf("list parked messages: %w", err)
	}
	defer rows.Close()
	var all []Parked
	for rows.Next() {
		var p Parked
		var meta, body []byte
		var millis int64
		var text sql.NullString
		if err := rows.Scan(&p.ID, &meta, &body, &text, &p.Attempts, &millis); err != nil {
			return nil, fmt.Errorf("list parked messages: %w", err)
		}
		p.Error, p.Time = text.String, time.UnixMilli(millis)
		p.Message, err = decode(meta, body)
		if err != nil { // the row is shown all the same
			p.Error = errors.Join(errors.New(p.Error), err).Error()
		}
		all = append(all, p)
	}
	return all, rows.Err()
}

// Retry lets parked messages be tried again as if they were new, and says how many of ids were
// parked. They are due when they were.
func (o *Outbox) Retry(ctx context.Context, ids ...int64) (n int64, err error) {
	for _, id := range ids {
		result, err := o.db.ExecContext(ctx, o.dialect.Bind("UPDATE duepost_outbox SET state = ?, failures = 0, ready_at = "+
			o.dialect.Now()+" WHERE id = ? AND state = ?"), pending, id, parked)
		if err != nil {
			return n, fmt.Errorf("retry row %d: %w", id, err)
		}
		one, err := result.RowsAffected()
		if err != nil {
			return n, fmt.Errorf("retry row %d: %w", id, err)
		}
		n += one
	}
	o.Wake()
	return n, nil
}

// Stats is how an outbox stands.
type Stats struct {
	Pending int64         // not published yet
	Oldest  time.Duration // how long the first of these has waited since it was added or last at fault
	Parked  int64
}

// Stats counts. It reads the index of what is not published.
func (o *Outbox) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	var age sql.NullInt64
	err := o.db.QueryRowContext(ctx, o.dialect.Bind("SELECT COUNT(*), "+o.dialect.Now()+
		" - MIN(changed_at) FROM duepost_outbox WHERE state = ?"), pending).Scan(&s.Pending, &age)
	if err == nil {
		err = o.db.QueryRowContext(ctx, o.dialect.Bind("SELECT COUNT(*) FROM duepost_outbox WHERE state = ?"),
			parked).Scan(&s.Parked)
	}
	if err != nil {
		return Stats{}, fmt.Errorf("count rows: %w", err)
	}
	s.Oldest = time.Duration(age.Int64) * time.Millisecond
	return s, nil
}

// purgeBatch is how many rows one statement removes at least, so that none locks for long.
const purgeBatch = 1000

// Purge removes rows that were published longer than [Options.Keep] ago and says how many. Parked
// ones stay.
func (o *Outbox) Purge(ctx context.Context) (removed int64, err error) {
	keep := max(o.o.Keep, 0).Milliseconds()
	for {
		var until sql.NullInt64
		err := o.db.QueryRowContext(ctx, o.dialect.Bind("SELECT MAX(changed_at) FROM (SELECT changed_at FROM duepost_outbox "+
			"WHERE state = ? AND changed_at <= "+o.dialect.Now()+" - ? ORDER BY changed_at LIMIT ?) AS old"),
			published, keep, purgeBatch).Scan(&until)
		if err != nil {
			return removed, fmt.Errorf("purge rows: %w", err)
		}
		if !until.Valid {
			return removed, nil
		}
		result, err := o.db.ExecContext(ctx, o.dialect.Bind("DELETE FROM duepost_outbox WHERE state = ? AND changed_at <= ?"),
			published, until.Int64)
		if err != nil {
			return removed, fmt.Errorf("purge rows: %w", err)
		}
		n, err := result.RowsAffected()
		if err != nil {
			return removed, fmt.Errorf("purge rows: %w", err)
		}
		removed += n
	}
}
