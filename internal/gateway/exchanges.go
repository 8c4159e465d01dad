package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// What is known of an exchange.
const (
	unsure uint32 = iota // nobody has answered
	plain
	delayed
)

const (
	// knownFor is how long an answer is good for publishes: somebody may delete an exchange and
	// declare it anew in another way, past this gateway. Meanwhile only the stamp of acceptance
	// is missing.
	knownFor = 10 * time.Second
	// askAgain is when a question without answer is asked again.
	askAgain = time.Second
	// topologyTimeout bounds work on the topology, during which a channel is held.
	topologyTimeout = 10 * time.Second
	// mostKnown bounds how many exchanges are remembered; beyond that all are forgotten.
	mostKnown = 100_000
)

// exchangeKey is where an exchange is and what it is called.
type exchangeKey struct{ vhost, name string }

// exchange is what is known of one of RabbitMQ's.
type exchange struct {
	key       exchangeKey
	state     atomic.Uint32
	checked   atomic.Int64 // when the last question ended, in ns since 1970
	forgotten atomic.Bool  // find makes another

	answered chan struct{} // guarded by exchanges.mu; closed by the answer; nil if nobody asks
}

// isStale reports whether it is time to ask again.
func (x *exchange) isStale(now time.Time) bool {
	age := now.UnixNano() - x.checked.Load()
	if x.state.Load() == unsure {
		return age > int64(askAgain)
	}
	return age > int64(knownFor)
}

// exchanges remembers which exchanges are delayed.
type exchanges struct {
	ctx      context.Context // ends questions
	topology Topology
	asking   sync.WaitGroup

	mu    sync.Mutex // guards known and exchange.answered
	known map[exchangeKey]*exchange
}

// find returns what is known, without asking.
func (e *exchanges) find(vhost, name string) *exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := exchangeKey{vhost, name}
	if x := e.known[key]; x != nil {
		return x
	}
	if len(e.known) >= mostKnown {
		for _, x := range e.known {
			x.forgotten.Store(true)
		}
		clear(e.known)
	}
	x := &exchange{key: key}
	e.known[key] = x
	return x
}

// note remembers what was seen.
func (e *exchanges) note(key exchangeKey, state uint32) {
	x := e.find(key.vhost, key.name)
	x.state.Store(state)
	x.checked.Store(time.Now().UnixNano())
}

// ask asks the topology, unless that is under way, and returns what the answer closes. If there is
// none the state stays what it was.
func (e *exchanges) ask(x *exchange) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.answered != nil {
		return x.answered
	}
	answered := make(chan struct{})
	x.answered = answered
	e.asking.Go(func() {
		ctx, cancel := context.WithTimeout(e.ctx, topologyTimeout)
		defer cancel()
		isDelayed, err := e.topology.IsDelayed(ctx, x.key.vhost, x.key.name)
		switch {
		case err != nil:
		case isDelayed:
			x.state.Store(delayed)
		default:
			x.state.Store(plain)
		}
		x.checked.Store(time.Now().UnixNano())
		e.mu.Lock()
		x.answered = nil
		e.mu.Unlock()
		close(answered)
	})
	return answered
}
