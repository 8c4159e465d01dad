package broker

import (
	"errors"
	"fmt"
	"strings"

	"github.com/duepost/duepost/internal/policy"
	"github.com/duepost/duepost/internal/store"
)

// recover rebuilds everything from what the store found. Definitions come in key order, which is
// not the order they depend on each other in, so each kind has a pass of its own.
func (b *Broker) recover(found *store.Recovery) error {
	if found == nil {
		found = new(store.Recovery)
	}
	r := recovery{broker: b, definitions: found.Definitions, delivered: make(map[uint32][]uint64),
		counts: make(map[uint32]map[uint64][]byte)}
	passes := [...]struct {
		prefix string
		take   func(key string, d *definition) error
	}{
		{idDefinition, r.id},
		{vhostPrefix, r.vhost},
		{policyPrefix, r.policy},
		{operatorPrefix, r.operatorPolicy},
		{limitsPrefix, r.vhostLimits},
		{globalPrefix, r.globalParameter},
		{exchangePrefix, r.exchange},
		{queuePrefix, r.queue},
		{parkPrefix, r.parking},
		{bindingPrefix, r.binding},
		{orphanPrefix, r.orphan},
		{remnantPrefix, r.remnant},
		{cleanPrefix, r.clean},
		{levelPrefix, r.level},
		{countPrefix, r.count},
	}
	for _, p := range passes {
		if err := r.pass(p.prefix, p.take); err != nil {
			return err
		}
	}
	if len(b.vhosts) == 0 {
		r.addVHost("/")
		r.batch.Put(vhostDefinition("/"), []byte{definitionVersion})
	}
	for _, v := range b.vhosts {
		v.applyPoliciesLocked() // to the exchanges that came before the policies
	}
	for _, q := range found.Queues {
		if err := r.messages(found, q); err != nil {
			return fmt.Errorf("read messages of queues: %w", err)
		}
	}
	r.endCounts()
	for _, q := range b.queues {
		q.resumeLevels()
	}
	if len(r.delivered) == 0 { // there was no orderly stop
		b.release.doubtful = b.nowMillis()
	}
	// Durable before anything is delivered: a mark of a clean stop must not be found twice.
	lsn, err := b.store.Commit(&r.batch)
	if err == nil {
		err = b.wait(lsn)
	}
	if err != nil {
		return fmt.Errorf("drop what is past: %w", err)
	}
	b.log.Info("recovered", "vhosts", len(b.vhosts), "queues", len(b.queues), "messages", r.restored)
	return nil
}

// recovery is a start under way.
type recovery struct {
	broker      *Broker
	definitions []store.Definition
	delivered   map[uint32][]uint64          // by queue id, see clean
	counts      map[uint32]map[uint64][]byte // by queue id and number of a chunk, see count
	batch       store.Batch                  // what is to be forgotten
	piece       [4096]store.Entry
	restored    int
	roomless    bool // the scratch file cannot be written, and this was logged
}

// pass gives the definitions with a prefix to take: their key without the prefix, and the value.
func (r *recovery) pass(prefix string, take func(key string, d *definition) error) error {
	for _, def := range r.definitions {
		key, ok := strings.CutPrefix(def.Key, prefix)
		if !ok {
			continue
		}
		d := &definition{rest: def.Value}
		if err := take(key, d); err != nil {
			return fmt.Errorf("definition %q: %w", def.Key, err)
		}
		if d.bad {
			return fmt.Errorf("definition %q: %w", def.Key, errDefinition)
		}
	}
	return nil
}

// id starts a new block, so that ids taken before a crash are never taken again.
func (r *recovery) id(_ string, d *definition) error {
	d.version()
	end := d.uint32()
	r.broker.ids.next, r.broker.ids.end = end, end
	return nil
}

func (r *recovery) vhost(key string, d *definition) error {
	d.version()
	k := definition{rest: []byte(key)}
	r.addVHost(k.name()).metadata.Store(d.vhost())
	d.bad = d.bad || k.bad
	return nil
}

func (r *recovery) addVHost(name string) *VHost {
	v := newVHost(r.broker, name)
	v.addPredeclared()
	r.broker.vhosts[name] = v
	return v
}

