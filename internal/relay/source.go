package relay

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// source is a queue that a worker consumes, on a channel of its own: what RabbitMQ keeps of
// deliveries that are open is by channel, and closing one must not touch the others.
//
// settling, heard, expected and leaving are the worker's; the rest does not change once it is open.
type source struct {
	queue       string
	read        func(d amqp.Delivery, nowMillis int64) *item
	priority    int   // of the consumer: one gets nothing while one with a higher has room
	finite      bool  // it is left when nothing comes, or what is of the next round of the ring
	level       int   // of a finite source
	untilMillis int64 // of a finite source: it is not left for quiet before, in milliseconds since 1970
	expected    int   // how many messages of those that were there have not come yet, at most
	cuts        int64 // number of the second that it is to cut, 0 for none
	ch          *amqp.Channel
	settling    settling
	heard       int64 // when something came last, in milliseconds since 1970
	leaving     bool  // the worker wants no more of it
}

// arrival is a delivery, or the end of a source.
type arrival struct {
	from     *source
	delivery amqp.Delivery
	end      error
}

// maxPrefetch is what fits into basic.qos and is not taken for something else. RabbitMQ reads 0 as
// its own limit, and the client library makes 0 of what is too much.
const maxPrefetch = 65535

// consumerTimeout is how long RabbitMQ waits for an acknowledgement before it takes what was delivered
// away, in milliseconds: far longer than a relay holds anything. RabbitMQ 4.3 knows the argument; for
// those before it the timeout of the server counts, 30 minutes unless set. [rmq consumers]
const consumerTimeout = int64(3_600_000)

// open begins to consume. The tag shows people whose consumer it is.
func (s *source) open(conn *amqp.Connection, tag string, prefetch int) (<-chan amqp.Delivery, error) {
	if prefetch < 1 || prefetch > maxPrefetch {
		return nil, fmt.Errorf("consume queue %q: prefetch is %d, allowed are 1 to %d", s.queue, prefetch, maxPrefetch)
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	s.ch = ch
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return nil, fmt.Errorf("set prefetch: %w", err)
	}
	args := amqp.Table{"x-consumer-timeout": consumerTimeout}
	if s.priority != 0 {
		args["x-priority"] = int32(s.priority)
	}
	deliveries, err := ch.Consume(s.queue, tag, false, false, false, false, args)
	if err != nil {
		return nil, fmt.Errorf("consume queue %q: %w", s.queue, err)
	}
	return deliveries, nil
}

// forward passes on what comes until the channel or ctx ends.
func (s *source) forward(ctx context.Context, deliveries <-chan amqp.Delivery, to chan<- arrival) {
	for more := true; more; {
		next := arrival{from: s}
		select {
		case next.delivery, more = <-deliveries:
		case <-ctx.Done():
			return
		}
		if !more {
			next.end = fmt.Errorf("consume queue %q: RabbitMQ ended it", s.queue)
		}
		select {
		case to <- next:
		case <-ctx.Done():
			return
		}
	}
}

// tell acknowledges what is done.
func (s *source) tell(nowMillis int64) error {
	if tag, ok := s.settling.upTo(); ok {
		if err := s.ch.Ack(tag, true); err != nil {
			return fmt.Errorf("acknowledge in queue %q: %w", s.queue, err)
		}
	}
	for _, tag := range s.settling.singles(nowMillis) {
		if err := s.ch.Ack(tag, false); err != nil {
			return fmt.Errorf("acknowledge in queue %q: %w", s.queue, err)
		}
	}
	return nil
}
