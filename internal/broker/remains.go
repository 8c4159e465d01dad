package broker

import (
	"slices"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// What waits in a delayed exchange normally goes with it. It stays, and with it as much of the
// exchange as its release needs, in two cases: the exchange has a dead-letter exchange, then it is
// made due at once and goes there; or the exchange does as the plugin's, then it goes when it is
// due to wherever the exchange of that name leads by then.

// remains returns what is to be kept of a delayed exchange that is deleted with something in it,
// nil if nothing is.
func (x *Exchange) remains() *Exchange {
	s := x.settings.Load()
	switch {
	case !x.delayed:
		return nil
	case s.hasDeadLetter:
		return x.vhost.newRemains(x.id, x.name, s.deadLetter, &exchangeSettings{dropsUnroutable: s.dropsUnroutable})
	case s.plugin:
		return x.vhost.newRemains(x.id, x.name, x.name, &exchangeSettings{dropsUnroutable: s.dropsUnroutable, plugin: true})
	}
	return nil
}

func (v *VHost) newRemains(id uint32, name, heir string, s *exchangeSettings) *Exchange {
	x := &Exchange{id: id, vhost: v, name: name, heir: &heir, delayed: true}
	x.settings.Store(s)
	return x
}

// isEvacuated reports whether what waits there does not wait any longer.
func (x *Exchange) isEvacuated() bool { return x.heir != nil && !x.isPlugin() }

// releases returns the exchange by whose bindings a message that waited here goes on, or nil.
func (x *Exchange) releases() *Exchange {
	if x.heir == nil {
		return x
	}
	return x.vhost.exchange(*x.heir)
}

// Flags of the definition of remains.
const (
	flagDropsUnroutable = 1 << 0
	flagPlugin          = 1 << 1
)

// defineRemains puts the definition of what is kept into a batch.
func (x *Exchange) defineRemains(b *store.Batch) {
	s := x.settings.Load()
	var flags byte
	if s.dropsUnroutable {
		flags |= flagDropsUnroutable
	}
	if s.plugin {
		flags |= flagPlugin
	}
	value := amqp.AppendShortStr([]byte{definitionVersion, flags}, x.name)
	b.Put(remnantDefinition(x.vhost.name, x.id), amqp.AppendShortStr(value, *x.heir))
}

// addRemainsLocked makes known what is kept of an exchange, and forgets where nothing waits any more.
func (v *VHost) addRemainsLocked(x *Exchange) {
	var b store.Batch
	v.forgetRemainsLocked(&b, func(old *Exchange) bool { return old.pending().Count == 0 })
	if b.Len() > 0 {
		_, err := v.broker.store.Commit(&b) // else the next start does it
		v.broker.logIfFailed("forget deleted exchanges", err)
	}
	v.remains = append(v.remains, x)
	v.broker.addDelayed(x)
	if x.isEvacuated() {
		v.broker.evacuation.add(x)
		v.broker.log.Info("delayed messages of a deleted exchange are dead-lettered",
			"vhost", v.name, "exchange", x.name, "n", x.pending().Count)
	}
}

// forgetRemainsLocked takes away what was kept of exchanges, as far as it is past.
func (v *VHost) forgetRemainsLocked(b *store.Batch, past func(*Exchange) bool) {
	v.remains = slices.DeleteFunc(v.remains, func(x *Exchange) bool {
		if !past(x) {
			return false
		}
		b.Delete(remnantDefinition(v.name, x.id))
		x.dropPending(b)
		v.broker.removeDelayed(x)
		return true
	})
}

// pendingInRemainsLocked is what waits for an exchange of that name without being in it.
func (v *VHost) pendingInRemainsLocked(name string) (p store.Pending) {
	for _, x := range v.remains {
		if *x.heir == name && !x.isEvacuated() {
			kept := x.pending()
			p.Count, p.Bytes = p.Count+kept.Count, p.Bytes+kept.Bytes
		}
	}
	return p
}

// remnant brings back what was kept of a deleted exchange.
func (r *recovery) remnant(key string, d *definition) error {
	v, k, err := r.owner(key)
	if err != nil {
		return err
	}
	id := k.uint32()
	d.version()
	flags := d.byte()
	s := &exchangeSettings{dropsUnroutable: flags&flagDropsUnroutable != 0, plugin: flags&flagPlugin != 0}
	name := d.name()
	x := v.newRemains(id, name, d.name(), s)
	d.bad = d.bad || k.bad
	if x.pending().Count == 0 {
		r.batch.Delete(remnantPrefix + key)
		return nil
	}
	v.addRemainsLocked(x)
	return nil
}
