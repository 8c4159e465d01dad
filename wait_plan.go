package duepost

import (
	"fmt"
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
//	             tier 10m: fanout exchange ─► queue (TTL 10 min) ──────────────┐
//	                                                                          ▼
//	publisher ─► level 9: headers exchange ─► queue (TTL 512 s) ─► level 8 ─► … ─► level 0 ─► due ─► target
//	                                 └────── alternate exchange ────┘
//
// A message that is to wait on level k has a header that says so. The exchange of a level sends
// such messages to the queue of the level, and all others on to the level below, as its
// alternate exchange. A queue dead-letters to the level below, with the routing key unchanged. So
// a message visits the levels of its set bits, each once, the longest first. Below level 0 is the
// due exchange, which knows the targets by the header x-duepost-to.
type waitPlan struct {
	prefix string
	kind   QueueType
	base   int64   // the smallest tier, in milliseconds
	tiers  []int64 // sorted, in milliseconds
	levels int     // how many there may be; the wait of level k is base<<k

	headers []string // that send a message to the queue of a level
}

// way is how a delay leads through the queues.
type way struct {
	tier   int64  // milliseconds; 0 if it goes through levels
	levels uint64 // bit k is level k
	millis int64  // how long it takes
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
	if level < 0 {
		return p.dueName()
	}
	return fmt.Sprintf("%s.level.%s.%d%s", p.prefix, shortDuration(p.base), level, p.suffix())
}

func (p *waitPlan) dueName() string      { return p.prefix + ".due" }
func (p *waitPlan) dueQueueName() string { return p.prefix + ".due.queue" }

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
