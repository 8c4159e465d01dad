package duepost

import "context"

// Publish sends a message and returns when the broker has confirmed it. The error is a
// *PublishError; when it is nil, the message is in a queue or waits for its due instant.
//
// Goroutines that publish at the same time share one channel and do not wait for each other.
// Publish waits while there is no connection, while the broker takes no messages, and while
// [Options.MaxInFlight] messages wait for confirms; ctx ends every wait.
func (c *Client) Publish(ctx context.Context, m Message) (Receipt, error) {
	return Receipt{}, ErrNotSupported
}

// PublishBatch sends messages without waiting for each and returns when all of them are
// answered. There is a receipt for each; those of messages that were not confirmed are zero. The error is a *[BatchError]
// with the error of each message at its place.
func (c *Client) PublishBatch(ctx context.Context, ms []Message) ([]Receipt, error) {
	return nil, ErrNotSupported
}

// Cancel takes out the message that waits under key on exchange. It returns nil if the message
// never comes, [ErrNotPending] if nothing waited there, and [ErrNotSupported] where
// [Broker.Keys] is false. exchange is that of the message, also if it is empty.
func (c *Client) Cancel(ctx context.Context, exchange, key string) error { return ErrNotSupported }

// Reschedule publishes m in the place of what waits under its Key, which it must have, as it
// must have a Delay or At. If nothing waits there m is published all the same. It differs from
// Publish in that it refuses a message without these.
func (c *Client) Reschedule(ctx context.Context, m Message) (Receipt, error) {
	return Receipt{}, ErrNotSupported
}
