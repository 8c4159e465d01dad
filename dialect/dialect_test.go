package dialect_test

import (
	"testing"

	"github.com/duepost/duepost/dialect"
)

func TestBind(t *testing.T) {
	t.Parallel()
	query := "SELECT '?', 'it''s ?' FROM t WHERE a = ? AND b IN (?, ?)"
	if got := dialect.MySQL.Bind(query); got != query {
		t.Errorf("mysql: got %s", got)
	}
	want := "SELECT '?', 'it''s ?' FROM t WHERE a = $1 AND b IN ($2, $3)"
	if got := dialect.Postgres.Bind(query); got != want {
		t.Errorf("postgres: got %s, want %s", got, want)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, d := range []dialect.Dialect{dialect.Postgres, dialect.MySQL, dialect.SQLite} {
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
	for _, d := range []dialect.Dialect{"", "oracle"} {
		if d.Validate() == nil {
			t.Errorf("%q is taken, want an error", d)
		}
	}
}
