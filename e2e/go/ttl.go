package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// order is the body of a close command.
type order struct {
	Number  string    `json:"order_no"`
	Created time.Time `json:"created_at"`
}

// orderClose lets close commands expire in a queue that nobody consumes; the
// dead-letter exchange hands them to the worker, who closes what is unpaid.
func orderClose(s *stage) {
	business := s.exchange("simple.direct", "direct", nil)
	dlx := s.exchange("dlx.direct", "direct", nil)
	waiting := s.queue("simple.queue", amqp.Table{
		"x-dead-letter-exchange": dlx, "x-dead-letter-routing-key": "close",
	})
	work := s.queue("dlx.queue", nil)
	s.bind(waiting, "order", business)
	s.bind(work, "close", dlx)
	s.must(s.ch.Confirm(false))

	delays := []int{300, 600, 900, 1200}
	paid := map[string]bool{"ORDER-600": true}
	for _, ms := range delays {
		o := order{fmt.Sprint("ORDER-", ms), time.Now()}
		body, err := json.Marshal(o)
		s.must(err)
		s.confirmed(business, "order", amqp.Publishing{
			ContentType: "application/json", Expiration: strconv.Itoa(ms), MessageId: o.Number,
			Headers: amqp.Table{"shop": "north"}, Timestamp: o.Created, Body: body,
		})
	}

	in := s.consume(work, 0)
	var closed []string
	for _, ms := range delays {
		l := in.take()
		var o order
		s.must(json.Unmarshal(l.Body, &o))
		s.equal(o.Number, fmt.Sprint("ORDER-", ms), "order of expiry")
		s.onTime(o.Number, o.Created.Add(time.Duration(ms)*time.Millisecond), l.arrived)
		s.equal(l.RoutingKey, "close", "routing key")
		s.equal(l.Exchange, dlx, "exchange")
		s.equal(l.Expiration, "", "expiration after dead-lettering")
		s.equal(l.MessageId, o.Number, "message id")
		s.equal(l.Timestamp.Unix(), o.Created.Unix(), "timestamp")
		s.equal(l.Headers["shop"], "north", "own header")
		s.check(!l.Redelivered, "first delivery is marked as redelivered")
		entry := s.died(l, death{waiting, "expired", business, "order", 1})[0]
		s.equal(entry["original-expiration"], strconv.Itoa(ms), "original expiration")
		if !paid[o.Number] {
			closed = append(closed, o.Number)
		}
	}
	s.equal(closed, []string{"ORDER-300", "ORDER-900", "ORDER-1200"}, "closed orders")
	in.nothing(200*time.Millisecond, "a close command came twice")
	s.equal(s.ready(waiting), 0, "messages left waiting")
}

// queueTTL uses a TTL that belongs to the queue. A message's own expiration
// counts only where it is lower.
func queueTTL(s *stage) {
	const ttl = 1000
	delay := s.exchange("delay.exchange", "direct", nil)
	dead := s.exchange("dead.letter.exchange", "direct", nil)
	args := amqp.Table{
		"x-message-ttl": int32(ttl), "x-dead-letter-exchange": dead, "x-dead-letter-routing-key": "dead.key",
	}
	waiting := s.queue("delay.queue", args)
	work := s.queue("actual.queue", nil)
	s.bind(waiting, "delay.key", delay)
	s.bind(work, "dead.key", dead)

	due := map[string]time.Time{}
	for _, m := range []struct {
		body, expiration string
		ms               int
	}{{"lower", "400", 400}, {"none", "", ttl}, {"higher", "60000", ttl}} {
		due[m.body] = time.Now().Add(time.Duration(m.ms) * time.Millisecond)
		s.publish(delay, "delay.key", amqp.Publishing{Expiration: m.expiration, Body: []byte(m.body)})
	}
	in := s.consume(work, 0)
	for range due {
		l := in.take()
		s.onTime(l.text(), due[l.text()], l.arrived)
		s.equal(l.RoutingKey, "dead.key", "routing key")
		s.died(l, death{waiting, "expired", delay, "delay.key", 1})
	}
	args["x-message-ttl"] = int32(2 * ttl)
	s.refused(amqp.PreconditionFailed, "declare with another TTL", func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(waiting, true, false, false, false, args)
		return err
	})
}

// tiers has one waiting queue for each delay on offer.
func tiers(s *stage) {
	work := s.queue("work", nil)
	ttl := map[string]any{"short": int16(400), "middle": int32(800), "long": int64(1300)}
	millis := map[string]int{"short": 400, "middle": 800, "long": 1300}
	for name, value := range ttl {
		s.queue(name, amqp.Table{
			"x-message-ttl": value, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": work,
		})
	}
	due := map[string]time.Time{}
	for round := range 3 {
		for _, name := range []string{"long", "middle", "short"} {
			body := fmt.Sprint(name, " ", round)
			due[body] = time.Now().Add(time.Duration(millis[name]) * time.Millisecond)
			s.publish("", s.name(name), amqp.Publishing{Body: []byte(body)})
		}
	}
	in := s.consume(work, 0)
	next := map[string]int{}
	for range due {
		l := in.take()
		s.onTime(l.text(), due[l.text()], l.arrived)
		var name string
		var round int
		_, err := fmt.Sscan(l.text(), &name, &round)
		s.must(err)
		s.equal(round, next[name], "order within tier %s", name)
		next[name]++
		s.died(l, death{s.name(name), "expired", "", s.name(name), 1})
	}
}

// headOfLine puts a long delay in front of short ones in the same queue. On
// RabbitMQ the short ones wait for the long one; here they must not.
func headOfLine(s *stage) {
	const long = 5000
	work := s.queue("work", nil)
	waiting := s.queue("wait", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": work})
	due := map[int]time.Time{}
	for _, ms := range []int{long, 900, 300, 600} {
		due[ms] = time.Now().Add(time.Duration(ms) * time.Millisecond)
		s.publish("", waiting, amqp.Publishing{Expiration: strconv.Itoa(ms), Body: []byte(strconv.Itoa(ms))})
	}
	in := s.consume(work, 0)
	for _, ms := range []int{300, 600, 900, long} {
		l := in.take()
		s.equal(l.text(), strconv.Itoa(ms), "order of expiry")
		s.onTime(l.text()+" ms", due[ms], l.arrived)
		s.check(ms == long || l.arrived.Before(due[long]), "%d ms waited for the head", ms)
	}
}
