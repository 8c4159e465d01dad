package server

import (
	"sync"
	"sync/atomic"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/wire"
)

// channel is one channel of a connection. Fields above mu are the reader's.
type channel struct {
	c      *conn
	number uint16

	// closing is true from channel.close sent to channel.close-ok received.
	closing bool

	// publishing
	publisher *broker.Publisher
	content   content
	confirms  confirmer
	tx        *transaction // nil unless in tx mode
	lastQueue string       // most recently declared, what an empty name means

	// consuming
	prefetch  int64     // for consumers to come
	gathering []*source // sources with settled positions to pass on
	how       outcome   // of those
	listed    bool      // in conn.settling
	taken     []unacked // scratch

	timedOut atomic.Int64 // after how long an ack was overdue, if it is; set by the watch

	isConfirming    atomic.Bool // set by the reader
	isTransactional atomic.Bool

	open     atomic.Bool  // deliveries are wanted; any goroutine
	limit    atomic.Int64 // unacknowledged deliveries to all consumers, 0 for no limit
	inflight atomic.Int64 // those there are

	mu        sync.Mutex // guards all below
	lastTag   uint64     // delivery tag of the last delivery
	window    window
	sources   []*source // by unacked.source; nil where free
	consumers map[string]*consumer
}

// openChannel handles a frame on a channel that is not open: only channel.open
// has a place there. [amqp 1.2 channel-error]
func (c *conn) openChannel(f wire.Frame) error {
	if f.Type == wire.FrameHeartbeat {
		return unexpectedFrame(f)
	}
	if f.Type != wire.FrameMethod {
		return amqp.Errorf(amqp.UnexpectedFrame, "expected method frame, got non method frame instead")
	}
	id, args, err := wire.CutMethodID(f.Payload)
	if err != nil {
		return err
	}
	switch id {
	case wire.ChannelCloseOkID:
		return nil // of a channel that both sides closed at once
	case wire.ChannelCloseID:
		c.send(f.Channel, &wire.ChannelCloseOk{}) // a second one, as RabbitMQ takes it
		return nil
	}
	if id != wire.ChannelOpenID {
		return inMethod(amqp.Errorf(amqp.ChannelError, "expected 'channel.open'"), id)
	}
	var m wire.ChannelOpen
	if err := m.Decode(args); err != nil {
		return err
	}
	if f.Channel > c.peer.channelMax {
		return inMethod(amqp.Errorf(amqp.NotAllowed, "channel number %d is beyond the negotiated channel_max (%d)",
			f.Channel, c.peer.channelMax), id)
	}
	ch := &channel{
		c:         c,
		number:    f.Channel,
		publisher: c.session.NewPublisher(),
		confirms:  confirmer{number: f.Channel},
		consumers: map[string]*consumer{},
	}
	ch.open.Store(true)
	c.mu.Lock()
	c.channels[f.Channel] = ch
	c.mu.Unlock()
	if err := c.checkUserChannels(); err != nil {
		return inMethod(err, id)
	}
	c.tally.channels.Add(1)
	return ch.reply(&wire.ChannelOpenOk{})
}

// removeChannel forgets a channel whose closing both sides know of.
func (c *conn) removeChannel(ch *channel) {
	c.mu.Lock()
	delete(c.channels, ch.number)
	c.mu.Unlock()
	if c.last == ch {
		c.last = nil
	}
}

// reply sends a method on the channel.
func (ch *channel) reply(m wire.Method) error {
	ch.c.send(ch.number, m)
	return nil
}

// replyUnless sends a method unless the client wanted no answer.
func (ch *channel) replyUnless(noWait bool, m wire.Method) error {
	if !noWait {
		ch.c.send(ch.number, m)
	}
	return nil
}

// send appends a method to the output.
func (c *conn) send(channel uint16, m wire.Method) {
	c.out.end(wire.AppendMethod(c.out.begin(), channel, m))
}

// fail closes the channel because of an error and throws away what comes until
// the client knows. [amqp channel.close]
func (ch *channel) fail(e *amqp.Error) {
	ch.closing = true
	ch.release()
	ch.c.send(ch.number, &wire.ChannelClose{
		ReplyCode: e.Code, ReplyText: e.ReplyText(), ClassID: e.Class, MethodID: e.Method,
	})
}

// release gives back all the channel holds: its consumers end, and what they
// did not settle returns to its queues. It is idempotent.
func (ch *channel) release() {
	ch.open.Store(false)
	ch.flush() // what was settled before stays settled
	ch.c.confirm.drop(&ch.confirms)
	if ch.tx != nil {
		ch.tx.rollback(ch)
	}
	ch.mu.Lock()
	consumers := make([]*consumer, 0, len(ch.consumers))
	for _, k := range ch.consumers {
		k.gone.Store(true)
		consumers = append(consumers, k)
	}
	clear(ch.consumers)
	ch.mu.Unlock()
	ch.requeueAll() // before its queues give anything to the consumers that come after these
	for _, k := range consumers {
		k.handle.Cancel()
	}
	ch.content = content{}
}
