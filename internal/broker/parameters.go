package broker

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// Parameter is a value that is kept for a component, such as "vhost-limits". The broker does not
// look into it. Component and Name are short strings. [rmq parameters]
type Parameter struct {
	Component string
	Name      string
	Value     []byte // not to be changed
}

func (p *Parameter) key() parameterKey { return parameterKey{p.Component, p.Name} }

type parameterKey struct{ component, name string }

// parameters are those of a virtual host or, without components, of the broker.
type parameters map[parameterKey]Parameter

// list returns them in the order of component and name.
func (p parameters) list() []Parameter {
	return slices.SortedFunc(maps.Values(p), func(a, b Parameter) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Name, b.Name))
	})
}

// with returns the parameters with one more, or one in place of another.
func (p parameters) with(one Parameter) parameters {
	next := maps.Clone(p)
	if next == nil {
		next = make(parameters)
	}
	next[one.key()] = one
	return next
}

// SetParameter keeps a parameter, in place of one of the same component and name. It is durable
// when SetParameter returns.
func (v *VHost) SetParameter(p Parameter) error {
	_, err := v.Declare(&Declarations{Parameters: []Parameter{p}})
	return err
}

// DeleteParameter deletes a parameter and reports whether there was one.
func (v *VHost) DeleteParameter(component, name string) (existed bool, err error) {
	var b store.Batch
	b.Delete(definitionKey(parameterPrefix, v.name, component, name))
	v.mu.Lock()
	lsn, err := v.broker.store.Commit(&b)
	if err == nil {
		_, existed = v.parameters[parameterKey{component, name}]
		delete(v.parameters, parameterKey{component, name})
	}
	v.mu.Unlock()
	if err != nil {
		return false, v.broker.waited(err)
	}
	return existed, v.broker.wait(lsn)
}

// Parameters returns the parameters of the virtual host.
func (v *VHost) Parameters() []Parameter {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.parameters.list()
}

// globals are the parameters that belong to no virtual host.
type globals struct {
	mu  sync.RWMutex // guards all; held while a change is given to the store
	all parameters
}

// SetGlobalParameter keeps a parameter that belongs to no virtual host; it has no component. It is
// durable when SetGlobalParameter returns.
func (b *Broker) SetGlobalParameter(p Parameter) error {
	p.Component = ""
	var batch store.Batch
	batch.Put(definitionKey(globalPrefix, p.Name), encodeParameter(&p))
	return b.changeGlobals(&batch, func() { b.globals.all = b.globals.all.with(p) })
}

// DeleteGlobalParameter deletes such a parameter and reports whether there was one.
func (b *Broker) DeleteGlobalParameter(name string) (existed bool, err error) {
	var batch store.Batch
	batch.Delete(definitionKey(globalPrefix, name))
	err = b.changeGlobals(&batch, func() {
		_, existed = b.globals.all[parameterKey{name: name}]
		delete(b.globals.all, parameterKey{name: name})
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

// GlobalParameters returns the parameters that belong to no virtual host.
func (b *Broker) GlobalParameters() []Parameter {
	b.globals.mu.RLock()
	defer b.globals.mu.RUnlock()
	return b.globals.all.list()
}

func encodeParameter(p *Parameter) []byte {
	return amqp.AppendLongStr([]byte{definitionVersion}, p.Value)
}

// restoreParameter reads what encodeParameter wrote.
func restoreParameter(component, name string, d *definition) Parameter {
	d.version()
	return Parameter{Component: component, Name: name, Value: []byte(d.text())}
}

// parameter puts a parameter into a declaration.
func (t *declaration) parameter(p Parameter) {
	if before, ok := t.parameters[p.key()]; ok && bytes.Equal(before.Value, p.Value) {
		return
	}
	t.parameters = t.parameters.with(p)
	t.batch.Put(definitionKey(parameterPrefix, t.vhost.name, p.Component, p.Name), encodeParameter(&p))
}
