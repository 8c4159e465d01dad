package shop

import (
	"context"
	"database/sql"
	"fmt"
)

// Item is what the shop sells. Free, Held and Sold together are all that there ever was.
type Item struct {
	SKU  string `json:"sku"`
	Name string `json:"name"`
	Free int64  `json:"free"`
	Held int64  `json:"held"` // by unpaid orders
	Sold int64  `json:"sold"`
}

// Stock puts an item on sale that is not there yet.
func (s *Shop) Stock(ctx context.Context, it Item) error {
	_, err := s.exec(ctx, s.cfg.DB, "INSERT INTO shop_items (sku, name, free, held, sold) VALUES (?, ?, ?, 0, 0) "+
		s.cfg.Dialect.IgnoreExisting("sku"), it.SKU, it.Name, it.Free)
	if err != nil {
		return fmt.Errorf("put item on sale: %w", err)
	}
	s.changes.signal()
	return nil
}

// Items returns what is on sale.
func (s *Shop) Items(ctx context.Context) ([]Item, error) {
	rows, err := s.cfg.DB.QueryContext(ctx, "SELECT sku, name, free, held, sold FROM shop_items ORDER BY sku")
	if err != nil {
		return nil, fmt.Errorf("read items: %w", err)
	}
	defer rows.Close()
	all := []Item{}
	for rows.Next() {
		var it Item
		if err := rows.Scan(&it.SKU, &it.Name, &it.Free, &it.Held, &it.Sold); err != nil {
			return nil, fmt.Errorf("read items: %w", err)
		}
		all = append(all, it)
	}
	return all, rows.Err()
}

// hold takes stock for an order.
func (s *Shop) hold(ctx context.Context, tx *sql.Tx, sku string, quantity int64) error {
	n, err := s.exec(ctx, tx, "UPDATE shop_items SET free = free - ?, held = held + ? WHERE sku = ? AND free >= ?",
		quantity, quantity, sku, quantity)
	if err != nil {
		return fmt.Errorf("hold stock: %w", err)
	}
	if n == 1 {
		return nil
	}
	var known int
	query := s.cfg.Dialect.Bind("SELECT COUNT(*) FROM shop_items WHERE sku = ?")
	if err := tx.QueryRowContext(ctx, query, sku).Scan(&known); err != nil {
		return fmt.Errorf("look for item: %w", err)
	}
	if known == 0 {
		return ErrUnknown
	}
	return ErrSoldOut
}

// unhold gives what an order holds to another column, free or sold.
func (s *Shop) unhold(ctx context.Context, tx *sql.Tx, id, column string) error {
	const quantity = "(SELECT quantity FROM shop_orders WHERE id = ?)"
	n, err := s.exec(ctx, tx, "UPDATE shop_items SET held = held - "+quantity+", "+column+" = "+column+" + "+quantity+
		" WHERE sku = (SELECT sku FROM shop_orders WHERE id = ?)", id, id, id)
	if err != nil {
		return fmt.Errorf("move stock to %s: %w", column, err)
	}
	if n != 1 {
		return fmt.Errorf("move stock to %s: order %s has no item", column, id)
	}
	return nil
}
