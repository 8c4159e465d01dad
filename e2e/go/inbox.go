package main

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// letter is a delivery and when it came.
type letter struct {
	amqp.Delivery
	arrived time.Time
}

func (l letter) text() string { return string(l.Body) }

// inbox is a consumer with manual acks on a channel of its own.
type inbox struct {
	stage   *stage
	ch      *amqp.Channel
	letters chan letter
	tag     string
}

func (s *stage) consume(queue string, prefetch int) *inbox {
	in := &inbox{stage: s, ch: s.channel(), letters: make(chan letter, 2000), tag: queue + ".worker"}
	s.must(in.ch.Qos(prefetch, 0, false))
	deliveries, err := in.ch.Consume(queue, in.tag, false, false, false, false, nil)
	s.must(err)
	go func() {
		for d := range deliveries {
			in.letters <- letter{d, time.Now()}
		}
	}()
	return in
}

// next is the next message, not yet settled.
func (in *inbox) next() letter {
	select {
	case l := <-in.letters:
		return l
	case <-time.After(patience):
		in.stage.fatalf("no message within %s", patience)
		return letter{}
	}
}

// take is the next message, acknowledged.
func (in *inbox) take() letter {
	l := in.next()
	in.stage.must(l.Ack(false))
	return l
}

// nothing checks that no message comes within the time.
func (in *inbox) nothing(within time.Duration, why string) {
	select {
	case l := <-in.letters:
		in.stage.fatalf("%s: got %q", why, l.Body)
	case <-time.After(within):
		in.stage.checks++
	}
}
