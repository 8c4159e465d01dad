package shop

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/duepost/duepost/dialect"
	"github.com/duepost/duepost/once"
	"github.com/duepost/duepost/outbox"
	"github.com/duepost/duepost/sweep"
)

// schema is the same in all three dialects. Instants are milliseconds since 1970, by the clock of
// the database. All stock of an item is free, held by unpaid orders, or sold.
//
// An index over status and expires_at lets the sweep read what is overdue and nothing else. MySQL
// has no CREATE INDEX IF NOT EXISTS, so the index is a part of the table there.
func schema(d dialect.Dialect) string {
	index := func(name, columns string) (inTable, after string) {
		if d == dialect.MySQL {
			return ",\n\tINDEX " + name + " (" + columns + ")", ""
		}
		table := name[:strings.LastIndexByte(name, '_')]
		return "", "CREATE INDEX IF NOT EXISTS " + name + " ON " + table + " (" + columns + ");\n"
	}
	due, dueAfter := index("shop_orders_due", "status, expires_at, id")
	order, orderAfter := index("shop_letters_order", "order_id")
	return `CREATE TABLE IF NOT EXISTS shop_items (
	sku VARCHAR(50) NOT NULL PRIMARY KEY,
	name VARCHAR(100) NOT NULL,
	free BIGINT NOT NULL CHECK (free >= 0),
	held BIGINT NOT NULL CHECK (held >= 0),
	sold BIGINT NOT NULL CHECK (sold >= 0));
CREATE TABLE IF NOT EXISTS shop_orders (
	id VARCHAR(50) NOT NULL PRIMARY KEY,
	sku VARCHAR(50) NOT NULL,
	quantity BIGINT NOT NULL,
	status VARCHAR(10) NOT NULL,
	placed_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	ended_at BIGINT NOT NULL DEFAULT 0,
	looks BIGINT NOT NULL DEFAULT 0,
	next_look BIGINT NOT NULL DEFAULT 0,
	late BIGINT NOT NULL DEFAULT 0` + due + `);
` + dueAfter + `CREATE TABLE IF NOT EXISTS shop_letters (
	order_id VARCHAR(50) NOT NULL,
	written_at BIGINT NOT NULL` + order + `);
` + orderAfter
}

// migrate makes the tables that are not there.
func migrate(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
	if err := d.Apply(ctx, db, schema(d)); err != nil {
		return fmt.Errorf("make tables of the shop: %w", err)
	}
	for _, migrate := range []func(context.Context, *sql.DB, dialect.Dialect) error{
		once.Migrate, outbox.Migrate, sweep.Migrate,
	} {
		if err := migrate(ctx, db, d); err != nil {
			return err
		}
	}
	return nil
}
