package definitions

import (
	"fmt"
	"maps"
	"slices"

	"github.com/duepost/duepost/internal/broker"
)

// Site is what definitions are taken from and brought into.
type Site struct {
	Broker  *broker.Broker
	Version string // of the product, which an export names
}

// Import brings in a file about everything. Its error is Faults if the file is at fault, and then
// nothing was done. different says of each thing that was there before how it differs from the
// file: it stays as it is.
func Import(s Site, file []byte) (different []error, err error) {
	c := checker{reader: new(reader), site: s}
	c.doc = c.parse(file)
	return c.bringIn()
}

// ImportVHost is Import for a file about one virtual host, as ExportVHost makes it.
func ImportVHost(s Site, v *broker.VHost, file []byte) (different []error, err error) {
	c := checker{reader: new(reader), site: s}
	c.doc = c.parseVHost(v.Name(), file)
	return c.bringIn()
}

// bringIn checks the document and makes what it says.
func (c *checker) bringIn() (different []error, err error) {
	c.check()
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	declared := c.doc.declarations()
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		v := c.site.Broker.VHost(name)
		if v == nil {
			return different, fmt.Errorf("import definitions: virtual host '%s' is gone", name)
		}
		more, err := v.Declare(declared[name])
		different = append(different, more...)
		if err != nil {
			return different, fmt.Errorf("import definitions of virtual host '%s': %w", name, err)
		}
	}
	for _, p := range c.doc.GlobalParameters {
		if err := c.site.Broker.SetGlobalParameter(broker.Parameter{Name: p.Name, Value: p.Value}); err != nil {
			return different, fmt.Errorf("import global parameter %s: %w", p.Name, err)
		}
	}
	return different, nil
}

// declarations returns what the document says of each virtual host.
func (d *Document) declarations() map[string]*broker.Declarations {
	all := make(map[string]*broker.Declarations)
	in := func(vhost string) *broker.Declarations {
		if all[vhost] == nil {
			all[vhost] = new(broker.Declarations)
		}
		return all[vhost]
	}
	for i := range d.Parameters {
		p := &d.Parameters[i]
		v := in(p.VHost)
		if p.policy != nil {
			v.OperatorPolicies = append(v.OperatorPolicies, p.policy.policy())
			continue
		}
		v.Parameters = append(v.Parameters, broker.Parameter{Component: p.Component, Name: p.Name, Value: p.Value})
	}
	for i := range d.Policies {
		v := in(d.Policies[i].VHost)
		v.Policies = append(v.Policies, d.Policies[i].policy())
	}
	for i := range d.Exchanges {
		if x := &d.Exchanges[i]; !broker.IsPredeclared(x.Name) {
			v := in(x.VHost)
			v.Exchanges = append(v.Exchanges, x.spec())
		}
	}
	for i := range d.Queues {
		v := in(d.Queues[i].VHost)
		v.Queues = append(v.Queues, d.Queues[i].spec())
	}
	for i := range d.Bindings {
		v := in(d.Bindings[i].VHost)
		v.Bindings = append(v.Bindings, *d.Bindings[i].spec())
	}
	return all
}
