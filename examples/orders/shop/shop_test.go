package shop_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/dialect"
	"github.com/duepost/duepost/duepostest"
	"github.com/duepost/duepost/examples/orders/shop"
	"github.com/duepost/duepost/internal/testdatabase"
	"github.com/duepost/duepost/ladder"
)

// rig is a shop with a broker and a database of its own.
type rig struct {
	*testing.T
	*shop.Shop
	db *sql.DB
}

func databases(t *testing.T, test func(t *testing.T, db *sql.DB, d dialect.Dialect)) {
	t.Helper()
	open := func(t *testing.T, driver, source string) *sql.DB {
		t.Helper()
		db, err := sql.Open(driver, source)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(12)
		t.Cleanup(func() { db.Close() })
		return db
	}
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		source := "file:" + filepath.Join(t.TempDir(), "shop.db") + "?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_txlock=immediate"
		test(t, open(t, "sqlite", source), dialect.SQLite)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		server := testdatabase.Postgres(t)
		test(t, open(t, "pgx", fmt.Sprintf("host=%s port=5432 user=postgres dbname=postgres", server.Dir)), dialect.Postgres)
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		server := testdatabase.MariaDB(t)
		source := fmt.Sprintf("root@unix(%s)/", server.Socket)
		admin := open(t, "mysql", source)
		if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE shop"); err != nil {
			t.Fatal(err)
		}
		test(t, open(t, "mysql", source+"shop"), dialect.MySQL)
	})
}

// newRig opens a shop in which a customer has a little time to pay.
func newRig(t *testing.T, db *sql.DB, d dialect.Dialect, toPay time.Duration) *rig {
	t.Helper()
	broker := duepostest.Start(t)
	client, err := duepost.Connect(t.Context(), duepost.Options{URL: broker.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	s, err := shop.New(t.Context(), shop.Config{
		DB: db, Dialect: d, Client: client,
		Steps: ladder.Steps{First: toPay / 10, Deadline: toPay}, SweepEvery: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Errorf("run shop: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); work.Wait() })
	if err := s.Stock(ctx, shop.Item{SKU: "mug", Name: "Mug", Free: 10}); err != nil {
		t.Fatal(err)
	}
	return &rig{t, s, db}
}

// await returns the order when it is so.
func (r *rig) await(id string, so func(shop.Order) bool) shop.Order {
	r.Helper()
	for {
		changed := r.Changed()
		o, err := r.Order(r.Context(), id)
		if err != nil {
			r.Fatal(err)
		}
		if so(o) {
			return o
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			r.Fatalf("nothing changes any more: %+v", o)
		}
	}
}

func (r *rig) stock(want shop.Item) {
	r.Helper()
	items, err := r.Items(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	want.SKU, want.Name = "mug", "Mug"
	if len(items) != 1 || items[0] != want {
		r.Errorf("stock is %+v, want %+v", items, want)
	}
}

// An order that nobody pays is closed at its deadline and not before, its stock is given back, and
// one letter is written. One that is paid stays paid.
func TestStoryOfTwoOrders(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, db *sql.DB, d dialect.Dialect) {
		r := newRig(t, db, d, 1500*time.Millisecond)
		forgotten, err := r.Place(t.Context(), "mug", 2)
		if err != nil {
			t.Fatal(err)
		}
		paid, err := r.Place(t.Context(), "mug", 3)
		if err != nil {
			t.Fatal(err)
		}
		r.stock(shop.Item{Free: 5, Held: 5})
		for range 2 { // paying twice is paying once
			if err := r.Pay(t.Context(), paid.ID); err != nil {
				t.Fatal(err)
			}
		}
		r.stock(shop.Item{Free: 5, Held: 2, Sold: 3})

		o := r.await(forgotten.ID, func(o shop.Order) bool { return o.Letters > 0 })
		if o.Status != shop.Closed || o.EndedAt < o.ExpiresAt || o.EndedAt > o.ExpiresAt+10_000 {
			t.Errorf("order ended as %+v, want it closed at its deadline", o)
		}
		o = r.await(forgotten.ID, func(o shop.Order) bool { return o.Looks > 3 })
		if o.Letters != 1 || o.NextLook != 0 {
			t.Errorf("order is %+v, want one letter and no next look", o)
		}
		r.stock(shop.Item{Free: 7, Sold: 3})
		if err := r.Pay(t.Context(), forgotten.ID); !errors.Is(err, shop.ErrTooLate) {
			t.Errorf("paying a closed order: %v, want %v", err, shop.ErrTooLate)
		}
		if o := r.await(paid.ID, func(shop.Order) bool { return true }); o.Status != shop.Paid || o.Letters != 0 {
			t.Errorf("the paid order is %+v", o)
		}
	})
}

func TestOrdersThatCannotBe(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, db *sql.DB, d dialect.Dialect) {
		r := newRig(t, db, d, time.Minute)
		for _, c := range []struct {
			sku      string
			quantity int64
			want     error
		}{
			{"mug", 0, shop.ErrQuantity}, {"mug", -1, shop.ErrQuantity}, {"mug", 1001, shop.ErrQuantity},
			{"mug", 11, shop.ErrSoldOut}, {"cup", 1, shop.ErrUnknown},
		} {
			if _, err := r.Place(t.Context(), c.sku, c.quantity); !errors.Is(err, c.want) {
				t.Errorf("placing %d of %s: %v, want %v", c.quantity, c.sku, err, c.want)
			}
		}
		if err := r.Pay(t.Context(), "nothing"); !errors.Is(err, shop.ErrUnknown) {
			t.Errorf("paying what is not there: %v, want %v", err, shop.ErrUnknown)
		}
		r.stock(shop.Item{Free: 10})
	})
}
