package faults

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/dialect"
	"github.com/duepost/duepost/examples/orders/shop"
	"github.com/duepost/duepost/ladder"
)

const (
	toPay  = 5 * time.Second
	pieces = 1_000_000 // that there are of the one item
	// sellers is how many customers are served at the same time, pause how long each waits after
	// an order, so that selling goes on for a while.
	sellers, pause = 16, 30 * time.Millisecond
	// patience is how long after the last fault everything must be done.
	patience = 90 * time.Second
)

// market is customers with several instances of the shop.
type market struct {
	*testing.T
	seed    uint64
	orders  uint64
	dialect dialect.Dialect
	db      *sql.DB // to look at
	shops   []*shop.Shop

	mu   sync.Mutex       // guards told
	told map[string]error // by order, what paying it returned last; absent if nobody has tried
}

// openShop runs an instance with a connection, a broker and a clock of its own until the test ends.
func (m *market) openShop(db *sql.DB, url string, ahead time.Duration) {
	m.Helper()
	now := func() time.Time { return time.Now().Add(ahead) }
	client, err := duepost.Connect(m.Context(), duepost.Options{URL: url, Now: now,
		Reconnect: duepost.Backoff{First: 20 * time.Millisecond, Cap: 500 * time.Millisecond}})
	if err != nil {
		m.Fatal(err)
	}
	s, err := shop.New(m.Context(), shop.Config{
		DB: db, Dialect: m.dialect, Client: client, Now: now,
		Steps:       ladder.Steps{First: time.Second, Deadline: toPay},
		SweepEvery:  3 * time.Second,
		Lease:       4 * time.Second,
		Concurrency: 4,
		Retry:       duepost.Retry{Attempts: 8, Backoff: duepost.Backoff{First: 100 * time.Millisecond, Cap: time.Second}},
		Logger:      slog.New(slog.NewTextHandler(m.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		m.Fatal(err)
	}
	if err := s.Stock(m.Context(), shop.Item{SKU: "mug", Name: "Mug", Free: pieces}); err != nil {
		m.Fatal(err)
	}
	ctx, cancel := context.WithCancel(m.Context())
	var work sync.WaitGroup
	work.Go(func() {
		if err := s.Run(ctx); err != nil {
			m.Errorf("run shop: %v", err)
		}
	})
	m.Cleanup(func() { cancel(); work.Wait(); client.Close() })
	m.shops = append(m.shops, s)
}

// sell places the orders. Most are paid, at any time up to shortly after their deadline.
func (m *market) sell() {
	m.told = map[string]error{}
	var all, payers sync.WaitGroup
	for seller := range uint64(sellers) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(m.seed, 100+seller))
			for range m.orders / sellers {
				wait(pause)
				o := m.place(random)
				if random.IntN(3) == 0 {
					continue
				}
				after := time.Duration(random.Int64N(int64(toPay + toPay/10)))
				by := m.shops[random.IntN(len(m.shops))]
				payers.Go(func() { m.pay(by, o.ID, after) })
			}
		})
	}
	all.Wait()
	payers.Wait()
}

// place places an order with any instance, again and again until it is told that it has one. What it
// is not told of may be there as well.
func (m *market) place(random *rand.Rand) shop.Order {
	for {
		o, err := m.shops[random.IntN(len(m.shops))].Place(m.Context(), "mug", 1+random.Int64N(3))
		if err == nil || m.Context().Err() != nil {
			return o
		}
		wait(pause)
	}
}

// pay pays an order after a while, or tries to.
func (m *market) pay(s *shop.Shop, id string, after time.Duration) {
	wait(after)
	err := s.Pay(m.Context(), id)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told[id] = err
}

// settle waits until everything is done.
func (m *market) settle() {
	late := time.After(patience)
	for {
		var open int64
		query := "SELECT (SELECT COUNT(*) FROM shop_orders WHERE status = 'unpaid' OR status = 'closed' AND " +
			"NOT EXISTS (SELECT 1 FROM shop_letters WHERE order_id = shop_orders.id))"
		if err := m.db.QueryRowContext(m.Context(), query).Scan(&open); err != nil {
			m.Logf("look at the orders: %v", err) // the database may need a moment
			open = 1
		}
		if open == 0 {
			return
		}
		select {
		case <-late:
			m.Fatalf("%d orders are forgotten", open)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// look looks at every order and at the stock.
func (m *market) look() {
	all, err := m.shops[0].Orders(m.Context(), 1<<30)
	if err != nil {
		m.Fatal(err)
	}
	var paid, closed, sold int64
	var late []time.Duration
	for _, o := range all {
		if fault := faultOf(o, m.told); fault != "" {
			m.Errorf("%s: %+v", fault, o)
		}
		switch o.Status {
		case shop.Paid:
			paid, sold = paid+1, sold+o.Quantity
		case shop.Closed:
			closed++
			late = append(late, time.Duration(o.EndedAt-o.ExpiresAt)*time.Millisecond)
		}
	}
	if paid == 0 || closed == 0 {
		m.Errorf("%d paid and %d closed: the test has shown nothing", paid, closed)
	}
	items, err := m.shops[0].Items(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	want := shop.Item{SKU: "mug", Name: "Mug", Free: pieces - sold, Sold: sold}
	if len(items) != 1 || items[0] != want {
		m.Errorf("stock is %+v, want %+v", items, want)
	}
	for id := range m.told {
		if !slices.ContainsFunc(all, func(o shop.Order) bool { return o.ID == id }) {
			m.Errorf("order %s is gone", id)
		}
	}
	slices.Sort(late)
	m.Logf("%d orders, %d paid, %d closed; closed after their deadline by %v (half), %v (99 of 100), %v (all)",
		len(all), paid, closed, late[len(late)/2], late[len(late)*99/100], late[len(late)-1])
}

// faultOf says what is wrong with an order that has ended, empty for nothing.
func faultOf(o shop.Order, told map[string]error) string {
	answer, tried := told[o.ID]
	switch {
	case o.Status == shop.Unpaid:
		return "forgotten"
	case o.Status == shop.Closed && o.EndedAt < o.ExpiresAt:
		return "closed early"
	case o.Status == shop.Closed && o.Letters != 1:
		return fmt.Sprintf("closed with %d letters", o.Letters)
	case o.Status == shop.Paid && o.Letters != 0:
		return "paid, and a letter says that it was closed"
	case o.Status == shop.Paid && o.EndedAt >= o.ExpiresAt:
		return "paid late"
	case o.Status == shop.Paid && !tried:
		return "paid by nobody"
	case o.Status == shop.Closed && tried && answer == nil:
		return "closed although it was paid"
	case o.Status == shop.Paid && errors.Is(answer, shop.ErrTooLate):
		return "paid although its customer was told that it is too late"
	}
	return ""
}
