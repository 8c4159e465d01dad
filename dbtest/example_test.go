package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"time"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/dialect"
	"github.com/duepost/duepost/duepostest"
	"github.com/duepost/duepost/once"
	"github.com/duepost/duepost/outbox"
	"github.com/duepost/duepost/sweep"
)

// An order and its message are committed together, the message closes the order once, and a
// sweep finds one whose message was never sent.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	broker, err := duepostest.Open() // a program of yours has a broker elsewhere
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Stop()
	client, err := duepost.Connect(ctx, duepost.Options{URL: broker.URL, Now: broker.Now})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if err := client.Declare(ctx, duepost.Topology{Queues: []duepost.Queue{{Name: "close-unpaid"}}}); err != nil {
		log.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:example?mode=memory&cache=shared&_pragma=busy_timeout(5000)")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	box := prepare(ctx, db, broker.Now)

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES ('17', 'unpaid', 0)"); err != nil {
		log.Fatal(err)
	}
	m := duepost.Message{RoutingKey: "close-unpaid", Body: []byte("17"), Delay: 30 * time.Minute}
	if _, err := box.Add(ctx, tx, m); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
	n, err := box.RelayOnce(ctx, client) // Relay does so again and again
	fmt.Println("relayed:", n, err)
	broker.Advance(30 * time.Minute)

	store, err := once.NewSQL(db, dialect.SQLite, "close-unpaid", once.Options{})
	if err != nil {
		log.Fatal(err)
	}
	err = client.Consume(ctx, duepost.Consumer{Queue: "close-unpaid"}, func(ctx context.Context, d *duepost.Delivery) error {
		defer cancel() // one is enough for an example
		return once.Do(ctx, store, d.MessageID, func(ctx context.Context, tx *sql.Tx) error {
			fmt.Printf("close %s\n", d.Body)
			_, err := tx.ExecContext(ctx, "UPDATE orders SET status = 'closed' WHERE id = ? AND status = 'unpaid'", string(d.Body))
			return err
		})
	})
	fmt.Println("consumed:", err)

	if _, err := db.Exec("INSERT INTO orders VALUES ('18', 'unpaid', 0)"); err != nil { // and no message
		log.Fatal(err)
	}
	s, err := sweep.New(db, dialect.SQLite, sweep.Options{
		Name: "close-unpaid", Table: "orders", ID: "id", Due: "expires_at", Where: "status = 'unpaid'",
		Bound:  func(t time.Time) any { return t.UnixMilli() },
		Handle: func(_ context.Context, id string) error { fmt.Println("forgotten:", id); return nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	round, err := s.SweepOnce(context.Background()) // Run does so again and again
	fmt.Println("swept:", round.Found, err)
	// Output:
	// relayed: 1 <nil>
	// close 17
	// consumed: <nil>
	// forgotten: 18
	// swept: 1 <nil>
}

// prepare makes the tables.
func prepare(ctx context.Context, db *sql.DB, now func() time.Time) *outbox.Outbox {
	for _, migrate := range []func(context.Context, *sql.DB, dialect.Dialect) error{once.Migrate, outbox.Migrate, sweep.Migrate} {
		if err := migrate(ctx, db, dialect.SQLite); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT, expires_at INTEGER)"); err != nil {
		log.Fatal(err)
	}
	box, err := outbox.New(db, dialect.SQLite, outbox.Options{Now: now})
	if err != nil {
		log.Fatal(err)
	}
	return box
}