func (r *recovery) policy(key string, d *definition) error {
	v, k, err := r.owner(key)
	if err != nil {
		return err
	}
	return v.policies.restore(k.name(), d)
}

func (r *recovery) operatorPolicy(key string, d *definition) error {
	v, k, err := r.owner(key)
	if err != nil {
		return err
	}
	return v.operatorPolicies.restore(k.name(), d)
}

func (l *policyList) restore(name string, d *definition) (err error) {
	d.version()
	l.List, err = l.With(&policy.Policy{
		Name:       name,
		Priority:   d.float(),
		ApplyTo:    d.name(),
		Pattern:    d.text(),
		Definition: policy.Definition(d.arguments()),
	})
	return err
}

func (r *recovery) exchange(key string, d *definition) error {
	v, k, err := r.owner(key)
	if err != nil {
		return err
	}
	d.version()
	flags := d.byte()
	id := d.uint32()
	spec := ExchangeSpec{
		Name:       k.name(),
		Durable:    true,
		AutoDelete: flags&flagAutoDelete != 0,
		Internal:   flags&flagInternal != 0,
		Type:       d.name(),
	}
	spec.Args = d.arguments()
	kind, err := exchangeKindOf(&spec, v.name)
	if err != nil {
		return err
	}
	x := newExchange(v, &spec, kind)
	x.id = id
	v.addExchangeLocked(x)
	return nil
}

func (r *recovery) queue(key string, d *definition) error {
	v, k, err := r.owner(key)
	if err != nil {
		return err
	}
	d.version()
	flags := d.byte()
	id := d.uint32()
	q := newQueue(v, &QueueSpec{
		Name:       k.name(),
		Durable:    true,
		AutoDelete: flags&flagAutoDelete != 0,
		Args:       d.arguments(),
	})
	q.id = id
	v.addQueueLocked(q)
	return nil
}

func (r *recovery) parking(key string, d *definition) error {
	v, k, err := r.owner(key)
	if err != nil {
		return err
	}
	d.version()
	v.addParkingLocked(k.name(), d.uint32())
	return nil
}

func (r *recovery) binding(key string, d *definition) error {
	v, k, err := r.owner(key)
	if err != nil {
		return err
	}
	d.version()
	b := bindingKey{source: k.name(), toExchange: k.byte() == 'x', destination: k.name()}
	b.routingKey = d.name()
	args := d.arguments()
	if b.args, err = encodeArguments(args); err != nil {
		return err
	}
	made, err := v.newBindingLocked(nil, b, args)
	if err != nil { // an end is gone: nothing depends on the binding any more
		r.broker.log.Warn("binding dropped", "vhost", v.name, "exchange", b.source,
			"queue", b.destination, "err", err)
		r.batch.Delete(bindingPrefix + key)
		return nil
	}
	made.link()
	return nil
}

// owner reads the virtual host that a key begins with.
func (r *recovery) owner(key string) (*VHost, *definition, error) {
	k := &definition{rest: []byte(key)}
	v := r.broker.vhosts[k.name()]
	if v == nil {
		return nil, nil, fmt.Errorf("unknown virtual host: %w", errDefinition)
	}
	return v, k, nil
}

// orphan drops what waited in a delayed exchange that did not outlive the process.
func (r *recovery) orphan(key string, d *definition) error {
	k := definition{rest: []byte(key)}
	id := k.uint32()
	n := r.broker.store.Pending(id).Count + r.broker.store.Pending(id|historyBit).Count
	r.batch.DropExchange(id)
	r.batch.DropExchange(id | historyBit)
	r.batch.Delete(orphanPrefix + key)
	r.broker.counters.orphans.Add(n)
	d.bad = k.bad
	return nil
}

// clean reads up to where a queue's messages had been delivered at an orderly stop.
func (r *recovery) clean(key string, d *definition) error {
	k := definition{rest: []byte(key)}
	d.version()
	positions := []uint64{d.position()}
	for len(d.rest) > 0 && !d.bad {
		positions = append(positions, d.position())
	}
	r.delivered[k.uint32()] = positions
	r.batch.Delete(cleanPrefix + key)
	return nil
}

