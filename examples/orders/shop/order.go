package shop

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
)

// Status is where an order stands. Only unpaid ones change, and only once.
type Status string

// The statuses.
const (
	Unpaid Status = "unpaid"
	Paid   Status = "paid"
	Closed Status = "closed" // nobody paid in time
)

// Order is an order. Instants are milliseconds since 1970.
type Order struct {
	ID       string `json:"id"`
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
	Status   Status `json:"status"`
	PlacedAt int64  `json:"placedAt"`
	// ExpiresAt is when it is closed if it is not paid.
	ExpiresAt int64 `json:"expiresAt"`
	// EndedAt is when it was paid or closed; 0 while it is unpaid.
	EndedAt int64 `json:"endedAt"`
	// Looks counts the steps of its ladder. NextLook is when the next one is due; 0 if there is
	// none. Late is how long, in milliseconds, the last step came after it was due.
	Looks    int64 `json:"looks"`
	NextLook int64 `json:"nextLook"`
	Late     int64 `json:"late"`
	// Letters is how many letters say that it was closed.
	Letters int64 `json:"letters"`
}

// What a customer may hear.
var (
	ErrUnknown  = errors.New("there is no such order or item")
	ErrSoldOut  = errors.New("there is not enough in stock")
	ErrTooLate  = errors.New("the order was closed, because it was not paid in time")
	ErrQuantity = errors.New("the quantity must be between 1 and 1000")
)

// maxQuantity is the most that one order may have.
const maxQuantity = 1000

// Place takes an order: the stock that it holds, the order, and the message that looks at it first
// are committed together.
func (s *Shop) Place(ctx context.Context, sku string, quantity int64) (Order, error) {
	if quantity < 1 || quantity > maxQuantity {
		return Order{}, ErrQuantity
	}
	id := rand.Text()
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		if err := s.hold(ctx, tx, sku, quantity); err != nil {
			return err
		}
		now := s.cfg.Dialect.Now()
		first := s.ladder.First(id)
		_, err := s.exec(ctx, tx, "INSERT INTO shop_orders (id, sku, quantity, status, placed_at, expires_at, next_look) "+
			"VALUES (?, ?, ?, ?, "+now+", "+now+" + ?, ?)",
			id, sku, quantity, Unpaid, s.cfg.Steps.Deadline.Milliseconds(), first.At.UnixMilli())
		if err != nil {
			return fmt.Errorf("insert order: %w", err)
		}
		_, err = s.outbox.Add(ctx, tx, first)
		return err
	})
	if err != nil {
		return Order{}, err
	}
	s.outbox.Wake()
	s.changes.signal()
	return s.Order(ctx, id)
}

// Pay sells what an order holds. Paying again changes nothing.
func (s *Shop) Pay(ctx context.Context, id string) error {
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		_, err := s.end(ctx, tx, id, Paid, "expires_at > "+s.cfg.Dialect.Now(), "sold")
		return err
	})
	if err != nil {
		return err
	}
	s.changes.signal()
	o, err := s.Order(ctx, id)
	switch {
	case err != nil:
		return err
	case o.Status != Paid:
		return ErrTooLate // or about to be closed
	}
	// The message that waits is of no use any more. If taking it out goes wrong, the next
	// step of the ladder finds that the order is paid.
	if err := s.ladder.Finish(ctx, id); err != nil {
		s.cfg.Logger.Info("message of a paid order stays", "order", id, "err", err)
	}
	return nil
}

// end ends an unpaid order under a condition, gives what it holds to another column of its item, and
// reports whether it has done so. The status in the condition decides who ends an order, whoever
// tries at the same time.
func (s *Shop) end(ctx context.Context, tx *sql.Tx, id string, as Status, condition, column string) (ended bool, err error) {
	n, err := s.exec(ctx, tx, "UPDATE shop_orders SET status = ?, ended_at = "+s.cfg.Dialect.Now()+", next_look = 0 "+
		"WHERE id = ? AND status = 'unpaid' AND "+condition, as, id)
	if err != nil {
		return false, fmt.Errorf("end order: %w", err)
	}
	if n == 0 {
		return false, nil
	}
	return true, s.unhold(ctx, tx, id, column)
}

const orderColumns = "id, sku, quantity, status, placed_at, expires_at, ended_at, looks, next_look, late, " +
	"(SELECT COUNT(*) FROM shop_letters WHERE order_id = shop_orders.id)"

func scanOrder(row interface{ Scan(...any) error }) (o Order, err error) {
	err = row.Scan(&o.ID, &o.SKU, &o.Quantity, &o.Status, &o.PlacedAt, &o.ExpiresAt, &o.EndedAt,
		&o.Looks, &o.NextLook, &o.Late, &o.Letters)
	return o, err
}

// Order returns an order.
func (s *Shop) Order(ctx context.Context, id string) (Order, error) {
	query := "SELECT " + orderColumns + " FROM shop_orders WHERE id = ?"
	o, err := scanOrder(s.cfg.DB.QueryRowContext(ctx, s.cfg.Dialect.Bind(query), id))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return o, ErrUnknown
	case err != nil:
		return o, fmt.Errorf("read order: %w", err)
	}
	return o, nil
}

// Orders returns the orders placed last, at most limit, the last one first.
func (s *Shop) Orders(ctx context.Context, limit int) ([]Order, error) {
	query := "SELECT " + orderColumns + " FROM shop_orders ORDER BY placed_at DESC, id LIMIT ?"
	rows, err := s.cfg.DB.QueryContext(ctx, s.cfg.Dialect.Bind(query), limit)
	if err != nil {
		return nil, fmt.Errorf("read orders: %w", err)
	}
	defer rows.Close()
	all := []Order{}
	for rows.Next() {
		o, err := scanOrder(rows)
		if err != nil {
			return nil, fmt.Errorf("read orders: %w", err)
		}
		all = append(all, o)
	}
	return all, rows.Err()
}
