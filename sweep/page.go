package sweep

import (
	"context"
	"fmt"
	"time"
)

// position is where a page ends: the deadline and the ID of a row, as the database gave them.
type position struct{ due, key any }

// id is the ID as Handle gets it.
func (p position) id() string { return fmt.Sprint(p.key) }

// query is the SQL of a page and its arguments. Rows come in the order of (Due, ID); the first
// condition on Due in the second form is implied by the one behind it, and is what every
// database finds its way into an index by.
func (s *Sweep) query(until time.Time, after *position) (string, []any) {
	text := "SELECT " + s.o.Due + ", " + s.o.ID + " FROM " + s.o.Table + " WHERE "
	if s.o.Where != "" {
		text += "(" + s.o.Where + ") AND "
	}
	text += s.o.Due + " <= ?"
	args := []any{s.o.Bound(until)}
	if after != nil {
		text += fmt.Sprintf(" AND %[1]s >= ? AND (%[1]s > ? OR %[2]s > ?)", s.o.Due, s.o.ID)
		args = append(args, after.due, after.due, after.key)
	}
	text += fmt.Sprintf(" ORDER BY %s, %s LIMIT %d", s.o.Due, s.o.ID, s.o.Page)
	return s.dialect.Bind(text), args
}

// page reads the rows behind after, all of them before any is handled.
func (s *Sweep) page(ctx context.Context, until time.Time, after *position) ([]position, error) {
	text, args := s.query(until, after)
	rows, err := s.db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []position
	for rows.Next() {
		var p position
		if err := rows.Scan(&p.due, &p.key); err != nil {
			return nil, err
		}
		p.due, p.key = s.argument(p.due), s.argument(p.key)
		all = append(all, p)
	}
	return all, rows.Err()
}

// argument makes a value that was read one that can be compared with its column again.
func (s *Sweep) argument(v any) any {
	switch v := v.(type) {
	case []byte: // texts of MySQL; as bytes they would compare in another order
		return string(v)
	case time.Time:
		return s.o.Bound(v)
	}
	return v
}

// now is the clock that deadlines are compared with.
func (s *Sweep) now(ctx context.Context) (time.Time, error) {
	if s.o.Now != nil {
		return s.o.Now(), nil
	}
	var millis int64
	if err := s.db.QueryRowContext(ctx, "SELECT "+s.dialect.Now()).Scan(&millis); err != nil {
		return time.Time{}, fmt.Errorf("read clock: %w", err)
	}
	return time.UnixMilli(millis), nil
}
