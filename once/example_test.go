package once_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/dialect"
	"github.com/duepost/duepost/once"
)

// The same message comes twice.
func ExampleDo() {
	ctx := context.Background()
	store, err := once.NewMemory(once.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		err := once.Do(ctx, store, "order 17", func(context.Context, once.Lease) error {
			fmt.Println("stock given back")
			return nil
		})
		fmt.Println("acknowledge:", err == nil)
	}
	// Output:
	// stock given back
	// acknowledge: true
	// acknowledge: true
}

// In a handler, with the record in the transaction of the work.
func ExampleNewSQL() {
	handle := func(ctx context.Context, client *duepost.Client, db *sql.DB) error {
		if err := once.Migrate(ctx, db, dialect.Postgres); err != nil {
			return err
		}
		store, err := once.NewSQL(db, dialect.Postgres, "close-unpaid", once.Options{})
		if err != nil {
			return err
		}
		return client.Consume(ctx, duepost.Consumer{Queue: "close-unpaid"},
			func(ctx context.Context, d *duepost.Delivery) error {
				return once.Do(ctx, store, d.MessageID, func(ctx context.Context, tx *sql.Tx) error {
					_, err := tx.ExecContext(ctx, "UPDATE stock SET held = held - 1 WHERE item = $1", string(d.Body))
					return err
				})
			})
	}
	_ = handle
}
