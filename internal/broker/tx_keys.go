package broker

import (
	"bytes"
	"slices"

	"github.com/duepost/duepost/internal/store"
)

// txKeyed is a message with a key in a transaction.
type txKeyed struct {
	source   *txMessage
	exchange *Exchange
	key      []byte
	hash     uint64
	cancel   bool
	due      int64
	message  store.Message // its own

	swap   *txSwap
	within bool // it takes out one of the same transaction
}

// txSwap is what a transaction does under one key: of its own messages the last one
// stands, and all that waited before goes.
type txSwap struct {
	exchange    *Exchange
	key         []byte
	hash        uint64
	first, last int      // batch.Outcomes[first:last] are those of what waited
	stands      *txKeyed // nil = nothing
	cancelled   bool
}

// holdKeyed notes a message that waits in an exchange.
func (c *txCommit) holdKeyed(x *Exchange, t *txMessage, m *store.Message) {
	p := c.publisher
	d := &p.route.delay
	k := txKeyed{
		source: t, exchange: x, key: bytes.Clone(d.Key), hash: keyHash(x.id, d.Key),
		cancel: d.Cancel, due: p.dueOf(), message: *m,
	}
	k.message.Props = bytes.Clone(m.Props)
	k.message.KeyHash = k.hash
	c.keyed = append(c.keyed, k)
}

// resolveKeys takes the turns of all keys, and puts into the group what of all this
// stands in the end.
func (c *txCommit) resolveKeys() error {
	if len(c.keyed) == 0 {
		return nil
	}
	hashes := make([]uint64, len(c.keyed))
	for i := range c.keyed {
		hashes[i] = c.keyed[i].hash
	}
	slices.Sort(hashes)
	for _, hash := range slices.Compact(hashes) {
		c.broker.turns.take(hash)
		c.turns = append(c.turns, hash)
	}
	for i := range c.keyed {
		k := &c.keyed[i]
		k.swap = c.swapOf(k)
		k.within = k.swap.stands != nil
		k.swap.stands = k
		if k.cancel {
			k.swap.stands = nil
		}
	}
	cancels := 0
	for _, s := range c.swaps {
		old, err := c.publisher.findKey(s.exchange, s.hash, s.key, nil)
		if err != nil {
			return err
		}
		s.first, s.last = cancels, cancels+len(old)
		cancels = s.last
		for _, key := range old {
			c.group.batch.Cancel(key)
			c.earliest = min(c.earliest, key.Due)
		}
		if s.stands != nil {
			c.group.hold(&s.stands.message, s.stands.due)
		}
	}
	return nil
}

func (c *txCommit) swapOf(k *txKeyed) *txSwap {
	name := swapName{k.exchange, string(k.key)}
	s := c.byKey[name]
	if s == nil {
		s = &txSwap{exchange: k.exchange, key: k.key, hash: k.hash}
		if c.byKey == nil {
			c.byKey = make(map[swapName]*txSwap)
		}
		c.byKey[name] = s
		c.swaps = append(c.swaps, s)
	}
	return s
}

type swapName struct {
	exchange *Exchange
	key      string
}

func (c *txCommit) giveTurns() {
	for _, hash := range c.turns {
		c.broker.turns.give(hash)
	}
	c.turns = nil
}

// noteKeys tells the engine what was taken out, and finds the mandatory messages that
// found nothing to take out. Of several cancels of one key the first takes out what
// waited.
func (c *txCommit) noteKeys() {
	n := 0
	for _, s := range c.swaps {
		for _, out := range c.group.batch.Outcomes[s.first:s.last] {
			if out == store.Cancelled {
				n++
				s.cancelled = true
			}
		}
	}
	if n > 0 {
		c.broker.engine.Cancelled(n, c.earliest)
	}
	for i := 0; i < len(c.keyed); {
		first, found := &c.keyed[i], false
		for ; i < len(c.keyed) && c.keyed[i].source == first.source; i++ {
			k := &c.keyed[i]
			found = found || k.within || k.swap.cancelled
			k.swap.cancelled = false
		}
		if first.cancel && !found && first.source.mandatory {
			r := first.source.returned()
			r.NotPending = true
			c.returned = append(c.returned, r)
		}
	}
}
