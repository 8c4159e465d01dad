package sweep_test

import (
	"context"
	"database/sql"

	"github.com/duepost/duepost/dialect"
	"github.com/duepost/duepost/sweep"
)

// What closes orders when their message comes closes those whose message was lost.
func Example() {
	serve := func(ctx context.Context, db *sql.DB) error {
		if err := sweep.Migrate(ctx, db, dialect.Postgres); err != nil {
			return err
		}
		s, err := sweep.New(db, dialect.Postgres, sweep.Options{
			Name: "close-unpaid", Table: "orders", ID: "id", Due: "expires_at", Where: "status = 'unpaid'",
			Handle: func(ctx context.Context, id string) error {
				_, err := db.ExecContext(ctx, "UPDATE orders SET status = 'closed' WHERE id = $1 AND status = 'unpaid'", id)
				return err
			},
		})
		if err != nil {
			return err
		}
		return s.Run(ctx)
	}
	_ = serve
}
