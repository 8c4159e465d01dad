package sweep

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/duepost/duepost/dialect"
)

// NoIndexError says that the database would read more than a page to find a page.
type NoIndexError struct {
	// Plan is what the database said.
	Plan string
	// Hint is an index that would help.
	Hint string
}

// Error says it with the hint.
func (e *NoIndexError) Error() string {
	return fmt.Sprintf("no index leads to a page: %s (plan: %s)", e.Hint, e.Plan)
}

// Check asks the database with EXPLAIN how it would read a page, and returns a *[NoIndexError]
// if not by an index in which it finds the place by Due. It is asked of the table as it is: a
// database with few rows says what it could do.
func (s *Sweep) Check(ctx context.Context) error {
	text, args := s.query(time.UnixMilli(0), nil)
	var plan string
	var found bool
	var err error
	switch s.dialect {
	case dialect.Postgres:
		plan, found, err = s.explainPostgres(ctx, text, args)
	case dialect.MySQL:
		plan, found, err = s.explainMySQL(ctx, text, args)
	default:
		plan, found, err = s.explainSQLite(ctx, text, args)
	}
	if err != nil {
		return fmt.Errorf("explain page: %w", err)
	}
	if !found {
		return &NoIndexError{Plan: plan, Hint: fmt.Sprintf("make an index on %s over the columns of %q, then %s, %s",
			s.o.Table, s.o.Where, s.o.Due, s.o.ID)}
	}
	return nil
}

// explainPostgres forbids to read the whole table, which is what the planner would choose
// for a small one, and looks whether Due is then a condition of an index.
func (s *Sweep) explainPostgres(ctx context.Context, text string, args []any) (string, bool, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return "", false, err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "SET LOCAL enable_seqscan = off"); err != nil {
		return "", false, err
	}
	var plan string
	if err := tx.QueryRowContext(ctx, "EXPLAIN (FORMAT JSON) "+text, args...).Scan(&plan); err != nil {
		return "", false, err
	}
	var roots []struct{ Plan map[string]any }
	if err := json.Unmarshal([]byte(plan), &roots); err != nil || len(roots) == 0 {
		return plan, false, err
	}
	return compact(plan), s.postgresUsesIndex(roots[0].Plan), nil
}

// postgresUsesIndex looks through a tree of steps for one that finds its place by Due.
func (s *Sweep) postgresUsesIndex(step map[string]any) bool {
	if cond, _ := step["Index Cond"].(string); strings.Contains(cond, lastName(s.o.Due)) {
		return true
	}
	below, _ := step["Plans"].([]any)
	for _, one := range below {
		if one, ok := one.(map[string]any); ok && s.postgresUsesIndex(one) {
			return true
		}
	}
	return false
}

// explainMySQL looks at the columns of the table that EXPLAIN returns: how rows are found, by
// which of the indexes that would do, and whether they must be sorted. The bound that is asked
// about finds next to nothing, so that an index is worth while in a small table, too.
func (s *Sweep) explainMySQL(ctx context.Context, text string, args []any) (string, bool, error) {
	facts, err := explained(s.db.QueryContext(ctx, "EXPLAIN "+text, args...))
	if err != nil || len(facts) == 0 {
		return "", false, err
	}
	f := facts[0]
	plan := fmt.Sprintf("type=%s key=%s possible_keys=%s extra=%s", f["type"], f["key"], f["possible_keys"], f["Extra"])
	sorted := strings.Contains(f["Extra"], "filesort")
	used := f["type"] == "range" || f["type"] == "ref" || f["type"] == "const"
	return plan, used && !sorted, nil
}

// explainSQLite looks for a search, and for one that needs no sorting.
func (s *Sweep) explainSQLite(ctx context.Context, text string, args []any) (string, bool, error) {
	facts, err := explained(s.db.QueryContext(ctx, "EXPLAIN QUERY PLAN "+text, args...))
	if err != nil {
		return "", false, err
	}
	var lines []string
	for _, f := range facts {
		lines = append(lines, f["detail"])
	}
	plan := strings.Join(lines, "; ")
	return plan, strings.Contains(plan, lastName(s.o.Due)+"<") && !strings.Contains(plan, "TEMP B-TREE"), nil
}

// explained reads rows of any columns, by name.
func explained(rows *sql.Rows, err error) ([]map[string]string, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all []map[string]string
	for rows.Next() {
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		one := map[string]string{}
		for i, name := range names {
			one[name] = values[i].String
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// lastName is a column without its table and quotes, as plans show it.
func lastName(column string) string {
	return strings.Trim(column[strings.LastIndex(column, ".")+1:], "\"`")
}

// compact is JSON in one line.
func compact(text string) string { return strings.Join(strings.Fields(text), " ") }
