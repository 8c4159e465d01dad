package duepost

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// maxQueueTTL is the longest time to live that RabbitMQ takes: ten years. [rmq ttl]
const maxQueueTTL = 315_360_000_000 // milliseconds

// waitPlan knows the queues of ModeWaitQueues: their names and arguments, and through which of
// them a delay leads. It declares nothing.
//
//	publisher ─► wait.10m ─────► queue (TTL 10 min) ─────────────────────────► due ─► target
//	publisher ─► level.9 ──────► queue (TTL 512 s) ─► level.9.next ─┬────────► due ─► target
//	                                                                └► queue of a lower level ─► …
//
// The exchange before a queue has the queue's name and is a fanout, so that the routing key stays
// what it is. A queue dead-letters to the exchange behind it, which is a headers exchange: the
// message has a header for each level that it visits, with the number of the next one, -1 for
// none. So it visits the levels of its set bits, each once, the longest first. A binding that is
// missing holds a message up and never lets it through early: while RabbitMQ starts, queues run
// before the bindings are there. Behind the last level, the due exchange knows the targets by the
// header x-duepost-to.
type waitPlan struct {
	prefix string
	kind   QueueType
	base   int64   // the smallest tier, in milliseconds
	tiers  []int64 // sorted, in milliseconds
	levels int     // how many there may be; the wait of level k is base<<k

	headers []string // that say of a level which is the next
}

// noLevel is the number of the level behind the last.
const noLevel = -1

// way is how a delay leads through the queues.
type way struct {
	tier   int64  // milliseconds; 0 if it goes through levels
	levels uint64 // bit k is level k
	millis int64  // how long it takes
}

// hops are the levels of a way, each with the one that follows it.
func (w way) hops() iter.Seq2[int, int] {
	return func(yield func(level, next int) bool) {
		for left := w.levels; left != 0; {
			level := bits.Len64(left) - 1
			left &^= 1 << level
			if !yield(level, bits.Len64(left)-1) { // noLevel after the last
				return
			}
		}
	}
}

func newWaitPlan(w WaitQueues) (*waitPlan, error) {
	p := &waitPlan{prefix: w.Prefix, kind: w.Type}
	if p.kind != Quorum && p.kind != Classic {
		return nil, invalid("wait queues: type is %q, must be %s or %s", p.kind, Quorum, Classic)
	}
	for _, d := range w.Tiers {
		if d < time.Millisecond || d%time.Millisecond != 0 || d.Milliseconds() > maxQueueTTL {
			return nil, invalid("wait queues: tier is %v, must be whole milliseconds, at most ten years", d)
		}
		p.tiers = append(p.tiers, d.Milliseconds())
	}
	slices.Sort(p.tiers)
	p.tiers = slices.Compact(p.tiers)
	p.base = p.tiers[0]
	p.levels = bits.Len64(uint64(maxQueueTTL / p.base))
	for k := range p.levels {
		p.headers = append(p.headers, fmt.Sprintf("%slevel-%d", ownHeader, k))
	}
	return p, nil
}

// way returns the way of a delay of at least a millisecond.
func (p *waitPlan) way(millis int64) (way, error) {
	units := millis / p.base
	if millis%p.base > 0 {
		units++
	}
	rounded := units * p.base
	for _, tier := range []int64{millis, rounded} {
		if _, found := slices.BinarySearch(p.tiers, tier); found {
			return way{tier: tier, millis: tier}, nil
		}
	}
	if bits.Len64(uint64(units)) > p.levels {
		longest := time.Duration(p.base<<p.levels-p.base) * time.Millisecond
		return way{}, fmt.Errorf("%w: wait queues take at most %v", ErrDelayTooLong, longest)
	}
	return way{levels: uint64(units), millis: rounded}, nil
}

// entry is the exchange to which a message with that way is published.
func (p *waitPlan) entry(w way) string {
	if w.tier > 0 {
		return p.tierName(w.tier)
	}
	return p.levelName(bits.Len64(w.levels) - 1)
}

// Names. A queue has the name of the exchange before it. What differs in an argument differs in
// its name, so that clients with other settings do not meet.

func (p *waitPlan) tierName(tier int64) string {
	return p.prefix + ".wait." + shortDuration(tier) + p.suffix()
}

func (p *waitPlan) levelName(level int) string {
	return fmt.Sprintf("%s.level.%s.%d%s", p.prefix, shortDuration(p.base), level, p.suffix())
}

func (p *waitPlan) nextName(level int) string { return p.levelName(level) + ".next" }
func (p *waitPlan) dueName() string           { return p.prefix + ".due" }
func (p *waitPlan) dueQueueName() string      { return p.prefix + ".due.queue" }

func (p *waitPlan) suffix() string {
	if p.kind == Classic {
		return ".classic"
	}
	return ""
}

// isOwn reports whether a queue or exchange is one of those in which messages wait.
func (p *waitPlan) isOwn(name string) bool {
	rest, ok := strings.CutPrefix(name, p.prefix)
	return ok && (strings.HasPrefix(rest, ".wait.") || strings.HasPrefix(rest, ".level."))
}

// queueArgs are the arguments of a queue in which messages wait and then go to an exchange.
func (p *waitPlan) queueArgs(millis int64, next string) amqp.Table {
	args := amqp.Table{"x-message-ttl": millis, "x-dead-letter-exchange": next, "x-queue-type": string(p.kind)}
	if p.kind == Quorum { // a message is forgotten only when the next queue has it
		args["x-dead-letter-strategy"] = "at-least-once"
		args["x-overflow"] = "reject-publish"
	}
	return args
}

// shortDuration is a duration without the zeros that time.Duration prints: 10m, 1h30m.
func shortDuration(millis int64) string {
	s := (time.Duration(millis) * time.Millisecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
