package once

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/duepost/duepost/dialect"
)

// Schema is the table of [SQL], duepost_once, as statements that do nothing if it is there. It
// belongs into the database of the work.
func Schema(d dialect.Dialect) string {
	text := "TEXT"
	switch d {
	case dialect.Postgres:
		text = `VARCHAR(255) COLLATE "C"`
	case dialect.MySQL: // text would be the same in upper and lower case
		return `CREATE TABLE IF NOT EXISTS duepost_once (
	scope VARBINARY(255) NOT NULL,
	name VARBINARY(255) NOT NULL,
	kept_until BIGINT NOT NULL,
	PRIMARY KEY (scope, name),
	INDEX duepost_once_kept_until (kept_until)
) ENGINE=InnoDB;
`
	}
	return fmt.Sprintf(`CREATE TABLE IF NOT EXISTS duepost_once (
	scope %[1]s NOT NULL,
	name %[1]s NOT NULL,
	kept_until BIGINT NOT NULL,
	PRIMARY KEY (scope, name)
);
CREATE INDEX IF NOT EXISTS duepost_once_kept_until ON duepost_once (kept_until);
`, text)
}

// Migrate makes the table where it is not there.
func Migrate(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
	if err := d.Apply(ctx, db, Schema(d)); err != nil {
		return fmt.Errorf("migrate once: %w", err)
	}
	return nil
}
