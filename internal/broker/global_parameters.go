package broker

import (
	"cmp"
	"slices"
	"sync"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// GlobalParameter is a value by name that is kept for operators and their tools. The broker does
// not look into it. Name is a short string. [rmq parameters]
type GlobalParameter struct {
	Name  string
	Value []byte // not to be changed
}

// globals are the global parameters by name.
type globals struct {
	mu     sync.RWMutex // guards values; held while a change is given to the store
	values map[string][]byte
}

// SetGlobalParameter keeps a global parameter, in place of one of that name. It is durable when
// SetGlobalParameter returns.
func (b *Broker) SetGlobalParameter(p GlobalParameter) error {
	var batch store.Batch
	batch.Put(definitionKey(globalPrefix, p.Name), amqp.AppendLongStr([]byte{definitionVersion}, p.Value))
	return b.changeGlobals(&batch, func() { b.globals.values[p.Name] = p.Value })
}

// DeleteGlobalParameter deletes a global parameter and reports whether there was one.
func (b *Broker) DeleteGlobalParameter(name string) (existed bool, err error) {
	var batch store.Batch
	batch.Delete(definitionKey(globalPrefix, name))
	err = b.changeGlobals(&batch, func() {
		_, existed = b.globals.values[name]
		delete(b.globals.values, name)
	})
	return existed, err
}

// changeGlobals stores a change and makes it.
func (b *Broker) changeGlobals(batch *store.Batch, change func()) error {
	b.globals.mu.Lock()
	lsn, err := b.store.Commit(batch)
	if err == nil {
		change()
	}
	b.globals.mu.Unlock()
	if err != nil {
		return b.waited(err)
	}
	return b.wait(lsn)
}

// GlobalParameters returns the global parameters in the order of names.
func (b *Broker) GlobalParameters() []GlobalParameter {
	b.globals.mu.RLock()
	defer b.globals.mu.RUnlock()
	all := make([]GlobalParameter, 0, len(b.globals.values))
	for name, value := range b.globals.values {
		all = append(all, GlobalParameter{name, value})
	}
	slices.SortFunc(all, func(a, b GlobalParameter) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func (r *recovery) globalParameter(key string, d *definition) error {
	d.version()
	k := definition{rest: []byte(key)}
	r.broker.globals.values[k.name()] = []byte(d.text())
	return nil
}
