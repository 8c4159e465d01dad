package load

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Names of the scenarios.
const (
	Publish = "publish"
	Consume = "consume"
	Plain   = "plain"
	Delayed = "delayed"
	Burst   = "burst"
)

// Scenarios returns the names that Run knows, in the order they make sense in.
func Scenarios() []string { return []string{Publish, Consume, Plain, Delayed, Burst} }

// Options says how to load. Start from Defaults.
type Options struct {
	// URL of the broker.
	URL string
	// Publishers and Consumers each have a connection of their own. Queues are shared out
	// evenly: publisher i publishes to queue i mod Queues, consumer i consumes it.
	Publishers, Consumers, Queues int
	// Size of a body in bytes; at least MinSize.
	Size int
	// Persistent: durable queues, delivery mode 2, publisher confirms, manual acks. Otherwise
	// neither confirms nor acks.
	Persistent bool
	// Window is how many messages a publisher may have unconfirmed.
	Window int
	// Rate is how many messages all publishers publish in a second, evenly; 0 for as many as they
	// can.
	Rate int
	// AckEvery is how many deliveries one basic.ack (multiple) settles.
	AckEvery int
	// Prefetch is the consumers' prefetch count.
	Prefetch int
	// Warmup and Duration bound scenarios publish and plain: only Duration is measured.
	Warmup, Duration time.Duration
	// Messages is how many scenarios consume, delayed and burst publish in all.
	Messages int
	// DelayMin and DelayMax bound the delays of scenario delayed.
	DelayMin, DelayMax time.Duration
	// BurstIn is how long after the start everything of scenario burst is due. It must leave
	// time to publish.
	BurstIn time.Duration
	// Patience is how long nothing may arrive before what is missing counts as lost.
	Patience time.Duration
	// PID of the broker, 0 if unknown; with Children its descendants count as well.
	PID      int
	Children bool
	// HelperPID is a process that takes part in the delivery and is none of the broker's, 0 for
	// none.
	HelperPID int
	// Route is how messages find their queue, where the broker needs more than an exchange for it.
	// nil declares what is needed.
	Route *Route
}

// Route is a way into a queue. Both are there already.
type Route struct {
	Exchange, Queue string
	// Key is the routing key of a message that is to wait so long; nil for the name of the queue.
	Key func(delay time.Duration) string
	// Step is what delays are multiples of; 0 for a millisecond.
	Step time.Duration
}

// MinSize is the smallest body: it must hold the stamp.
const MinSize = stampSize

// Defaults returns the load that the figures of docs/BENCHMARKS.md are measured with.
func Defaults() Options {
	return Options{
		Publishers: 4, Consumers: 4, Queues: 1, Size: 256, Persistent: true,
		Window: 1000, AckEvery: 100, Prefetch: 2000,
		Warmup: 3 * time.Second, Duration: 10 * time.Second, Messages: 200_000,
		DelayMin: time.Second, DelayMax: 20 * time.Second, BurstIn: 30 * time.Second,
		Patience: 30 * time.Second,
	}
}

// Validate names all faults at once.
func (o Options) Validate() error {
	var faults []error
	least := func(name string, v, limit int) {
		if v < limit {
			faults = append(faults, fmt.Errorf("%s: is %d, must be at least %d", name, v, limit))
		}
	}
	least("publishers", o.Publishers, 1)
	least("consumers", o.Consumers, 1)
	least("queues", o.Queues, 1)
	least("size", o.Size, MinSize)
	least("window", o.Window, 1)
	least("ack-every", o.AckEvery, 1)
	least("prefetch", o.Prefetch, o.AckEvery)
	least("messages", o.Messages, 1)
	least("rate", o.Rate, 0)
	if o.Queues > min(o.Publishers, o.Consumers) {
		faults = append(faults, fmt.Errorf("queues: is %d, must not be above publishers (%d) or consumers (%d)",
			o.Queues, o.Publishers, o.Consumers))
	}
	if o.Route != nil && o.Queues != 1 {
		faults = append(faults, fmt.Errorf("queues: is %d, a route leads to one", o.Queues))
	}
	if o.Duration <= 0 || o.Warmup < 0 || o.Patience <= 0 || o.BurstIn <= 0 {
		faults = append(faults, errors.New("duration, burst-in, patience: must be above 0, warmup not below"))
	}
	if o.DelayMin < time.Millisecond || o.DelayMax < o.DelayMin {
		faults = append(faults, fmt.Errorf("delays: from %v to %v is not a range of at least 1ms", o.DelayMin, o.DelayMax))
	}
	return errors.Join(faults...)
}

func checkScenario(name string) error {
	if slices.Contains(Scenarios(), name) {
		return nil
	}
	return fmt.Errorf("scenario %q: is not one of %v", name, Scenarios())
}
