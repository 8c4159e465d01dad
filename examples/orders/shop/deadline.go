package shop

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/ladder"
)

// isSettled is asked at each step of the ladder: is there nothing more to do for this order?
func (s *Shop) isSettled(ctx context.Context, id string) (bool, error) {
	o, err := s.Order(ctx, id)
	return o.Status == Paid || o.Status == Closed, err
}

// expire closes an order whose deadline has come. The ladder calls it, and the sweep for what the
// ladder has forgotten; it may be called any number of times, at any time.
func (s *Shop) expire(ctx context.Context, id string) error {
	closed, err := s.close(ctx, id)
	if err != nil {
		return err
	}
	if closed {
		s.outbox.Wake()
		s.changes.signal()
		return nil
	}
	left, err := s.timeLeft(ctx, id)
	if err != nil {
		return err
	}
	if left > 0 { // the clock of this process is ahead of the database's, which decides
		return duepost.RetryAfter(left)
	}
	return nil
}

// close closes an unpaid order if its time is up: its stock is given back, and a letter is asked for
// in the same transaction. It reports whether it was this call that closed it.
func (s *Shop) close(ctx context.Context, id string) (closed bool, err error) {
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		closed, err = s.end(ctx, tx, id, Closed, "expires_at <= "+s.cfg.Dialect.Now(), "free")
		if err != nil || !closed {
			return err
		}
		return s.askForLetter(ctx, tx, id)
	})
	return closed && err == nil, err
}

// timeLeft is how long an unpaid order may still be paid, by the clock of the database; 0 for one that
// has ended.
func (s *Shop) timeLeft(ctx context.Context, id string) (time.Duration, error) {
	query := "SELECT CASE WHEN status = 'unpaid' THEN expires_at - " + s.cfg.Dialect.Now() + " ELSE 0 END " +
		"FROM shop_orders WHERE id = ?"
	var millis int64
	if err := s.cfg.DB.QueryRowContext(ctx, s.cfg.Dialect.Bind(query), id).Scan(&millis); err != nil {
		return 0, fmt.Errorf("read time left: %w", err)
	}
	return time.Duration(millis) * time.Millisecond, nil
}

// stepTaken notes what the page shows. The order does not depend on it.
func (s *Shop) stepTaken(step ladder.Step) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	next := int64(0)
	if !step.Next.IsZero() {
		next = step.Next.UnixMilli()
	}
	_, err := s.exec(ctx, s.cfg.DB, "UPDATE shop_orders SET looks = ?, late = ?, "+
		"next_look = CASE WHEN status = 'unpaid' THEN ? ELSE 0 END WHERE id = ? AND looks < ?",
		step.N, step.Lateness().Milliseconds(), next, step.ID, step.N)
	if err != nil {
		s.cfg.Logger.Info("step not noted", "order", step.ID, "err", err)
	}
	s.changes.signal()
}
