package shop

import (
	"context"
	"fmt"
)

// Overview is what a page shows.
type Overview struct {
	Now    int64   `json:"now"` // by the clock of the database
	Items  []Item  `json:"items"`
	Orders []Order `json:"orders"` // the last one first
	// Broker says how messages wait; Unsent counts those that it does not have yet.
	Broker string `json:"broker"`
	Unsent int64  `json:"unsent"`
}

// Overview reads all of it, with at most limit orders.
func (s *Shop) Overview(ctx context.Context, limit int) (o Overview, err error) {
	if err := s.cfg.DB.QueryRowContext(ctx, "SELECT "+s.cfg.Dialect.Now()).Scan(&o.Now); err != nil {
		return o, fmt.Errorf("read clock: %w", err)
	}
	if o.Items, err = s.Items(ctx); err != nil {
		return o, err
	}
	if o.Orders, err = s.Orders(ctx, limit); err != nil {
		return o, err
	}
	sent, err := s.outbox.Stats(ctx)
	if err != nil {
		return o, err
	}
	broker := s.cfg.Client.Broker()
	o.Broker, o.Unsent = fmt.Sprintf("%s %s, %s", broker.Product, broker.Version, broker.Mode), sent.Pending
	return o, nil
}