// level reads up to where positions of a priority may have been handed out.
func (r *recovery) level(key string, d *definition) error {
	k := definition{rest: []byte(key)}
	d.version()
	id, priority, end := k.uint32(), int(k.byte()), d.position()
	q := r.broker.queues[id]
	if q == nil || priority >= len(q.index.levels) {
		r.batch.Delete(levelPrefix + key)
		return nil
	}
	q.index.levels[priority].end.Store(end)
	return nil
}

// messages puts the messages of a queue back. After a crash nobody knows which were delivered
// before, so all are marked redelivered. [amqp basic.deliver]
func (r *recovery) messages(found *store.Recovery, f store.RecoveredQueue) error {
	q := r.broker.queues[f.ID]
	if q == nil {
		r.batch.DropQueue(f.ID)
	}
	for {
		n, err := found.Entries(f.ID, r.piece[:])
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		if q != nil {
			r.restore(q, r.piece[:n])
			continue
		}
		for _, e := range r.piece[:n] {
			r.broker.store.Drop(e.Ref)
		}
		r.broker.counters.orphans.Add(uint64(n))
	}
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.index.levels == nil {
		q.next.Store(q.index.resume(f.Next))
	}
	q.armLocked()
	return nil
}

// restore puts messages back and keeps what queues take in memory within its budget.
func (r *recovery) restore(q *Queue, entries []store.Entry) {
	q.mu.Lock()
	delivered := r.delivered[q.id]
	for i := range entries {
		f := &entries[i]
		e := newEntry(f.Ref, int(max(f.Ref.Len, f.Body)), f.Arrived, flagLogged)
		if wasDelivered(f.Pos, delivered) {
			e.set(flagRedelivered)
			q.noteDeliveredLocked(f.Pos)
		}
		e.meta |= r.countOf(q, f.Pos)
		q.index.restore(f.Pos, e)
		q.restoreExpiryLocked(f)
	}
	q.listLocked(entries[len(entries)-1].Pos)
	q.mu.Unlock()
	r.restored += len(entries)
	if err := r.broker.pager.makeRoom(); err != nil && !r.roomless {
		r.roomless = true
		r.broker.log.Warn("entries of queues stay in memory: cannot write scratch file", "err", err)
	}
}

// restoreExpiryLocked arranges for the end of a restored message's time. A TTL of 0 ended before.
func (q *Queue) restoreExpiryLocked(f *store.Entry) {
	s := q.settings.Load()
	if f.TTL >= 0 {
		q.noteExpiryLocked(f.Pos, f.Arrived+f.TTL)
	}
	if s.ttl >= 0 && f.Arrived < q.newest-clockSlack {
		q.noteDisorderLocked(f.Pos, f.Arrived+s.ttl)
	}
	q.newest = max(q.newest, f.Arrived)
}

// noteCleanStop stores, per queue, up to where its messages were delivered, so that after the
// start those behind are not marked redelivered.
func (b *Broker) noteCleanStop() error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var batch store.Batch
	for id, q := range b.queues {
		batch.Put(cleanDefinition(id), encodePositions(q.deliveredUpTo()))
	}
	lsn, err := b.store.Commit(&batch)
	switch {
	case errors.Is(err, store.ErrFull):
		b.log.Warn("all messages will be marked redelivered after the start", "err", err)
		return nil
	case err != nil:
		return fmt.Errorf("note clean stop: %w", err)
	}
	return b.wait(lsn)
}

// wasDelivered reports whether a message may have been delivered before the start, by what was
// noted at an orderly stop; nil if there was none.
func wasDelivered(pos uint64, upTo []uint64) bool {
	p := priorityOf(pos)
	return p >= len(upTo) || withoutPriority(pos) < upTo[p]
}

// deliveredUpTo returns, for each priority, a position such that nothing from there on was
// delivered before.
func (q *Queue) deliveredUpTo() []uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.index.levels == nil {
		return []uint64{q.delivered}
	}
	upTo := make([]uint64, len(q.index.levels))
	for i := range upTo {
		upTo[i] = q.index.levels[i].delivered
	}
	return upTo
}
