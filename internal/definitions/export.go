package definitions

import (
	"encoding/json"
	"fmt"

	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/policy"
)

// rabbitVersion is the version of RabbitMQ whose form a document has. RabbitMQ reads from it how
// passwords without a named algorithm are hashed.
const rabbitVersion = "3.10.8"

// Export returns a document about everything.
func Export(s Site) (*Document, error) {
	d := &Document{
		RabbitVersion: rabbitVersion, RabbitMQVersion: rabbitVersion,
		ProductName: "Duepost", ProductVersion: s.Version,
		Users: []User{}, VHosts: []VHost{}, Permissions: []Permission{}, TopicPermissions: []TopicPermission{},
		Parameters: []Parameter{}, GlobalParameters: []GlobalParameter{}, Topology: newTopology(),
	}
	for _, v := range s.Broker.VHosts() {
		d.VHosts = append(d.VHosts, vhostOf(v))
		declared, parameters, err := declarationsOf(v)
		if err != nil {
			return nil, err
		}
		d.Parameters = append(d.Parameters, parameters...)
		d.Topology.add(v.Name(), v.Name(), declared)
	}
	d.addRecords(s.Users.Records())
	for _, p := range s.Broker.GlobalParameters() {
		d.GlobalParameters = append(d.GlobalParameters, GlobalParameter{Name: p.Name, Value: p.Value})
	}
	return d, nil
}

// ExportVHost returns a document about what is in one virtual host.
func ExportVHost(v *broker.VHost) (*VHostDocument, error) {
	declared, parameters, err := declarationsOf(v)
	if err != nil {
		return nil, err
	}
	d := &VHostDocument{RabbitVersion: rabbitVersion, Parameters: parameters, Topology: newTopology()}
	d.Topology.add(v.Name(), "", declared)
	return d, nil
}

// declarationsOf returns what is in a virtual host, its parameters apart.
func declarationsOf(v *broker.VHost) (*broker.Declarations, []Parameter, error) {
	declared := v.Declarations()
	if err := checkText(v.Name(), &declared); err != nil {
		return nil, nil, err
	}
	parameters, err := parametersOf(v.Name(), &declared)
	return &declared, parameters, err
}

// newTopology returns one without anything, in which lists are empty and not null.
func newTopology() Topology {
	return Topology{Policies: []Policy{}, Queues: []Queue{}, Exchanges: []Exchange{}, Bindings: []Binding{}}
}

// add adds what a virtual host has. Queues, exchanges and bindings name it as within.
func (t *Topology) add(vhost, within string, d *broker.Declarations) {
	for _, p := range d.Policies {
		t.Policies = append(t.Policies, policyOf(vhost, p))
	}
	for i := range d.Queues {
		t.Queues = append(t.Queues, queueOf(within, &d.Queues[i]))
	}
	for i := range d.Exchanges {
		t.Exchanges = append(t.Exchanges, exchangeOf(within, &d.Exchanges[i]))
	}
	for i := range d.Bindings {
		t.Bindings = append(t.Bindings, bindingOf(within, &d.Bindings[i]))
	}
}

// Parameters returns the parameters of a virtual host: its limits and operator policies.
func Parameters(v *broker.VHost) ([]Parameter, error) {
	_, parameters, err := declarationsOf(v)
	return parameters, err
}

// parametersOf returns the parameters among the declarations of a virtual host.
func parametersOf(vhost string, d *broker.Declarations) ([]Parameter, error) {
	all := []Parameter{}
	if len(d.Limits) > 0 {
		value, err := json.Marshal(d.Limits)
		if err != nil {
			return nil, fmt.Errorf("encode limits: %w", err)
		}
		all = append(all, Parameter{Value: value, VHost: vhost, Component: vhostLimits, Name: "limits"})
	}
	for _, p := range d.OperatorPolicies {
		value, err := json.Marshal(policyValue{p.ApplyTo, p.Definition, p.Pattern, p.Priority})
		if err != nil {
			return nil, fmt.Errorf("encode operator policy %s: %w", p.Name, err)
		}
		all = append(all, Parameter{Value: value, VHost: vhost, Component: operatorPolicy, Name: p.Name})
	}
	return all, nil
}

// policyValue is a policy as a parameter has it.
type policyValue struct {
	ApplyTo    string            `json:"apply-to"`
	Definition policy.Definition `json:"definition"`
	Pattern    string            `json:"pattern"`
	Priority   float64           `json:"priority"`
}
