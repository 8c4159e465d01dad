package topology

import amqp "github.com/rabbitmq/amqp091-go"

// Levels and Ring are how many rings of queues the wheel has, and how many queues a ring.
const (
	Levels = 6
	Ring   = 64
)

// Pending is what waits in a virtual host: messages that no relay holds.
type Pending struct {
	Intake, Rescue, Parked int
	Wheel                  [Levels]int
}

// CountPending counts what waits. Where nothing was declared yet there is nothing.
func CountPending(conn *amqp.Connection) (p Pending, err error) {
	for name, n := range map[string]*int{Intake: &p.Intake, Rescue: &p.Rescue, Parked: &p.Parked} {
		if *n, _, err = Count(conn, name); err != nil {
			return Pending{}, err
		}
	}
	for level := range p.Wheel {
		for index := range Ring {
			n, _, err := Count(conn, WheelQueue(level, index))
			if err != nil {
				return Pending{}, err
			}
			p.Wheel[level] += n
		}
	}
	return p, nil
}
