package broker

import (
	"crypto/rand"
	"strings"
	"sync"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// Direct reply-to: a client consumes from the pseudo-queue amq.rabbitmq.reply-to, publishes
// requests with that name as reply-to, and the server side publishes answers to the address
// that the broker put there instead. Answers are queued nowhere. [rmq direct reply-to]

// ReplyQueue is the pseudo-queue that a client consumes direct replies from.
const ReplyQueue = "amq.rabbitmq.reply-to"

const replyPrefix = ReplyQueue + "."

// isReplyAddress reports whether a routing key is the address of a reply consumer.
func isReplyAddress(key []byte) bool {
	return len(key) > len(replyPrefix) && string(key[:len(replyPrefix)]) == replyPrefix
}

// replyRegistry knows the reply consumers by address.
type replyRegistry struct {
	mu        sync.RWMutex // a leaf lock; guards consumers
	consumers map[string]*ReplyConsumer
}

func (r *replyRegistry) get(address []byte) *ReplyConsumer {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.consumers[string(address)]
}

func (r *replyRegistry) put(c *ReplyConsumer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.consumers == nil {
		r.consumers = make(map[string]*ReplyConsumer)
	}
	r.consumers[c.address] = c
}

func (r *replyRegistry) remove(c *ReplyConsumer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.consumers, c.address)
}

// ReplyConsumer is a channel's consumer of direct replies.
type ReplyConsumer struct {
	publisher *Publisher
	receiver  Receiver
	address   string
}

// ConsumeReplies makes the channel of this publisher receive direct replies. They are handed to
// r.Deliver without credit being asked for; if that answers false the reply is dropped. There
// is one such consumer per channel, and it cannot acknowledge.
func (p *Publisher) ConsumeReplies(noAck bool, r Receiver) (*ReplyConsumer, error) {
	if !noAck {
		return nil, amqp.Errorf(amqp.PreconditionFailed, "reply consumer cannot acknowledge")
	}
	if p.replies != nil {
		return nil, amqp.Errorf(amqp.PreconditionFailed, "reply consumer already set")
	}
	c := &ReplyConsumer{publisher: p, receiver: r, address: replyPrefix + rand.Text()}
	p.replies = c
	p.broker.replies.put(c)
	return c, nil
}

// Address returns the name that requests carry as reply-to.
func (c *ReplyConsumer) Address() string { return c.address }

// Wake does nothing: replies need no credit.
func (c *ReplyConsumer) Wake() {}

// Cancel ends the consumer. It is called by whoever may call the publisher.
func (c *ReplyConsumer) Cancel() {
	c.publisher.broker.replies.remove(c)
	if c.publisher.replies == c {
		c.publisher.replies = nil
	}
}

// nameReplyTo puts the address of the channel's reply consumer into the message at hand.
func (p *Publisher) nameReplyTo(props *amqp.Properties) error {
	if p.replies == nil {
		return amqp.Errorf(amqp.PreconditionFailed, "fast reply consumer does not exist")
	}
	p.edited = *props
	p.replyTo = append(p.replyTo[:0], p.replies.address...)
	p.edited.ReplyTo = p.replyTo
	p.properties = &p.edited
	p.props = p.edited.Append(p.props[:0])
	p.record.Props = p.props
	return nil
}

// publishReply hands the message at hand to the reply consumer it is addressed to.
func (p *Publisher) publishReply() Result {
	c := p.broker.replies.get(p.record.RoutingKey)
	if c == nil {
		return Result{}
	}
	p.markBCC()
	hideBCC(&p.record)
	p.names = amqp.AppendShortStr(p.names[:0], p.record.Exchange)
	p.names = amqp.AppendShortStr(p.names, p.record.RoutingKey)
	p.reply = Delivery{Record: store.Record{Message: p.record, ExchangeAndKey: p.names}}
	if !c.receiver.Deliver(&p.reply) {
		p.broker.counters.repliesDropped.Add(1)
	}
	p.reply = Delivery{}
	return Result{Routed: true}
}

// declareReplyQueue answers a declaration of the pseudo-queue or of an address, by which clients
// ask whether the requester is still there.
func (s *Session) declareReplyQueue(name string) (QueueInfo, error) {
	if strings.HasPrefix(name, replyPrefix) && s.broker.replies.get([]byte(name)) == nil {
		return QueueInfo{}, queueNotFound(name, s.vhost.name)
	}
	return QueueInfo{Name: name, Consumers: 1}, nil
}
