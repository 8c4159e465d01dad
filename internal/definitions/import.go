package definitions

import (
	"fmt"
	"maps"
	"slices"

	"github.com/duepost/duepost/internal/auth"
	"github.com/duepost/duepost/internal/broker"
)

// Site is what definitions are taken from and brought into.
type Site struct {
	Broker  *broker.Broker
	Users   *auth.Users
	Version string // of the product, which an export names
	// User imports, and may then do everything in virtual hosts that were not there before, as
	// far as the file does not say otherwise. Empty is nobody. [rmq definitions]
	User string
}

// Import brings in a file about everything. Its error is Faults if the file is at fault, and then
// nothing was done. notes are for the operator: of what was there before and is left as it is, how
// it differs from the file.
func Import(s Site, file []byte) (notes []error, err error) {
	c := checker{reader: new(reader), site: s}
	c.doc = c.parse(file)
	return c.bringIn()
}

// ImportVHost is Import for a file about one virtual host, as ExportVHost makes it.
func ImportVHost(s Site, v *broker.VHost, file []byte) (notes []error, err error) {
	c := checker{reader: new(reader), site: s}
	c.doc = c.parseVHost(v.Name(), file)
	return c.bringIn()
}

// bringIn checks the document and makes what it says.
func (c *checker) bringIn() (notes []error, err error) {
	c.check()
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	// 1. Virtual hosts, before those who may enter them.
	made, err := c.putVHosts()
	if err != nil {
		return nil, fmt.Errorf("import virtual hosts: %w", err)
	}
	// 2. Users and permissions, all at once.
	if err := c.putRecords(made); err != nil {
		return nil, fmt.Errorf("import users: %w", err)
	}
	// 3. What is in each virtual host, all at once.
	declared := c.doc.declarations()
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		v := c.site.Broker.VHost(name)
		if v == nil {
			return notes, fmt.Errorf("import virtual host '%s': it was deleted meanwhile", name)
		}
		different, err := v.Declare(declared[name])
		notes = append(notes, different...)
		if err != nil {
			return notes, fmt.Errorf("import virtual host '%s': %w", name, err)
		}
	}
	// 4. The rest.
	for _, p := range c.doc.GlobalParameters {
		if err := c.site.Broker.SetGlobalParameter(broker.GlobalParameter{Name: p.Name, Value: p.Value}); err != nil {
			return notes, fmt.Errorf("import global parameter %s: %w", p.Name, err)
		}
	}
	return notes, nil
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
		v.Limits = p.limits
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
