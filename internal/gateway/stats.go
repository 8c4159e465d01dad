package gateway

import "sync/atomic"

// Stats is what a gateway has done since it was made.
type Stats struct {
	// Connections is how many clients are connected now.
	Connections int
	// Opened is how many connected, Turned how many were turned away because of the limit, and
	// Unreachable how many because no broker could be reached.
	Opened, Turned, Unreachable uint64
	// Declared counts declarations of delayed exchanges, Refused the methods that the gateway had
	// the broker refuse.
	Declared, Refused uint64
	// Marked counts delayed messages whose instant of acceptance, BCC and expiration were noted,
	// Unmarked those that passed without: because the relay could not say whether their exchange
	// is delayed, or because their header would have become larger than a frame may be.
	Marked, Unmarked uint64
	// Restored counts deliveries that were given the name of their delayed exchange.
	Restored uint64
}

// stats are the counters behind Stats.
type stats struct {
	opened, turned, unreachable, declared, refused, marked, unmarked, restored atomic.Uint64
}

// Stats returns the counters.
func (g *Gateway) Stats() Stats {
	g.mu.Lock()
	connections := len(g.links)
	g.mu.Unlock()
	s := &g.stats
	return Stats{
		Connections: connections,
		Opened:      s.opened.Load(), Turned: s.turned.Load(), Unreachable: s.unreachable.Load(),
		Declared: s.declared.Load(), Refused: s.refused.Load(),
		Marked: s.marked.Load(), Unmarked: s.unmarked.Load(), Restored: s.restored.Load(),
	}
}
