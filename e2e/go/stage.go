package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// patience is the longest wait for something that must come.
const patience = 30 * time.Second

// stage is a connection, names that no other run uses, and the checks. A check
// that does not hold ends the scheme, as in package testing.
type stage struct {
	conn   *amqp.Connection
	ch     *amqp.Channel // for declarations and publishing; consumers have their own
	prefix string
	slack  time.Duration
	undo   []func(*amqp.Channel) error
	checks int
	failed error
}

// perform plays one scheme and deletes what it declared.
func perform(name string, play func(*stage)) error {
	slack, err := strconv.Atoi(cmp.Or(os.Getenv("DUEPOST_E2E_SLACK_MS"), "3000"))
	if err != nil {
		return fmt.Errorf("read DUEPOST_E2E_SLACK_MS: %w", err)
	}
	conn, err := amqp.Dial(cmp.Or(os.Getenv("DUEPOST_E2E_URL"), "amqp://guest:guest@127.0.0.1:5672"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	s := &stage{
		conn:   conn,
		prefix: fmt.Sprintf("go.%s.%08x.", name, rand.Uint32()),
		slack:  time.Duration(slack) * time.Millisecond,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ch = s.channel()
		play(s)
	}()
	<-done
	if s.failed != nil {
		return s.failed
	}
	fmt.Printf("played %s: %d checks\n", name, s.checks)
	return s.clear()
}

func (s *stage) clear() error {
	ch, err := s.conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel to clear up: %w", err)
	}
	var faults []error
	for _, undo := range s.undo {
		faults = append(faults, undo(ch))
	}
	return errors.Join(faults...)
}

func (s *stage) fatalf(format string, args ...any) {
	_, file, line, _ := runtime.Caller(2)
	s.failed = fmt.Errorf("%s:%d: %s", file[strings.LastIndexByte(file, '/')+1:], line, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (s *stage) must(err error) {
	if err != nil {
		s.fatalf("%v", err)
	}
}

func (s *stage) check(holds bool, format string, args ...any) {
	s.checks++
	if !holds {
		s.fatalf(format, args...)
	}
}

func (s *stage) equal(got, want any, format string, args ...any) {
	s.checks++
	if !reflect.DeepEqual(got, want) {
		s.fatalf("%s: got %#v, want %#v", fmt.Sprintf(format, args...), got, want)
	}
}

// onTime checks that what came neither early nor later than a busy machine
// explains.
func (s *stage) onTime(what string, due, arrived time.Time) {
	late := arrived.Sub(due)
	fmt.Printf("%s: %.1f ms after due\n", what, float64(late)/1e6)
	s.checks++
	if late < 0 || late > s.slack {
		s.fatalf("%s came %s after it was due", what, late)
	}
}

func (s *stage) name(suffix string) string { return s.prefix + suffix }

func (s *stage) channel() *amqp.Channel {
	ch, err := s.conn.Channel()
	s.must(err)
	return ch
}

// exchange declares a durable exchange and returns its full name.
func (s *stage) exchange(suffix, kind string, args amqp.Table) string {
	name := s.name(suffix)
	s.must(s.ch.ExchangeDeclare(name, kind, true, false, false, false, args))
	s.undo = append(s.undo, func(ch *amqp.Channel) error { return ch.ExchangeDelete(name, false, false) })
	return name
}

// queue declares a durable queue and returns its full name.
func (s *stage) queue(suffix string, args amqp.Table) string {
	name := s.name(suffix)
	_, err := s.ch.QueueDeclare(name, true, false, false, false, args)
	s.must(err)
	s.undo = append(s.undo, func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(name, false, false, false)
		return err
	})
	return name
}

func (s *stage) bind(queue, key, exchange string) {
	s.must(s.ch.QueueBind(queue, key, exchange, false, nil))
}

// ready is the number of messages that wait in the queue for a consumer.
func (s *stage) ready(queue string) int {
	q, err := s.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	s.must(err)
	return q.Messages
}

// publish sends a persistent message.
func (s *stage) publish(exchange, key string, msg amqp.Publishing) {
	msg.DeliveryMode = amqp.Persistent
	s.must(s.ch.PublishWithContext(context.Background(), exchange, key, false, false, msg))
}

// confirmed sends a persistent message and waits for its confirm; the channel
// is in confirm mode.
func (s *stage) confirmed(exchange, key string, msg amqp.Publishing) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	msg.DeliveryMode = amqp.Persistent
	c, err := s.ch.PublishWithDeferredConfirmWithContext(ctx, exchange, key, false, false, msg)
	s.must(err)
	acked, err := c.WaitContext(ctx)
	s.must(err)
	s.check(acked, "publish to %q was nacked", exchange)
}

// refused runs an action that the broker must answer by closing the channel.
func (s *stage) refused(code int, what string, act func(*amqp.Channel) error) {
	ch := s.channel()
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	var said *amqp.Error
	if err := act(ch); errors.As(err, &said) {
		s.equal(said.Code, code, "%s (%s)", what, said.Reason)
		return
	}
	select {
	case said := <-closed:
		s.check(said != nil, "%s: channel closed without a reason", what)
		s.equal(said.Code, code, "%s (%s)", what, said.Reason)
	case <-time.After(patience):
		s.fatalf("%s was not refused", what)
	}
}
