package relay

import (
	"time"

	"github.com/duepost/duepost/internal/relay/topology"
)

const (
	// ring is how many queues a level has. They are used round and round.
	ring = topology.Ring
	// nearest is how many slots ahead the finest level is used, farthest those above. What is
	// left of the ring is the distance between a slot and the one that follows it in its queue.
	nearest  = 50
	farthest = 61
	// lead is how long before its beginning a slot above the finest is moved down.
	lead = 10 * time.Second
)

// widths are how long a slot is, in milliseconds, by level. So that a slot can be moved down as a
// whole, a level reaches further than lead and one slot of the level above it.
func widths() [topology.Levels]int64 {
	const second, day = 1000, 24 * 60 * 60 * 1000
	return [...]int64{second, 30 * second, 900 * second, 8 * 3600 * second, 10 * day, 300 * day}
}

// fine is the level of the slots into which a slot of the finest is cut that has too many messages,
// fineWidth how long each is, in milliseconds.
const (
	fine      = topology.Fine
	fineWidth = 50
)

// slot is a piece of time, and the queue in which messages wait that are due in it.
type slot struct {
	level int
	// number counts slots of the level since 1970. The queue is that of its remainder, so the
	// number travels with the message: it tells one round from the next.
	number int64
}

// fineSlot is the slot of a message that is due in a second which is cut.
func fineSlot(dueMillis int64) slot { return slot{fine, dueMillis / fineWidth} }

// slotFor returns the slot in which a message waits. A message that is due beyond the last level
// waits in the furthest slot of it and is placed again from there.
func slotFor(dueMillis, nowMillis int64) slot {
	all := widths()
	for level, width := range all {
		reach := int64(farthest)
		if level == 0 {
			reach = nearest
		}
		if number := dueMillis / width; number-nowMillis/width <= reach {
			return slot{level, number}
		}
	}
	last := len(all) - 1
	return slot{last, nowMillis/all[last] + farthest}
}

// index is the place of the queue in the ring.
func (s slot) index() int { return int(s.number % ring) }

// queue is where the messages of the slot wait.
func (s slot) queue() string { return topology.WheelQueue(s.level, s.index()) }

// begin is when the slot begins, in milliseconds since 1970.
func (s slot) begin() int64 {
	if s.level == fine {
		return s.number * fineWidth
	}
	return s.number * widths()[s.level]
}

// isOpen reports whether it is time to take the messages out of the slot.
func (s slot) isOpen(nowMillis int64) bool {
	return s.begin()-lead.Milliseconds() <= nowMillis
}
