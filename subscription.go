package duepost

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// subscription is one consumer of the broker's, on a channel of its own, from its beginning to
// the end of the channel.
type subscription struct {
	ch         *amqp.Channel
	tag        string
	deliveries <-chan amqp.Delivery

	ended   chan struct{} // closed when no more will come
	endOnce sync.Once
}

// subscribe consumes on the present connection, or on the next one while there is none.
func (c *Client) subscribe(ctx context.Context, o Consumer) (*subscription, error) {
	args, err := toTable(o.Args, 0)
	if err != nil {
		return nil, err
	}
	for {
		session, err := c.consumers.link.session(ctx)
		if err != nil {
			return nil, err
		}
		if s, err := session.subscribe(o, args); !session.isEnd(ctx, err) {
			return s, namePermission(err)
		}
	}
}

func (s *session) subscribe(o Consumer, args amqp.Table) (*subscription, error) {
	ch, err := s.conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	sub := &subscription{ch: ch, tag: o.Tag, ended: make(chan struct{})}
	if sub.tag == "" {
		sub.tag = "duepost-" + rand.Text()
	}
	if err := ch.Qos(o.Prefetch, 0, false); err != nil {
		sub.close()
		return nil, fmt.Errorf("set prefetch: %w", err)
	}
	if sub.deliveries, err = ch.Consume(o.Queue, sub.tag, false, false, false, false, args); err != nil {
		sub.close()
		return nil, err
	}
	return sub, nil
}

// noteEnd says that no more will come.
func (s *subscription) noteEnd() { s.endOnce.Do(func() { close(s.ended) }) }

// cancel asks for no more and gives back what came and was given to nobody.
func (s *subscription) cancel() {
	if s.ch.Cancel(s.tag, false) != nil {
		return // the channel has ended, and all is given back
	}
	for d := range s.deliveries {
		s.giveBack(d)
	}
}

// giveBack returns a message to its place in the queue. What fails is given back with the channel.
func (s *subscription) giveBack(d amqp.Delivery) { _ = d.Nack(false, true) }

// isLost reports whether what came over s will come again whatever is done with it.
func (s *subscription) isLost() bool { return s.ch.IsClosed() }

func (s *subscription) close() { _ = s.ch.Close() }
