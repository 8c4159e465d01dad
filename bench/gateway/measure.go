package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// client is a publisher and a consumer of a queue of their own, on a connection each.
type client struct {
	publish, consume *amqp.Connection
	ch               *amqp.Channel
	queue            string
	in               <-chan amqp.Delivery
}

// patience is how long a message may take.
const patience = 30 * time.Second

func connect(url string) (*client, error) {
	c := &client{}
	var err error
	if c.publish, err = amqp.Dial(url); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if c.consume, err = amqp.Dial(url); err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), c.publish.Close())
	}
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *client) open() error {
	var err error
	if c.ch, err = c.publish.Channel(); err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	other, err := c.consume.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	q, err := other.QueueDeclare("", false, false, true, false, nil)
	if err != nil {
		return fmt.Errorf("declare queue: %w", err)
	}
	c.queue = q.Name
	if c.in, err = other.Consume(q.Name, "", true, false, false, false, nil); err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	return nil
}

func (c *client) close() error { return errors.Join(c.publish.Close(), c.consume.Close()) }

// send publishes a message with the instant in it.
func (c *client) send(body []byte) error {
	binary.BigEndian.PutUint64(body, uint64(time.Now().UnixNano()))
	if err := c.ch.Publish("", c.queue, false, false, amqp.Publishing{Body: body}); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// latency are percentiles of the time between publish and delivery.
type latency struct{ p50, p99 time.Duration }

// measureLatency sends at the rate of the options.
func measureLatency(url string, o options) (latency, error) {
	c, err := connect(url)
	if err != nil {
		return latency{}, err
	}
	n := o.rate * o.seconds
	sent := make(chan error, 1)
	go func() {
		body := make([]byte, o.size)
		began := time.Now()
		for i := range n {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(o.rate))))
			if err := c.send(body); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	all, err := c.receive(n)
	if err != nil {
		return latency{}, errors.Join(err, c.close())
	}
	slices.Sort(all)
	return latency{all[n/2], all[n*99/100]}, errors.Join(<-sent, c.close())
}

// receive takes n messages and returns how long each took.
func (c *client) receive(n int) ([]time.Duration, error) {
	all := make([]time.Duration, 0, n)
	late := time.NewTimer(patience)
	defer late.Stop()
	for range n {
		select {
		case d, ok := <-c.in:
			if !ok {
				return nil, errors.New("receive: the connection ended")
			}
			all = append(all, time.Duration(time.Now().UnixNano()-int64(binary.BigEndian.Uint64(d.Body))))
		case <-late.C:
			return nil, fmt.Errorf("receive: %d of %d messages in %v", len(all), n, patience)
		}
		late.Reset(patience)
	}
	return all, nil
}

// measureBurst sends as fast as it can and returns the messages per second from the first to the
// last delivery.
func measureBurst(url string, o options) (float64, error) {
	c, err := connect(url)
	if err != nil {
		return 0, err
	}
	sent := make(chan error, 1)
	began := time.Now()
	go func() {
		body := make([]byte, o.size)
		for range o.burst {
			if err := c.send(body); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	if _, err := c.receive(o.burst); err != nil {
		return 0, errors.Join(err, c.close())
	}
	took := time.Since(began)
	return float64(o.burst) / took.Seconds(), errors.Join(<-sent, c.close())
}
