package relay

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/relay/topology"
)

// cutFor is how long the slots of fineWidth are opened as their time comes, after one was seen to be in
// use. A second is cut at most as long as this before its time.
const cutFor = (nearest + 10) * time.Second

// cutting is what a relay does about seconds with more messages than it may hold of one: it moves them
// into slots of fineWidth, which come into memory one after the other, so that they are released
// in due order all the same. Where it is left too late for that, what was not moved
// goes on in the order of the queue.
type cutting struct {
	turner *worker
	ring   nearRing
	until  int64    // while there may be something in the ring, in milliseconds since 1970
	looked [3]int64 // the second that was looked at last, by distance
	second int64    // that is cut, until it is over
}

// distances are how long before its time a second is looked at: messages come to it all the while, and
// moving them takes its time.
func distances() [3]time.Duration {
	return [...]time.Duration{40 * time.Second, 20 * time.Second, 8 * time.Second}
}

// begun notes that the ring is in use.
func (c *cutting) begun(nowMillis int64) { c.until = nowMillis + cutFor.Milliseconds() }

// cutFull cuts seconds to come that are too full, one at a time: the ring has no room for more.
func (n *near) cutFull(ctx context.Context) error {
	now := n.s.now()
	for i, distance := range distances() {
		at := slot{0, n.ring.at(now + distance.Milliseconds())}
		if n.cut.looked[i] == at.number || n.isCutting(at, now) {
			continue
		}
		n.cut.looked[i] = at.number
		ready, _, err := topology.Count(n.s.consuming, at.queue())
		if err != nil {
			return err
		}
		if ready <= n.share() {
			continue
		}
		n.s.r.log.Info("cut a full second", "messages", ready, "begins_in", distance)
		n.cut.second = at.number
		n.cut.begun(now)
		src := &source{queue: at.queue(), read: readCut, finite: true, cuts: at.number}
		if err := n.cut.turner.enter(ctx, src, drainPrefetch); err != nil {
			return err
		}
	}
	return nil
}

// isCutting reports whether another second is cut and not over.
func (n *near) isCutting(at slot, nowMillis int64) bool {
	second := slot{0, n.cut.second}
	return second.number != at.number && nowMillis < second.begin()+widths()[0]
}

// advanceCut opens the slots of the ring while they may be in use.
func (n *near) advanceCut(ctx context.Context) error {
	now := n.s.now()
	if now >= n.cut.until {
		n.cut.ring.next = n.cut.ring.at(now)
		return nil
	}
	return n.advance(ctx, &n.cut.ring)
}

// readCut reads what is moved from a full second to the slots it is cut into.
func readCut(d amqp.Delivery, nowMillis int64) *item {
	it := unwrap(d)
	it.at, it.cut = nowMillis, true
	return it
}

// ends reports whether a finite source is to be left when it brings a message: one of the next round of
// the ring, or of another second than the one that is cut, or of that one when its time comes.
func (s *source) ends(it *item, nowMillis int64) bool {
	if it.reason != "" || !s.finite {
		return false
	}
	at := slot{s.level, it.slot}
	if s.cuts != 0 {
		return it.slot != s.cuts || nowMillis >= at.begin()-nearLead.Milliseconds()
	}
	return !at.isOpen(nowMillis)
}
