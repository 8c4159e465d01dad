package shop

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/once"
)

// letter asks for a letter that tells a customer that an order was closed.
type letter struct {
	Order string `json:"order"`
}

// askForLetter adds the message to the transaction that closes the order.
func (s *Shop) askForLetter(ctx context.Context, tx *sql.Tx, id string) error {
	body, err := json.Marshal(letter{Order: id})
	if err != nil {
		return fmt.Errorf("encode letter: %w", err)
	}
	_, err = s.outbox.Add(ctx, tx, duepost.Message{RoutingKey: letterQueue, Body: body, ContentType: "application/json"})
	return err
}

// writeLetters handles the messages until ctx ends.
func (s *Shop) writeLetters(ctx context.Context) error {
	consumer := duepost.Consumer{Queue: letterQueue, Concurrency: s.cfg.Concurrency, Retry: s.cfg.Retry}
	return s.cfg.Client.Consume(ctx, consumer, duepost.JSON(s.writeLetter))
}

// writeLetter writes a letter. A message that comes twice has the same id and writes one.
func (s *Shop) writeLetter(ctx context.Context, d *duepost.Delivery, l letter) error {
	err := once.Do(ctx, s.letters, d.MessageID, func(ctx context.Context, tx *sql.Tx) error {
		_, err := s.exec(ctx, tx, "INSERT INTO shop_letters (order_id, written_at) VALUES (?, "+s.cfg.Dialect.Now()+")", l.Order)
		return err
	})
	if err != nil {
		return fmt.Errorf("write letter: %w", err)
	}
	s.changes.signal()
	return nil
}
