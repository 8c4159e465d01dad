package httpapi

import (
	"encoding/json"
	"maps"

	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/definitions"
)

func listVHostLimits(c *call) (any, error) {
	visible, err := c.visible()
	if err != nil {
		return nil, err
	}
	all := rows{}
	for _, v := range visible {
		if limits := v.Limits(); len(limits) > 0 {
			all = append(all, object{"vhost": v.Name(), "value": limits})
		}
	}
	return all, nil
}

func putVHostLimit(c *call) (any, error) {
	var body struct {
		Value json.Number `json:"value"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	n, err := body.Value.Int64()
	if err != nil {
		return nil, badRequest("Validation failed\n\n%s should be a number, actually was '%s'\n", c.name("name"), body.Value)
	}
	return c.changeLimits(func(l broker.VHostLimits) { l[c.name("name")] = n })
}

func deleteVHostLimit(c *call) (any, error) {
	return c.changeLimits(func(l broker.VHostLimits) { delete(l, c.name("name")) })
}

func (c *call) changeLimits(change func(broker.VHostLimits)) (any, error) {
	v, err := c.vhost()
	if err != nil {
		return nil, err
	}
	limits := maps.Clone(v.Limits())
	if limits == nil {
		limits = make(broker.VHostLimits)
	}
	change(limits)
	return nil, v.SetLimits(limits)
}

// listParameters lists what RabbitMQ keeps as parameters: limits and operator policies.
func listParameters(c *call) (any, error) {
	visible, err := c.visible()
	if err != nil {
		return nil, err
	}
	all := rows{}
	for _, v := range visible {
		parameters, err := definitions.Parameters(v)
		if err != nil {
			return nil, err
		}
		for _, p := range parameters {
			if asked := c.name("component"); asked == "" || asked == p.Component {
				all = append(all, object{"vhost": p.VHost, "component": p.Component, "name": p.Name, "value": p.Value})
			}
		}
	}
	return all, nil
}

func globalObject(p *broker.GlobalParameter) object {
	return object{"name": p.Name, "value": json.RawMessage(p.Value)}
}

func listGlobalParameters(c *call) (any, error) {
	all := rows{}
	for _, p := range c.Broker.GlobalParameters() {
		all = append(all, globalObject(&p))
	}
	return all, nil
}

// global returns the parameter that the path names, or nil.
func (c *call) global() *broker.GlobalParameter {
	for _, p := range c.Broker.GlobalParameters() {
		if p.Name == c.name("name") {
			return &p
		}
	}
	return nil
}

func showGlobalParameter(c *call) (any, error) {
	p := c.global()
	if p == nil {
		return nil, notFound()
	}
	return globalObject(p), nil
}

func putGlobalParameter(c *call) (any, error) {
	var body struct {
		Value json.RawMessage `json:"value"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if len(body.Value) == 0 {
		return nil, badRequest("[{key_missing,value}]")
	}
	existed := c.global() != nil
	return madeIf(!existed), c.Broker.SetGlobalParameter(broker.GlobalParameter{Name: c.name("name"), Value: body.Value})
}

func deleteGlobalParameter(c *call) (any, error) {
	return nil, foundOr(c.Broker.DeleteGlobalParameter(c.name("name")))
}
