package topology

import (
	"context"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/management"
)

// Levels and Ring are how many levels the wheel has, and how many queues the ring of each. Fine is one
// more ring: for seconds with so many messages that they are cut.
const (
	Levels = 6
	Fine   = Levels
	Ring   = 64
)

// Pending is what is in the queues of a virtual host.
type Pending struct {
	Intake, Rescue, Parked int
	Wheel                  [Levels + 1][Ring]int
	// Relays are the relays that consume the intake, by the tags of their consumers, with how many
	// slots of the wheel each has, which one relay has at a time. Nil if nobody could be asked.
	Relays map[string]int
}

// Waiting is how many messages wait to be due.
func (p *Pending) Waiting() int {
	sum := p.Intake + p.Rescue
	for _, ring := range p.Wheel {
		for _, n := range ring {
			sum += n
		}
	}
	return sum
}

// each calls f with the count of each queue that a relay may have, until it returns an error.
func (p *Pending) each(f func(queue string, n *int) error) error {
	for name, n := range map[string]*int{Intake: &p.Intake, Rescue: &p.Rescue, Parked: &p.Parked} {
		if err := f(name, n); err != nil {
			return err
		}
	}
	for level := range p.Wheel {
		for index := range p.Wheel[level] {
			if err := f(WheelQueue(level, index), &p.Wheel[level][index]); err != nil {
				return err
			}
		}
	}
	return nil
}

// CountReady counts what no relay holds, queue by queue. Where nothing was declared yet there is nothing.
func CountReady(conn *amqp.Connection) (p Pending, err error) {
	err = p.each(func(queue string, n *int) (err error) {
		*n, _, err = Count(conn, queue)
		return err
	})
	return p, err
}

// CountPending counts everything, as the management API knew it some seconds ago.
func CountPending(ctx context.Context, api *management.Client, vhost string) (p Pending, err error) {
	var all []struct {
		Name     string `json:"name"`
		Messages int    `json:"messages"`
	}
	if err := ask(ctx, api, "queues/"+management.Path(vhost)+"?columns=name,messages", &all); err != nil {
		return p, fmt.Errorf("count queues: %w", err)
	}
	counts := map[string]int{}
	for _, q := range all {
		counts[q.Name] = q.Messages
	}
	if p.Relays, err = findRelays(ctx, api, vhost); err != nil {
		return p, err
	}
	return p, p.each(func(queue string, n *int) error {
		*n = counts[queue]
		return nil
	})
}

// findRelays returns the relays that consume the intake, with how many slots of the wheel each has.
func findRelays(ctx context.Context, api *management.Client, vhost string) (map[string]int, error) {
	var all []struct {
		Tag   string `json:"consumer_tag"`
		State string `json:"activity_status"` // single_active of the one that has the queue
		Queue struct {
			Name string `json:"name"`
		} `json:"queue"`
	}
	if err := ask(ctx, api, "consumers/"+management.Path(vhost), &all); err != nil {
		return nil, fmt.Errorf("look for relays: %w", err)
	}
	relays := map[string]int{}
	for _, c := range all {
		switch {
		case c.Queue.Name == Intake:
			relays[c.Tag] += 0
		case strings.HasPrefix(c.Queue.Name, wheelPrefix) && c.State == "single_active":
			relays[c.Tag]++
		}
	}
	return relays, nil
}
