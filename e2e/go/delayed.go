package main

import (
	"encoding/json"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// delayedExchange sends delays in mixed order, the longest first, and sees each
// message come at its own time, with the delay negated and nothing else changed.
func delayedExchange(s *stage) {
	exchange := s.exchange("delay.exchange", "x-delayed-message", amqp.Table{"x-delayed-type": "direct"})
	queue := s.queue("delay.queue", nil)
	s.bind(queue, "delay.key", exchange)
	s.must(s.ch.Confirm(false))

	due := map[int]time.Time{}
	for _, ms := range []int{2500, 300, 1200, 600, 301} {
		due[ms] = time.Now().Add(time.Duration(ms) * time.Millisecond)
		s.confirmed(exchange, "delay.key", amqp.Publishing{
			ContentType: "text/plain", Body: []byte(fmt.Sprint(ms)),
			Headers: amqp.Table{"x-delay": int32(ms), "shop": "north"},
		})
	}
	s.equal(s.ready(queue), 0, "messages in the queue before they are due")
	in := s.consume(queue, 0)
	for _, ms := range []int{300, 301, 600, 1200, 2500} {
		l := in.take()
		s.equal(l.text(), fmt.Sprint(ms), "order of release")
		s.onTime(l.text()+" ms", due[ms], l.arrived)
		delete(l.Headers, "x-duepost-id") // which a relay adds
		s.equal(l.Headers, amqp.Table{"x-delay": int64(-ms), "shop": "north"}, "headers")
		s.equal(l.Exchange, exchange, "exchange")
		s.equal(l.RoutingKey, "delay.key", "routing key")
		s.equal(l.ContentType, "text/plain", "content type")
	}
	for _, headers := range []amqp.Table{nil, {"x-delay": int32(0)}, {"x-delay": int32(-7000)}} {
		now := time.Now()
		s.publish(exchange, "delay.key", amqp.Publishing{Headers: headers})
		l := in.take()
		s.onTime(fmt.Sprint("headers ", headers), now, l.arrived)
		s.equal(l.Headers, headers, "headers that ask for no delay")
	}
}

// delayedTypes sends delays in every type that the client can put into a table.
func delayedTypes(s *stage) {
	exchange := s.exchange("delay.exchange", "x-delayed-message", amqp.Table{"x-delayed-type": "fanout"})
	queue := s.queue("delay.queue", nil)
	s.bind(queue, "", exchange)
	s.must(s.ch.Confirm(false))

	sent := []struct {
		value any
		ms    int64
	}{
		{int8(100), 100}, {byte(200), 200}, {int16(300), 300}, {uint16(400), 400}, {"500", 500},
		{float32(600.5), 600}, {700.9, 700}, {uint32(800), 800}, {int32(900), 900}, {int64(1000), 1000},
	}
	// 49.7 days and a little: a broker that keeps 32 bits would release it at once.
	s.confirmed(exchange, "", amqp.Publishing{Body: []byte("later"), Headers: amqp.Table{"x-delay": int64(1<<32 + 500)}})
	due := map[string]time.Time{}
	millis := map[string]int64{}
	for _, v := range sent {
		name := fmt.Sprintf("%T", v.value)
		due[name], millis[name] = time.Now().Add(time.Duration(v.ms)*time.Millisecond), v.ms
		s.confirmed(exchange, "", amqp.Publishing{Body: []byte(name), Headers: amqp.Table{"x-delay": v.value}})
	}
	in := s.consume(queue, 0)
	for range sent {
		l := in.take()
		s.onTime(l.text(), due[l.text()], l.arrived)
		s.equal(l.Headers["x-delay"], -millis[l.text()], "x-delay sent as %s", l.Body)
	}
	in.nothing(time.Second, "a delay beyond 32 bits ended at once")
	for _, value := range []any{"soon", true, time.Now(), []any{int32(1)}, amqp.Table{"ms": int32(1)}, nil, []byte("1")} {
		s.refused(amqp.PreconditionFailed, fmt.Sprintf("x-delay of type %T", value), func(ch *amqp.Channel) error {
			return ch.Publish(exchange, "", false, false, amqp.Publishing{Headers: amqp.Table{"x-delay": value}})
		})
	}
}

// delayedTx publishes inside a transaction: what was rolled back never comes.
func delayedTx(s *stage) {
	exchange := s.exchange("delay.exchange", "x-delayed-message", amqp.Table{"x-delayed-type": "fanout"})
	queue := s.queue("delay.queue", nil)
	s.bind(queue, "", exchange)
	s.must(s.ch.Tx())
	delay := amqp.Table{"x-delay": int32(500)}
	s.publish(exchange, "", amqp.Publishing{Headers: delay, Body: []byte("rolled back")})
	s.must(s.ch.TxRollback())
	due := time.Now().Add(500 * time.Millisecond)
	s.publish(exchange, "", amqp.Publishing{Headers: delay, Body: []byte("committed")})
	s.must(s.ch.TxCommit())
	in := s.consume(queue, 0)
	l := in.take()
	s.equal(l.text(), "committed", "message")
	s.onTime("committed", due, l.arrived)
	in.nothing(500*time.Millisecond, "a rolled back message came")
}

// check is one step of the staircase: everything that the next step needs
// travels in the message.
type check struct {
	Order   string    `json:"order"`
	Created time.Time `json:"created"`
	Sent    time.Time `json:"sent"`
	Step    int32     `json:"step_ms"`
}

// staircase asks again and again whether an order is paid, after delays that
// double, until the deadline.
func staircase(s *stage) {
	const deadline = 1700 * time.Millisecond
	exchange := s.exchange("order.exchange", "x-delayed-message", amqp.Table{"x-delayed-type": "direct"})
	queue := s.queue("order.queue", nil)
	s.bind(queue, "order.key", exchange)
	send := func(c check) {
		c.Sent = time.Now()
		body, err := json.Marshal(c)
		s.must(err)
		s.publish(exchange, "order.key", amqp.Publishing{
			ContentType: "application/json", Headers: amqp.Table{"x-delay": c.Step}, Body: body,
		})
	}
	in := s.consume(queue, 0)
	for _, number := range []string{"paid", "unpaid"} {
		send(check{Order: number, Created: time.Now(), Step: 200})
	}

	steps := map[string][]int32{}
	for open := 2; open > 0; {
		l := in.next()
		var c check
		s.must(json.Unmarshal(l.Body, &c))
		steps[c.Order] = append(steps[c.Order], c.Step)
		s.onTime(fmt.Sprintf("%s after %d ms", c.Order, c.Step), c.Sent.Add(time.Duration(c.Step)*time.Millisecond), l.arrived)
		left := c.Created.Add(deadline).Sub(l.arrived)
		switch {
		case c.Order == "paid" && len(steps[c.Order]) == 2: // paid between the first check and the second
			open--
		case left <= 0:
			s.onTime("deadline of "+c.Order, c.Created.Add(deadline), l.arrived)
			s.equal(c.Order, "unpaid", "order that reached its deadline")
			open--
		default:
			c.Step = int32(min(int64(c.Step)*2, left.Milliseconds()+1))
			send(c)
		}
		s.must(l.Ack(false))
	}
	fmt.Println(steps)
	unpaid := steps["unpaid"]
	s.check(len(unpaid) >= 3, "too few steps: %v", unpaid)
	for i := 1; i < len(unpaid)-1; i++ {
		s.equal(unpaid[i], 2*unpaid[i-1], "step %d of %v", i, unpaid)
	}
	in.nothing(500*time.Millisecond, "a check came after the end")
}
