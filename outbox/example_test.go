package outbox_test

import (
	"context"
	"database/sql"
	"time"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/dialect"
	"github.com/duepost/duepost/outbox"
)

// An order and the message that closes it are committed together.
func Example() {
	place := func(ctx context.Context, db *sql.DB, box *outbox.Outbox, id string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id, status) VALUES ($1, 'unpaid')", id); err != nil {
			return err
		}
		m := duepost.Message{RoutingKey: "close-unpaid", Body: []byte(id), Delay: 30 * time.Minute}
		if _, err := box.Add(ctx, tx, m); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		box.Wake()
		return nil
	}
	serve := func(ctx context.Context, db *sql.DB, client *duepost.Client) error {
		if err := outbox.Migrate(ctx, db, dialect.Postgres); err != nil {
			return err
		}
		box, err := outbox.New(db, dialect.Postgres, outbox.Options{})
		if err != nil {
			return err
		}
		go place(ctx, db, box, "order 17") // in a request
		return box.Relay(ctx, client)
	}
	_ = serve
}
