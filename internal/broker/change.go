package broker

import "github.com/duepost/duepost/internal/store"

// change gathers what goes when something is deleted: a queue's bindings, an exchange's
// bindings in both directions, and auto-delete exchanges that lose their last binding by it,
// and so on. First all of it is found, then stored as one atomic group, then done.
type change struct {
	bindings  map[*binding]struct{}
	exchanges map[*Exchange]struct{}
	queues    map[*Queue]struct{}
	batch     store.Batch // what else is stored with it
}

func (c *change) removeExchange(x *Exchange) {
	if _, ok := c.exchanges[x]; ok {
		return
	}
	if c.exchanges == nil {
		c.exchanges = make(map[*Exchange]struct{})
	}
	c.exchanges[x] = struct{}{}
	for _, b := range x.outgoing {
		c.removeBinding(b)
	}
	for _, b := range x.incoming {
		c.removeBinding(b)
	}
}

func (c *change) removeQueue(q *Queue) {
	if c.queues == nil {
		c.queues = make(map[*Queue]struct{})
	}
	c.queues[q] = struct{}{}
	for _, b := range q.bindings {
		c.removeBinding(b)
	}
}

// removeBinding takes a binding away, and with it its source if that goes with its last one.
func (c *change) removeBinding(b *binding) {
	if _, ok := c.bindings[b]; ok {
		return
	}
	if c.bindings == nil {
		c.bindings = make(map[*binding]struct{})
	}
	c.bindings[b] = struct{}{}
	if b.source.autoDelete && c.isLast(b.source) {
		c.removeExchange(b.source)
	}
}

// isLast reports whether the change takes the last binding from an exchange that it leaves.
func (c *change) isLast(x *Exchange) bool {
	if _, ok := c.exchanges[x]; ok {
		return false
	}
	for _, b := range x.outgoing {
		if _, ok := c.bindings[b]; !ok {
			return false
		}
	}
	return true
}

// applyLocked stores the change and makes it.
func (v *VHost) applyLocked(c *change) (store.LSN, error) {
	batch := &c.batch
	for b := range c.bindings {
		if b.durable {
			batch.Delete(bindingDefinition(v.name, &b.bindingKey))
		}
	}
	pending := make(map[*Exchange]uint64)
	var remains []*Exchange
	for x := range c.exchanges {
		x.forget(batch)
		switch r := x.remains(); {
		case !x.delayed:
		case r != nil && r.pending().Count > 0 && !v.deleted.Load():
			r.defineRemains(batch)
			remains = append(remains, r)
		default:
			x.dropPending(batch)
			pending[x] = x.pending().Count
		}
	}
	for q := range c.queues {
		if q.logged {
			batch.Delete(queueDefinition(v.name, q.name))
			batch.DropQueue(q.id)
			q.forgetLevels(batch)
			q.forgetCounts(batch)
		}
	}
	var lsn store.LSN
	if batch.Len() > 0 {
		var err error
		if lsn, err = v.broker.store.Commit(batch); err != nil {
			return 0, v.broker.waited(err)
		}
	}
	for b := range c.bindings {
		b.unlink()
	}
	for x := range c.exchanges {
		delete(v.exchanges, x.name)
		if x.delayed {
			v.broker.removeDelayed(x)
		}
	}
	for _, r := range remains {
		v.addRemainsLocked(r)
	}
	v.noteDropped(pending)
	for q := range c.queues {
		delete(v.queues, q.name)
		v.broker.removeQueue(q)
		if q.owner != nil {
			delete(q.owner.exclusive, q)
		}
	}
	v.changedLocked()
	return lsn, nil
}

// noteDropped counts and logs what waited in exchanges that were deleted.
func (v *VHost) noteDropped(pending map[*Exchange]uint64) {
	for x, n := range pending {
		if n > 0 {
			v.broker.counters.delayedDropped.Add(n)
			v.broker.log.Info("delayed messages dropped with their exchange",
				"vhost", v.name, "exchange", x.name, "n", n)
		}
	}
}

// forget puts the end of an exchange into a batch.
func (x *Exchange) forget(batch *store.Batch) {
	if x.durable {
		batch.Delete(exchangeDefinition(x.vhost.name, x.name))
	} else if x.delayed {
		batch.Delete(orphanDefinition(x.id))
	}
}

// dropPending puts the end of all that waits in an exchange into a batch.
func (x *Exchange) dropPending(batch *store.Batch) {
	batch.DropExchange(x.id)
	batch.DropExchange(x.id | historyBit)
}

// link makes a binding known at both its ends.
func (b *binding) link() {
	b.source.outgoing[b.bindingKey] = b
	b.source.table.Store(nil)
	if b.queue != nil {
		b.queue.bindings[b.bindingKey] = b
	} else {
		b.exchange.incoming[b.bindingKey] = b
	}
}

func (b *binding) unlink() {
	delete(b.source.outgoing, b.bindingKey)
	b.source.table.Store(nil)
	if b.queue != nil {
		delete(b.queue.bindings, b.bindingKey)
	} else {
		delete(b.exchange.incoming, b.bindingKey)
	}
}
