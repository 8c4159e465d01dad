package main

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// manualAck puts messages back, holds them unsettled and loses its channel.
func manualAck(s *stage) {
	queue := s.queue("work", nil)
	s.publish("", queue, amqp.Publishing{Body: []byte("flaky")})
	in := s.consume(queue, 2)
	for attempt := range 3 {
		l := in.next()
		s.equal(l.Redelivered, attempt > 0, "redelivered at attempt %d", attempt)
		s.equal(l.Headers["x-death"], nil, "x-death after a requeue")
		switch attempt {
		case 0:
			s.must(l.Nack(false, true))
		case 1:
			s.must(l.Reject(true))
		default:
			s.must(l.Ack(false))
		}
	}

	for i := range 5 {
		s.publish("", queue, amqp.Publishing{Body: []byte(fmt.Sprint(i))})
	}
	in.next()
	second := in.next()
	in.nothing(300*time.Millisecond, "a third message despite a prefetch of two")
	s.must(second.Ack(true))
	in.next()
	in.next()
	s.must(in.ch.Close())
	again := s.consume(queue, 0)
	for _, want := range []struct {
		body        string
		redelivered bool
	}{{"2", true}, {"3", true}, {"4", false}} {
		l := again.take()
		s.equal(l.text(), want.body, "message left by the closed channel")
		s.equal(l.Redelivered, want.redelivered, "redelivered flag of %s", want.body)
	}
	again.nothing(200*time.Millisecond, "an acknowledged message came back")
	s.refused(amqp.PreconditionFailed, "unknown delivery tag", func(ch *amqp.Channel) error { return ch.Ack(99, false) })
}

// rejects sends what it cannot use to the dead-letter exchange.
func rejects(s *stage) {
	business := s.exchange("business", "topic", nil)
	dlx := s.exchange("dlx", "fanout", nil)
	queue := s.queue("work", amqp.Table{"x-dead-letter-exchange": dlx})
	dead := s.queue("dead", nil)
	s.bind(queue, "order.#", business)
	s.bind(dead, "", dlx)
	s.publish(business, "order.new", amqp.Publishing{Body: []byte("reject"), Headers: amqp.Table{"n": int32(1)}})
	s.publish(business, "order.old", amqp.Publishing{Body: []byte("nack")})
	in := s.consume(queue, 0)
	s.must(in.next().Reject(false))
	s.must(in.next().Nack(false, false))
	out := s.consume(dead, 0)
	for range 2 {
		l := out.take()
		key := map[string]string{"reject": "order.new", "nack": "order.old"}[l.text()]
		s.equal(l.RoutingKey, key, "routing key")
		s.died(l, death{queue, "rejected", business, key, 1})
		s.equal(l.Headers["x-first-death-reason"], "rejected", "first death reason")
		s.equal(l.Headers["x-first-death-exchange"], business, "first death exchange")
	}
}

// delayedRetry rejects a message into a waiting queue that dead-letters it back.
func delayedRetry(s *stage) {
	const pause = 300 * time.Millisecond
	work, waiting := s.name("work"), s.name("pause")
	s.queue("work", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": waiting})
	s.queue("pause", amqp.Table{
		"x-message-ttl": int32(pause.Milliseconds()), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": work,
	})
	s.publish("", work, amqp.Publishing{Body: []byte("flaky")})
	in := s.consume(work, 0)
	var due time.Time
	for attempt := int64(0); attempt < 4; attempt++ {
		l := in.next()
		if attempt == 0 {
			s.died(l)
		} else {
			s.onTime(fmt.Sprint("attempt ", attempt), due, l.arrived)
			s.died(l, death{waiting, "expired", "", waiting, attempt}, death{work, "rejected", "", work, attempt})
		}
		if attempt == 3 {
			s.must(l.Ack(false))
			break
		}
		due = time.Now().Add(pause)
		s.must(l.Reject(false))
	}
	in.nothing(2*pause, "an acknowledged message came again")
}

// confirms publishes many and waits for the confirm of each.
func confirms(s *stage) {
	const many = 1000
	queue := s.queue("work", nil)
	s.must(s.ch.Confirm(false))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var open []*amqp.DeferredConfirmation
	for i := range many {
		c, err := s.ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, false, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(fmt.Sprint(i))})
		s.must(err)
		open = append(open, c)
	}
	for i, c := range open {
		acked, err := c.WaitContext(ctx)
		s.must(err)
		s.check(acked, "message %d was nacked", i)
	}
	s.equal(s.ready(queue), many, "messages in the queue when all are confirmed")
	for range 20 {
		s.confirmed("", queue, amqp.Publishing{Body: []byte("single")})
	}
	s.confirmed("", s.name("nowhere"), amqp.Publishing{Body: []byte("unroutable")})
	in := s.consume(queue, 100)
	for i := range many {
		s.equal(in.take().text(), fmt.Sprint(i), "order")
	}
}

// returns sends mandatory messages to nobody and gets them back, before their
// confirms.
func returns(s *stage) {
	exchange := s.exchange("orders", "topic", nil)
	queue := s.queue("work", nil)
	s.bind(queue, "known.*", exchange)
	s.must(s.ch.Confirm(false))
	returned := s.ch.NotifyReturn(make(chan amqp.Return, 10))
	for _, m := range []struct {
		key       string
		mandatory bool
		back      int
	}{{"unknown", true, 1}, {"unknown", false, 0}, {"known.one", true, 0}} {
		c, err := s.ch.PublishWithDeferredConfirm(exchange, m.key, m.mandatory, false, amqp.Publishing{
			Headers: amqp.Table{"n": int64(1) << 40}, CorrelationId: "c-1", Body: []byte("body"),
		})
		s.must(err)
		s.check(c.Wait(), "publish with key %s was nacked", m.key)
		// The client hands over a return before it reads the confirm behind it.
		s.equal(len(returned), m.back, "returns of %+v", m)
		if m.back == 1 {
			r := <-returned
			s.equal(int(r.ReplyCode), amqp.NoRoute, "reply code")
			s.equal(r.ReplyText, "NO_ROUTE", "reply text")
			s.equal(r.Exchange, exchange, "exchange")
			s.equal(r.RoutingKey, "unknown", "routing key")
			s.equal(string(r.Body), "body", "body")
			s.equal(r.CorrelationId, "c-1", "correlation id")
			s.equal(r.Headers, amqp.Table{"n": int64(1) << 40}, "headers")
		}
	}
	s.equal(s.ready(queue), 1, "messages in the queue")
	s.refused(amqp.NotFound, "publish to an unknown exchange", func(ch *amqp.Channel) error {
		return ch.Publish(s.name("nowhere"), "", false, false, amqp.Publishing{})
	})
}
