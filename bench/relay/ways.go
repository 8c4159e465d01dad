package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/load"
	"github.com/duepost/duepost/internal/relay/topology"
)

// relay is "duepost relay" in a process of its own.
type relay struct{ cmd *exec.Cmd }

// startTimeout is how long a relay may take to begin.
const startTimeout = time.Minute

// startRelay starts it and waits until it works.
func startRelay(ctx context.Context, program, url string, log io.Writer) (*relay, error) {
	r := &relay{exec.Command(program, "relay", "--rabbitmq", url, "--management", "none")}
	out, err := r.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start relay: %w", err)
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start relay: %w", err)
	}
	ready := make(chan bool, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(log, lines.Text())
			if strings.Contains(lines.Text(), "relay at work") {
				select {
				case ready <- true:
				default:
				}
			}
		}
		close(ready)
	}()
	select {
	case <-ctx.Done():
		r.stop()
		return nil, ctx.Err()
	case works := <-ready:
		if works {
			return r, nil
		}
		err = errors.New("it ended")
	case <-time.After(startTimeout):
		err = errors.New("it does not begin")
	}
	r.stop()
	return nil, fmt.Errorf("start relay: %w", err)
}

func (r *relay) pid() int { return r.cmd.Process.Pid }

// stop ends it: nothing waits any more.
func (r *relay) stop() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait() // it was killed, and says so
}

// onChannel runs f on a connection for a moment.
func onChannel(url string, f func(*amqp.Connection, *amqp.Channel) error) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close() // all was answered
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	return f(conn, ch)
}

// declareQueue makes a quorum queue, as all ways use.
func declareQueue(ch *amqp.Channel, name string, args amqp.Table) error {
	all := amqp.Table{"x-queue-type": "quorum"}
	for key, v := range args {
		all[key] = v
	}
	if _, err := ch.QueueDeclare(name, true, false, false, false, all); err != nil {
		return fmt.Errorf("declare queue %q: %w", name, err)
	}
	return nil
}

// setupFloor makes a queue to which messages go at once.
func setupFloor(url string) (*load.Route, error) {
	const queue = "bench.floor"
	return &load.Route{Queue: queue}, onChannel(url, func(_ *amqp.Connection, ch *amqp.Channel) error {
		return declareQueue(ch, queue, nil)
	})
}

func setupRelay(url string) (*load.Route, error) { return delayedRoute(url, "delayed") }

// delayedRoute makes a queue behind a delayed exchange that all share.
func delayedRoute(url, name string) (*load.Route, error) {
	const exchange = "bench"
	queue := "bench." + name
	return &load.Route{Exchange: exchange, Queue: queue}, onChannel(url, func(conn *amqp.Connection, ch *amqp.Channel) error {
		x := topology.Exchange{Name: exchange, Type: amqp.ExchangeDirect, Durable: true}
		if err := topology.DeclareExchange(conn, x); err != nil {
			return err
		}
		if err := declareQueue(ch, queue, nil); err != nil {
			return err
		}
		return ch.QueueBind(queue, queue, topology.DueExchange(exchange), false, nil)
	})
}

// levels is how many queues the ladder has: as many as bits that say how many seconds to wait.
const levels = 28

// setupLadder makes an exchange and a queue for each power of two of seconds. The routing key is the
// number of seconds in binary, the highest bit first, and then the address: a message goes down
// from level to level, and waits where its bit is set.
func setupLadder(url string) (*load.Route, error) {
	const queue = "bench.ladder"
	level := func(i int) string { return fmt.Sprintf("bench.ladder.%02d", i) }
	route := &load.Route{Exchange: level(levels - 1), Queue: queue, Step: time.Second, Key: ladderKey(queue)}
	return route, onChannel(url, func(_ *amqp.Connection, ch *amqp.Channel) error {
		if err := declareQueue(ch, queue, nil); err != nil {
			return err
		}
		const end = "bench.ladder.end"
		if err := ch.ExchangeDeclare(end, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
			return fmt.Errorf("declare exchange %q: %w", end, err)
		}
		if err := ch.QueueBind(queue, "#."+queue, end, false, nil); err != nil {
			return fmt.Errorf("bind queue %q: %w", queue, err)
		}
		for i := range levels {
			below := end
			if i > 0 {
				below = level(i - 1)
			}
			if err := declareLevel(ch, i, level(i), below); err != nil {
				return err
			}
		}
		return nil
	})
}

// ladderKey writes seconds as the ladder reads them.
func ladderKey(address string) func(time.Duration) string {
	return func(delay time.Duration) string {
		var b strings.Builder
		for i := levels - 1; i >= 0; i-- {
			b.WriteByte('0' + byte(delay/time.Second>>i&1))
			b.WriteByte('.')
		}
		return b.String() + address
	}
}

// declareLevel makes one level, with the one below it or the end there already.
func declareLevel(ch *amqp.Channel, i int, name, below string) error {
	if err := ch.ExchangeDeclare(name, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
		return fmt.Errorf("declare exchange %q: %w", name, err)
	}
	err := declareQueue(ch, name, amqp.Table{
		"x-message-ttl":          (time.Second << i).Milliseconds(),
		"x-dead-letter-exchange": below,
		"x-dead-letter-strategy": "at-least-once",
		"x-overflow":             "reject-publish",
	})
	if err != nil {
		return err
	}
	bit := strings.Repeat("*.", levels-1-i)
	if err := ch.QueueBind(name, bit+"1.#", name, false, nil); err != nil {
		return fmt.Errorf("bind queue %q: %w", name, err)
	}
	if err := ch.ExchangeBind(below, bit+"0.#", name, false, nil); err != nil {
		return fmt.Errorf("bind exchange %q: %w", below, err)
	}
	return nil
}
