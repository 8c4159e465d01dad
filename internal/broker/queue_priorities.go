package broker

import (
	"sync/atomic"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// priorityShift is where in a position the priority begins. So the order of a queue's messages is
// in their positions and comes back with them after a restart, without reading any message. Bit 63
// is left free; see byQueueTTL.
const priorityShift = 54

func priorityOf(pos uint64) int { return int(pos >> priorityShift) }

// withoutPriority is the position among those of its priority.
func withoutPriority(pos uint64) uint64 { return pos & (1<<priorityShift - 1) }

// messages are those of a queue, by position. Those of a queue with x-max-priority have an index
// for each priority; the embedded one then has nothing but the counters over all.
// [rmq priority queues]
type messages struct {
	index
	levels []level // by priority; nil in a plain queue
}

// level is what a queue knows of one priority.
type level struct {
	index
	next      atomic.Uint64 // position of the next message, without priority
	end       atomic.Uint64 // no position from here on is handed out before the store knows
	delivered uint64        // nothing from here on was ever delivered
}

// positionBlock is how many positions of a priority are reserved at once. The store knows the end
// of the block before one of it is handed out, so that none is used twice: after a restart it
// tells only the highest position of all priorities.
const positionBlock = 1 << 20

// setPriorities makes it a queue with priorities from 0 to highest.
func (m *messages) setPriorities(highest int) {
	m.levels = make([]level, highest+1)
	for i := range m.levels {
		m.levels[i].index = m.emptyLevel()
	}
}

// detach forgets all messages and returns the indexes that they were in.
func (m *messages) detach() []index {
	was := []index{m.index}
	m.index = index{pager: m.pager}
	for i := range m.levels {
		was = append(was, m.levels[i].index)
		m.levels[i].index = m.emptyLevel()
	}
	return was
}

func (m *messages) emptyLevel() index { return index{pager: m.pager, all: &m.totals} }

// each goes through the indexes of all priorities.
func (m *messages) each(yield func(x *index) bool) {
	if m.levels == nil {
		yield(&m.index)
		return
	}
	for i := range m.levels {
		if !yield(&m.levels[i].index) {
			return
		}
	}
}

// reserve hands out a position for a message with these properties. Each must be given to push or
// abandon.
func (q *Queue) reserve(props []byte) uint64 {
	if q.index.levels == nil {
		return q.next.Add(1) - 1
	}
	var p amqp.Properties
	priority := 0
	if p.Decode(props) == nil && p.Has(amqp.FlagPriority) {
		priority = min(int(p.Priority), len(q.index.levels)-1)
	}
	l := &q.index.levels[priority]
	n := l.next.Add(1) - 1
	if n >= l.end.Load() && q.logged {
		q.extend(priority, n)
	}
	return uint64(priority)<<priorityShift | n
}

// extend makes the store know that positions of a priority up to n are in use.
func (q *Queue) extend(priority int, n uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.index.levels[priority]
	if n < l.end.Load() || q.deleted {
		return
	}
	var b store.Batch
	b.Put(levelDefinition(q.id, priority), encodePosition(n+positionBlock))
	if _, err := q.broker.store.Commit(&b); err == nil { // else it takes no message either
		l.end.Store(n + positionBlock)
	}
}

// forgetLevels puts the end of what extend made known into a batch.
func (q *Queue) forgetLevels(b *store.Batch) {
	for i := range q.index.levels {
		if q.index.levels[i].end.Load() > 0 {
			b.Delete(levelDefinition(q.id, i))
		}
	}
}

// isHandedOut reports whether reserve has returned a position.
func (q *Queue) isHandedOut(pos uint64) bool {
	if q.index.levels == nil {
		return pos < q.next.Load()
	}
	l := q.index.level(pos)
	return l != nil && withoutPriority(pos) < l.next.Load()
}

// noteDeliveredLocked says that a message was taken.
func (q *Queue) noteDeliveredLocked(pos uint64) {
	if q.index.levels == nil {
		q.delivered = max(q.delivered, pos+1)
		return
	}
	l := q.index.level(pos)
	l.delivered = max(l.delivered, withoutPriority(pos)+1)
}

// level returns what is known of a position's priority, or nil if there is no such.
func (m *messages) level(pos uint64) *level {
	if p := priorityOf(pos); p < len(m.levels) {
		return &m.levels[p]
	}
	return nil
}

// of is the index that a position is in, and the position there. A priority that there is not is in
// an index that is empty.
func (m *messages) of(pos uint64) (*index, uint64) {
	if l := m.level(pos); l != nil {
		return &l.index, withoutPriority(pos)
	}
	return &m.index, pos
}

// What follows does to the index of a position what index does by itself.

func (m *messages) put(pos uint64, e entry) {
	x, n := m.of(pos)
	x.put(n, e)
}

func (m *messages) abandon(pos uint64) {
	x, n := m.of(pos)
	x.abandon(n)
}

func (m *messages) at(pos uint64) *entry {
	x, n := m.of(pos)
	return x.at(n)
}

func (m *messages) isLive(pos uint64) bool {
	x, n := m.of(pos)
	return x.isLive(n)
}

func (m *messages) isHeld(pos uint64) bool {
	x, n := m.of(pos)
	return x.isHeld(n)
}

func (m *messages) isPaged(pos uint64) bool {
	x, n := m.of(pos)
	return x.isPaged(n)
}

func (m *messages) relocate(pos uint64, from, to store.Ref) (changed bool) {
	x, n := m.of(pos)
	return x.relocate(n, from, to)
}

func (m *messages) hold(pos uint64) *entry {
	x, n := m.of(pos)
	return x.hold(n)
}

func (m *messages) unhold(pos uint64) *entry {
	x, n := m.of(pos)
	return x.unhold(n)
}

func (m *messages) remove(pos uint64) entry {
	x, n := m.of(pos)
	return x.remove(n)
}

func (m *messages) restore(pos uint64, e entry) {
	x, n := m.of(pos)
	x.restore(n, e)
}

func (m *messages) wasBorn(pos uint64) bool {
	x, n := m.of(pos)
	return x.wasBorn(n)
}

// nextReady returns the first ready position of the highest priority that has one.
func (m *messages) nextReady() (pos uint64, ok bool) {
	if m.levels == nil {
		return m.index.nextReady()
	}
	for i := len(m.levels) - 1; i >= 0 && m.ready > 0; i-- {
		if n, ok := m.levels[i].nextReady(); ok {
			return uint64(i)<<priorityShift | n, true
		}
	}
	return 0, false
}

// longestReady returns the ready position that has been in the queue longest: that of which a TTL
// of the queue ends first. One that is paged comes before all: when it came is not known.
func (m *messages) longestReady() (pos uint64, ok bool) {
	if m.levels == nil {
		return m.index.nextReady()
	}
	var arrived int64
	for i := range m.levels {
		n, found := m.levels[i].nextReady()
		if !found {
			continue
		}
		if m.levels[i].isPaged(n) {
			return uint64(i)<<priorityShift | n, true
		}
		if at := m.levels[i].at(n).arrivedMillis(); !ok || at < arrived {
			pos, ok, arrived = uint64(i)<<priorityShift|n, true, at
		}
	}
	return pos, ok
}

// resumeLevels says that positions go on, after a restart, behind what the store was told of.
func (q *Queue) resumeLevels() {
	for i := range q.index.levels {
		l := &q.index.levels[i]
		l.next.Store(l.resume(l.end.Load()))
	}
}
