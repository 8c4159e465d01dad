package broker

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"github.com/duepost/duepost/internal/amqp"
)

// Tx gathers what a channel in tx mode does until it commits: all of it happens in one atomic
// group of the store, or nothing. It is not for concurrent use. [amqp tx]
type Tx struct {
	publisher *Publisher
	messages  []txMessage
	settles   []txSettle
}

// txMessage is a copy of a published message.
type txMessage struct {
	exchange, key, props, body []byte
	mandatory                  bool

	held []*Exchange // where it waits already
}

// txSettle is what is to become of held messages of one queue.
type txSettle struct {
	queue     *Queue
	positions []uint64
	how       settleKind
}

type settleKind uint8

const (
	settleAck settleKind = iota
	settleReject
	settleRequeue
)

// NewTx returns an empty transaction for the channel of this publisher.
func (p *Publisher) NewTx() *Tx { return &Tx{publisher: p} }

// Publish adds a message, which is copied. Errors are those of [Publisher.Publish] and end the
// channel. It is routed at commit, and a delay counts from there. If its exchange is deleted
// before the commit, nobody takes it.
func (t *Tx) Publish(m *Message) error {
	if err := t.publisher.permit(m); err != nil {
		return err
	}
	if err := t.publisher.accept(m); err != nil {
		return err
	}
	held, err := t.publisher.holdBeforeCommit()
	if err != nil {
		return err
	}
	t.messages = append(t.messages, txMessage{
		held:      held,
		exchange:  bytes.Clone(m.Exchange),
		key:       bytes.Clone(m.RoutingKey),
		props:     bytes.Clone(m.Props),
		body:      bytes.Clone(m.Body),
		mandatory: m.Mandatory,
	})
	return nil
}

// Ack adds held messages to be acknowledged. Positions are copied, here and below.
func (t *Tx) Ack(q *Queue, positions []uint64) { t.settle(q, positions, settleAck) }

// Reject adds held messages to be dead-lettered or dropped. That happens after the commit.
func (t *Tx) Reject(q *Queue, positions []uint64) { t.settle(q, positions, settleReject) }

// Requeue adds held messages to be put back.
func (t *Tx) Requeue(q *Queue, positions []uint64) { t.settle(q, positions, settleRequeue) }

func (t *Tx) settle(q *Queue, positions []uint64, how settleKind) {
	t.settles = append(t.settles, txSettle{q, append([]uint64(nil), positions...), how})
}

// Rollback forgets all of it. The held messages stay held.
func (t *Tx) Rollback() { t.messages, t.settles = nil, nil }

// Commit makes all of it happen and returns when it is on stable storage. It returns the
// mandatory messages that nobody took. After an error nothing has happened.
func (t *Tx) Commit() (returned []Returned, err error) {
	b := t.publisher.broker
	c := txCommit{publisher: t.publisher, broker: b, group: group{broker: b}, earliest: math.MaxInt64}
	messages, settles := t.messages, t.settles
	t.Rollback()
	for i := range messages {
		if err := c.add(&messages[i]); err != nil {
			c.giveUp()
			return nil, err
		}
	}
	for i := range settles {
		c.acknowledge(&settles[i])
	}
	defer c.giveTurns()
	if err := c.resolveKeys(); err != nil {
		c.giveUp()
		return nil, b.waited(err)
	}
	lsn, err := b.store.Commit(&c.group.batch)
	if err != nil {
		c.giveUp()
		return nil, b.waited(err)
	}
	c.finish(settles)
	return c.returned, b.wait(lsn)
}

// txCommit is a commit under way.
type txCommit struct {
	publisher *Publisher
	broker    *Broker
	group     group
	acks      []txAck
	replies   []*txMessage
	returned  []Returned
	keyed     []txKeyed
	swaps     []*txSwap
	byKey     map[swapName]*txSwap
	turns     []uint64 // taken
	earliest  int64    // due of what is to be taken out
}

