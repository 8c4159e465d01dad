package relay

import "time"

// openHead is how long something done waits for what was delivered before it. Acknowledging in
// order, many at once, costs RabbitMQ next to nothing, and one by one it looks through all that is
// open before it; but what is done and not acknowledged comes again after a crash.
const openHead = 200 * time.Millisecond

// settling is what became of the deliveries of one channel, in their order.
//
// Invariant: the tags of open are first, first+1, and so on; the first of them is not done.
type settling struct {
	first uint64
	open  []settlement
	acked uint64 // the highest tag, not told alone, up to which everything is done
	dirty bool   // acked is to be told
}

type settlement struct {
	doneMillis int64 // 0 for not yet
	told       bool
}

// delivered notes a delivery. Tags count from 1 on a channel. [amqp basic.deliver]
func (s *settling) delivered(tag uint64) {
	if len(s.open) == 0 {
		s.first = tag
	}
	s.open = append(s.open, settlement{})
}

// done notes that the delivery has been handed on.
func (s *settling) done(tag uint64, nowMillis int64) {
	s.open[tag-s.first].doneMillis = nowMillis
	for len(s.open) > 0 && s.open[0].doneMillis != 0 {
		// A tag that was told already is unknown to RabbitMQ, which closes the channel for it.
		if !s.open[0].told {
			s.acked, s.dirty = s.first, true
		}
		s.first++
		s.open = s.open[1:]
	}
}

// pending is how many deliveries are not acknowledged in order.
func (s *settling) pending() int { return len(s.open) }

// upTo returns the tag to acknowledge with everything before it, if there is news.
func (s *settling) upTo() (tag uint64, ok bool) {
	tag, ok = s.acked, s.dirty
	s.dirty = false
	return tag, ok
}

// singles returns the tags to acknowledge alone: done long ago, and something before them is not.
func (s *settling) singles(nowMillis int64) (tags []uint64) {
	for i := range s.open {
		one := &s.open[i]
		if one.doneMillis != 0 && !one.told && nowMillis-one.doneMillis >= openHead.Milliseconds() {
			one.told = true
			tags = append(tags, s.first+uint64(i))
		}
	}
	return tags
}
