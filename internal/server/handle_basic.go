package server

import (
	"crypto/rand"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/wire"
)

// handleBasicQos limits unacknowledged deliveries: of each consumer to come, or
// of all on the channel at once. [rmq consumer-prefetch]
func (ch *channel) handleBasicQos(m *wire.BasicQos) error {
	if m.PrefetchSize != 0 {
		return amqp.Errorf(amqp.NotImplemented, "prefetch_size!=0 (%d)", m.PrefetchSize)
	}
	if !m.Global {
		ch.prefetch = int64(m.PrefetchCount)
		return ch.reply(&wire.BasicQosOk{})
	}
	ch.limit.Store(int64(m.PrefetchCount))
	err := ch.reply(&wire.BasicQosOk{})
	ch.wakeConsumers()
	return err
}

// handleBasicConsume starts a consumer.
func (ch *channel) handleBasicConsume(m *wire.BasicConsume) error {
	name, err := ch.queueName(m.Queue)
	if err != nil {
		return err
	}
	args, err := m.Arguments.Decode()
	if err != nil {
		return err
	}
	if ch.hasConsumer(m.ConsumerTag) {
		return amqp.Errorf(amqp.NotAllowed, "attempt to reuse consumer tag '%s'", m.ConsumerTag)
	}
	k := &consumer{ch: ch, tag: m.ConsumerTag, noAck: m.NoAck, prefetch: ch.prefetch}
	k.timeout = -1
	if n, ok := amqp.AsInt(args["x-consumer-timeout"]); ok {
		k.timeout = n
	}
	if k.tag == "" {
		k.tag = "amq.ctag-" + rand.Text() // that nobody else has
	}
	if name == broker.ReplyQueue {
		err = ch.subscribeReplies(k)
	} else {
		err = ch.subscribe(k, name, m.Exclusive, args)
	}
	if err != nil {
		return err
	}
	err = ch.replyUnless(m.NoWait, &wire.BasicConsumeOk{ConsumerTag: k.tag})
	k.handle.Wake() // no delivery before consume-ok
	return err
}

// subscribe makes the broker know the consumer.
func (ch *channel) subscribe(k *consumer, queue string, exclusive bool, args amqp.Table) error {
	q, err := ch.c.session.Queue(queue)
	if err != nil {
		return err
	}
	handle, err := q.Consume(broker.ConsumerSpec{
		Tag: k.tag, NoAck: k.noAck, Exclusive: exclusive, Args: args, Receiver: k,
	})
	if err != nil {
		return err
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if k.gone.Load() { // the queue was deleted just now
		return amqp.Errorf(amqp.NotFound, "no queue '%s' in vhost '%s'", queue, ch.c.peer.vhost)
	}
	k.handle = handle
	k.source = &source{queue: q, consumer: k}
	ch.addSource(k.source)
	ch.consumers[k.tag] = k
	return nil
}

// subscribeReplies makes the consumer receive the direct replies to requests
// published on the channel. [rmq direct reply-to]
func (ch *channel) subscribeReplies(k *consumer) error {
	k.direct = true
	handle, err := ch.publisher.ConsumeReplies(k.noAck, k)
	if err != nil {
		return err
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	k.handle = handle
	ch.consumers[k.tag] = k
	return nil
}

// forgetConsumer ends a consumer on our side: nothing is delivered to it from
// now on. It reports whether it was there.
func (ch *channel) forgetConsumer(k *consumer) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if k.gone.Swap(true) {
		return false
	}
	delete(ch.consumers, k.tag)
	ch.forgetSource(k.source)
	return true
}

func (ch *channel) hasConsumer(tag string) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	_, ok := ch.consumers[tag]
	return ok
}

// handleBasicCancel ends a consumer; one that is not there has ended already.
// Nothing is delivered to it after cancel-ok. [amqp basic.cancel]
func (ch *channel) handleBasicCancel(m *wire.BasicCancel) error {
	ch.mu.Lock()
	k := ch.consumers[m.ConsumerTag]
	ch.mu.Unlock()
	if k != nil && ch.forgetConsumer(k) {
		k.handle.Cancel()
	}
	return ch.replyUnless(m.NoWait, &wire.BasicCancelOk{ConsumerTag: m.ConsumerTag})
}

// handleBasicGet hands over one message at once, if there is one.
func (ch *channel) handleBasicGet(m *wire.BasicGet) error {
	name, err := ch.queueName(m.Queue)
	if err != nil {
		return err
	}
	q, err := ch.c.session.Queue(name)
	if err != nil {
		return err
	}
	ch.c.awaitRoom()
	d, left, ok, err := q.Get(m.NoAck)
	if err != nil {
		return err
	}
	if !ok {
		return ch.reply(&wire.BasicGetEmpty{})
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.lastTag++
	if !m.NoAck {
		ch.remember(ch.getSource(q), ch.lastTag, d.Pos)
	}
	b := wire.AppendGetOk(ch.c.out.begin(), ch.number, ch.lastTag, d.Redelivered, uint32(left),
		d.Record.ExchangeAndKey, d.Record.Props, d.Record.Body, ch.c.peer.frameMax)
	ch.c.out.end(b)
	ch.c.tally.got.Add(1)
	return nil
}

// handleBasicRecover puts all unacknowledged deliveries of the channel back into
// their queues. To deliver them again to the same consumer is not offered, as in
// RabbitMQ. [amqp basic.recover]
func (ch *channel) handleBasicRecover(requeue, reply bool) error {
	if !requeue {
		return amqp.Errorf(amqp.NotImplemented, "requeue=false")
	}
	ch.requeueAll()
	return ch.replyUnless(!reply, &wire.BasicRecoverOk{})
}
