package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
)

// row is what a relay holds of a row it has taken.
type row struct {
	id        int64
	claims    int64 // of this relay's claim
	failures  int
	messageID string
	message   []byte
	body      []byte
}

const columns = "id, claims, failures, message_id, message, body"

// readyRows selects the numbers of rows to take: those that nobody has, and of a lane only the
// first that is pending, whoever has it.
func (o *Outbox) readyRows() string {
	return fmt.Sprintf("SELECT id FROM duepost_outbox AS o WHERE state = %[1]d AND ready_at <= %[2]s "+
		"AND (lane IS NULL OR NOT EXISTS (SELECT 1 FROM duepost_outbox AS e "+
		"WHERE e.lane = o.lane AND e.state = %[1]d AND e.id < o.id)) ORDER BY ready_at, id LIMIT %[3]d",
		pending, o.dialect.Now(), o.o.Batch) + o.dialect.SkipLocked()
}

// claim takes rows for as long as the lease lasts, in a transaction that ends before anything is
// published.
func (o *Outbox) claim(ctx context.Context) ([]row, error) {
	take := "UPDATE duepost_outbox SET claims = claims + 1, ready_at = " + o.dialect.Now() + " + ? WHERE id IN "
	lease := o.o.Lease.Milliseconds()
	if !o.dialect.Returning() {
		return o.claimInSteps(ctx, take, lease)
	}
	// The rows are picked once, by themselves: as a subquery they could be picked again for
	// each row that is looked at.
	rows, err := o.db.QueryContext(ctx, o.dialect.Bind("WITH picked AS ("+o.readyRows()+") "+
		take+"(SELECT id FROM picked) RETURNING "+columns), lease)
	return collect(rows, err)
}

// claimInSteps does it for databases whose UPDATE returns nothing.
func (o *Outbox) claimInSteps(ctx context.Context, take string, lease int64) ([]row, error) {
	tx, err := o.db.BeginTx(ctx, &sql.TxOptions{Isolation: o.dialect.Isolation()})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	ids, err := pick(tx.QueryContext(ctx, o.readyRows()))
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, take+list(len(ids)), slices.Concat([]any{lease}, ids)...); err != nil {
		return nil, err
	}
	rows, err := collect(tx.QueryContext(ctx, "SELECT "+columns+" FROM duepost_outbox WHERE id IN "+list(len(ids)), ids...))
	if err != nil {
		return nil, err
	}
	return rows, tx.Commit()
}

// pick reads a column of numbers as arguments for the next statement.
func pick(rows *sql.Rows, err error) (ids []any, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// collect reads rows and puts them into the order in which they were added.
func collect(rows *sql.Rows, err error) (all []row, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.id, &r.claims, &r.failures, &r.messageID, &r.message, &r.body); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b row) int { return cmp.Compare(a.id, b.id) })
	return all, rows.Err()
}

// markPublished is right whoever holds the rows now: they were confirmed.
func (o *Outbox) markPublished(ctx context.Context, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	args := []any{published}
	for _, r := range rows {
		args = append(args, r.id)
	}
	_, err := o.db.ExecContext(ctx, o.dialect.Bind("UPDATE duepost_outbox SET state = ?, error = NULL, changed_at = "+
		o.dialect.Now()+" WHERE id IN "+list(len(rows))), args...)
	if err != nil {
		return fmt.Errorf("mark %d rows published: %w", len(rows), err)
	}
	return nil
}

// giveBack makes rows ready again that this relay still holds.
func (o *Outbox) giveBack(ctx context.Context, rows []row) error {
	for _, r := range rows {
		_, err := o.db.ExecContext(ctx, o.dialect.Bind("UPDATE duepost_outbox SET ready_at = "+o.dialect.Now()+
			" WHERE id = ? AND claims = ? AND state = ?"), r.id, r.claims, pending)
		if err != nil {
			return fmt.Errorf("give rows back: %w", err)
		}
	}
	return nil
}

// markFault writes down a fault of a row that this relay still holds, and what follows.
func (o *Outbox) markFault(ctx context.Context, r row, state int, pause time.Duration, fault error) error {
	_, err := o.db.ExecContext(ctx, o.dialect.Bind("UPDATE duepost_outbox SET state = ?, failures = failures + 1, error = ?, "+
		"ready_at = "+o.dialect.Now()+" + ?, changed_at = "+o.dialect.Now()+" WHERE id = ? AND claims = ? AND state = ?"),
		state, errorText(fault), pause.Milliseconds(), r.id, r.claims, pending)
	if err != nil {
		return fmt.Errorf("note fault of row %d: %w", r.id, err)
	}
	return nil
}

// errorText is what the column error takes: UTF-8 without zero bytes, 1 KiB at most.
func errorText(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(strings.ReplaceAll(text[:min(len(text), 1024)], "\x00", ""), "")
}

// list is (?, ?, …) with n placeholders.
func list(n int) string { return "(" + strings.Repeat("?, ", n-1) + "?)" }
