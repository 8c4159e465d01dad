package broker

import (
	"bytes"
	"errors"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/headers"
	"github.com/duepost/duepost/internal/store"
)

// Publisher is the publishing side of a channel: it remembers the last route and has working
// space, so that a message costs no allocation. It is not for concurrent use.
type Publisher struct {
	session *Session
	broker  *Broker
	written written

	// route is the last one found. It holds for messages to cachedExchange with cachedKey
	// while the virtual host's topology is at cachedVersion; 0 means for none.
	route          route
	cachedVersion  uint64
	cachedExchange []byte
	cachedKey      []byte

	// The message at hand.
	properties *amqp.Properties // as it is to be stored, but for headers
	envelope   envelope
	record     store.Message

	// Of messages with a key.
	swap      store.Batch
	old       []store.Key
	oldProps  amqp.Properties
	cancelled int // how much was taken out by the message at hand

	placement placement
	open      []*Queue        // route.queues without the full ones
	edited    amqp.Properties // what properties points to if they differ from what was sent
	props     []byte          // encoded properties that differ from what was sent
	held      store.Message   // what waits of it
	released  []byte          // its encoded properties
	headers   []byte
	replyTo   []byte
	names     []byte
	reply     Delivery

	replies *ReplyConsumer // set by ConsumeReplies
}

// flagsRead are the properties that mean something to the broker.
const flagsRead = amqp.FlagHeaders | amqp.FlagExpiration | amqp.FlagUserID | amqp.FlagReplyTo

// NewPublisher returns a publisher for one channel.
func (s *Session) NewPublisher() *Publisher {
	return &Publisher{session: s, broker: s.broker}
}

// Publish routes and stores a message, and delivers it where a consumer has credit. Errors are
// *amqp.Error; after one the message is nowhere. [amqp basic.publish]
func (p *Publisher) Publish(m *Message) (Result, error) {
	if err := p.permit(m); err != nil {
		return Result{}, err
	}
	if err := p.accept(m); err != nil {
		return Result{}, err
	}
	if len(m.Exchange) == 0 && isReplyAddress(m.RoutingKey) {
		return p.publishReply(), nil
	}
	r, err := p.store()
	p.record.Body, p.held.Body = nil, nil // the caller's, and perhaps huge: not to be kept by an idle channel
	return r, err
}

// accept checks a message, finds its route and fills p.record with what is to be stored.
func (p *Publisher) accept(m *Message) error {
	now := p.broker.arrivalMillis()
	p.record = store.Message{
		Exchange:   m.Exchange,
		RoutingKey: m.RoutingKey,
		Props:      m.Props,
		Body:       m.Body,
		Arrived:    now,
		TTL:        noTTL,
		Persistent: m.Properties.IsPersistent(),
	}
	p.properties = m.Properties
	p.envelope = envelope{
		key:      m.RoutingKey,
		headers:  m.Properties.Headers,
		accepted: now,
	}
	if m.Properties.Flags&flagsRead != 0 {
		if err := p.readProperties(m.Properties); err != nil {
			return err
		}
	}
	return p.findRoute(m)
}

// readProperties reads and checks the properties that mean something here.
func (p *Publisher) readProperties(props *amqp.Properties) error {
	if props.Has(amqp.FlagUserID) && string(props.UserID) != p.session.user &&
		!p.session.rights.MayImpersonate() {
		return amqp.Errorf(amqp.PreconditionFailed,
			"user_id property set to '%s' but authenticated user was '%s'",
			props.UserID, p.session.user)
	}
	if props.Has(amqp.FlagExpiration) {
		ttl, err := parseExpiration(props.Expiration)
		if err != nil {
			return err
		}
		p.record.TTL = ttl
	}
	if len(props.Headers) > 0 {
		routes, err := headers.ParseRoutes(props.Headers)
		if err != nil {
			return err
		}
		p.envelope.routes = routes
	}
	if props.Has(amqp.FlagReplyTo) && string(props.ReplyTo) == ReplyQueue {
		return p.nameReplyTo(props)
	}
	return nil
}