// txAck are acknowledged messages of one queue that the group settles.
type txAck struct {
	queue   *Queue
	sources []departure
}

// add routes a message and puts it into the group.
func (c *txCommit) add(t *txMessage) error {
	p := c.publisher
	var properties amqp.Properties
	if err := properties.Decode(t.props); err != nil {
		return err
	}
	m := Message{
		Exchange: t.exchange, RoutingKey: t.key, Props: t.props,
		Properties: &properties, Body: t.body, Mandatory: t.mandatory,
	}
	err := p.accept(&m)
	var e *amqp.Error
	switch {
	case errors.As(err, &e) && e.Code == amqp.NotFound: // deleted after the publish
		if t.mandatory {
			c.returned = append(c.returned, t.returned())
		}
		return nil
	case err != nil:
		return err
	}
	if len(t.exchange) == 0 && isReplyAddress(t.key) {
		c.replies = append(c.replies, t)
		return nil
	}
	if t.mandatory && !p.route.isTaken() {
		c.returned = append(c.returned, t.returned())
	}
	for _, x := range p.route.delayed {
		if slices.Contains(t.held, x) {
			continue
		}
		if x.isFull() {
			c.broker.counters.delayedRefused.Add(1)
			continue
		}
		m := p.release(x)
		if p.route.delay.Key != nil {
			c.holdKeyed(x, t, m)
			continue
		}
		c.group.hold(m, p.route.delay.Due)
	}
	p.markBCC()
	queues := p.route.queues
	if anyFull(queues) {
		p.open = withoutFull(queues, p.open[:0], &p.record)
		queues = p.open
	}
	if len(queues) == 0 {
		return nil
	}
	return c.broker.waited(c.group.enqueue(&p.record, queues))
}

// returned is what basic.return gives back.
func (t *txMessage) returned() Returned {
	names := amqp.AppendShortStr(nil, t.exchange)
	return Returned{
		ExchangeAndKey: amqp.AppendShortStr(names, t.key),
		Props:          t.props,
		Body:           t.body,
	}
}

// acknowledge puts acks of logged messages into the group.
func (c *txCommit) acknowledge(s *txSettle) {
	if s.how != settleAck {
		return
	}
	a := txAck{queue: s.queue}
	for _, pos := range s.positions {
		ref, logged, ok := s.queue.beginLeaving(pos)
		if !ok {
			continue
		}
		a.sources = append(a.sources, departure{pos: pos, ref: ref, logged: logged})
		if logged {
			c.group.batch.Settle(s.queue.id, pos, ref)
		}
	}
	c.acks = append(c.acks, a)
}

// finish does in memory what the group has made durable, or soon will.
func (c *txCommit) finish(settles []txSettle) {
	for _, a := range c.acks {
		a.queue.endLeaving(a.sources)
	}
	c.group.arrive()
	c.noteKeys()
	for _, t := range c.replies {
		c.reply(t)
	}
	for _, s := range settles {
		switch s.how {
		case settleReject:
			s.queue.Reject(s.positions)
		case settleRequeue:
			s.queue.Requeue(s.positions)
		}
	}
}

// reply publishes a direct reply, which no store has anything to do with.
func (c *txCommit) reply(t *txMessage) {
	var properties amqp.Properties
	if properties.Decode(t.props) != nil {
		return
	}
	m := Message{
		Exchange: t.exchange, RoutingKey: t.key, Props: t.props,
		Properties: &properties, Body: t.body, Mandatory: t.mandatory,
	}
	r, err := c.publisher.Publish(&m)
	if err == nil && t.mandatory && !r.Routed {
		c.returned = append(c.returned, t.returned())
	}
}

// giveUp takes back what was reserved for a commit that does not happen.
func (c *txCommit) giveUp() {
	c.group.abandon()
	for _, a := range c.acks {
		a.queue.unmark(a.sources)
	}
}