// findRoute makes p.route that of the message, from memory if it can.
func (p *Publisher) findRoute(m *Message) error {
	v := p.session.vhost
	version := v.version.Load() // before the walk: what changes meanwhile makes it stale
	if p.cachedVersion == version && p.envelope.routes.IsEmpty() &&
		bytes.Equal(p.cachedKey, m.RoutingKey) && bytes.Equal(p.cachedExchange, m.Exchange) {
		return nil
	}
	p.cachedVersion = 0
	x := v.exchangeNamed(m.Exchange)
	if x == nil {
		return exchangeNotFound(string(m.Exchange), v.name)
	}
	if x.internal {
		return x.internalRefused()
	}
	p.route.reset()
	if err := p.route.walk(x, &p.envelope); err != nil {
		return err
	}
	if !p.route.byHeaders && p.envelope.routes.IsEmpty() {
		p.cachedVersion = version
		p.cachedExchange = append(p.cachedExchange[:0], m.Exchange...)
		p.cachedKey = append(p.cachedKey[:0], m.RoutingKey...)
	}
	return nil
}

// store puts the accepted message where its route says.
func (p *Publisher) store() (Result, error) {
	r := Result{Routed: p.route.isTaken()}
	p.cancelled = 0
	for _, x := range p.route.delayed {
		if x.isFull() {
			p.broker.counters.delayedRefused.Add(1)
			r.Rejected = true
			continue
		}
		lsn, err := p.hold(x)
		if err != nil {
			return p.failed(err)
		}
		r.LSN = max(r.LSN, lsn)
	}
	r.NotPending = p.route.delay.Cancel && p.cancelled == 0
	p.markBCC()
	queues := p.route.queues
	if anyFull(queues) {
		p.open = withoutFull(queues, p.open[:0], &p.record)
		queues = p.open
		r.Rejected = true
	}
	if len(queues) == 0 {
		return r, nil
	}
	p.placement.reserve(queues, &p.record)
	lsn, err := p.broker.enqueue(&p.placement, &p.record)
	if err != nil {
		return p.failed(err)
	}
	r.LSN = max(r.LSN, lsn)
	return r, nil
}

// hold gives the message to the delay engine.
func (p *Publisher) hold(x *Exchange) (store.LSN, error) {
	m := p.release(x)
	if p.route.delay.Key != nil {
		return p.holdKeyed(x, m)
	}
	_, lsn, err := p.broker.engine.Add(m, p.route.delay.Due)
	return lsn, err
}

// release returns what of the message at hand waits in a delayed exchange, in the form that its
// consumers will see, until the next call. BCC stays in it until it is routed.
func (p *Publisher) release(x *Exchange) *store.Message {
	p.headers = headers.AppendReleased(p.headers[:0], p.envelope.headers, p.route.delay)
	p.released = p.withHeaders(p.released[:0])
	p.held = p.record
	p.held.Props, p.held.ExchangeID = p.released, x.id
	return &p.held
}

// markBCC marks the message at hand if it has a header that no consumer may see.
func (p *Publisher) markBCC() {
	if p.envelope.routes.HasBCC() {
		p.record.ExchangeID = bccBit
	}
}

// withHeaders appends the message's properties with p.headers in place of its headers.
func (p *Publisher) withHeaders(dst []byte) []byte {
	edited := *p.properties
	edited.SetHeaders(p.headers)
	return edited.Append(dst)
}

// failed is the answer when the store did not take the message. While the disk is full the
// publisher gets a nack and may try again.
func (p *Publisher) failed(err error) (Result, error) {
	if errors.Is(err, store.ErrFull) {
		p.broker.counters.refusedFull.Add(1)
		return Result{Routed: true, Rejected: true}, nil
	}
	return Result{}, storeFailed(err)
}
