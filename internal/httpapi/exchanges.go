package httpapi

import (
	"encoding/json"

	"github.com/duepost/duepost/internal/broker"
)

func exchangeObject(vhost string, x *broker.ExchangeState) object {
	o := object{
		"name": x.Name, "vhost": vhost, "type": x.Type, "durable": x.Durable, "auto_delete": x.AutoDelete,
		"internal": x.Internal, "arguments": plainTable(x.Args),
	}
	if x.Policies.Policy != "" {
		o["policy"] = x.Policies.Policy
	}
	if x.Delayed {
		o["messages_delayed"] = x.Pending
	}
	return o
}

func listExchanges(c *call) (any, error) {
	visible, err := c.visible()
	if err != nil {
		return nil, err
	}
	all := rows{}
	for _, v := range visible {
		for _, x := range v.ExchangeStates() {
			all = append(all, exchangeObject(v.Name(), &x))
		}
	}
	return all, nil
}

// exchangeName is the name in the path: the default exchange cannot stand there by its own.
func (c *call) exchangeName(of string) string {
	if name := c.name(of); name != "amq.default" {
		return name
	}
	return ""
}

func showExchange(c *call) (any, error) {
	v, err := c.vhost()
	if err != nil {
		return nil, err
	}
	x, ok := v.ExchangeState(c.exchangeName("name"))
	if !ok {
		return nil, notFound()
	}
	o := exchangeObject(v.Name(), &x)
	o["incoming"], o["outgoing"] = []any{}, []any{}
	return o, nil
}

// flag is a boolean, which RabbitMQ also takes as a text.
type flag bool

// UnmarshalJSON reads either form.
func (f *flag) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `true`, `"true"`:
		*f = true
	case `false`, `"false"`, `null`:
		*f = false
	default:
		return &json.UnmarshalTypeError{Value: string(b), Field: "a flag"}
	}
	return nil
}

func putExchange(c *call) (any, error) {
	var body struct {
		Type       string         `json:"type"`
		Durable    flag           `json:"durable"`
		AutoDelete flag           `json:"auto_delete"`
		Internal   flag           `json:"internal"`
		Arguments  map[string]any `json:"arguments"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if body.Type == "" {
		body.Type = "direct"
	}
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	_, existed := s.VHost().ExchangeState(c.name("name"))
	return madeIf(!existed), s.ExchangeDeclare(broker.ExchangeSpec{
		Name: c.name("name"), Type: body.Type, Durable: bool(body.Durable), AutoDelete: bool(body.AutoDelete),
		Internal: bool(body.Internal), Args: table(body.Arguments),
	})
}

func deleteExchange(c *call) (any, error) {
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if _, ok := s.VHost().ExchangeState(c.exchangeName("name")); !ok {
		return nil, notFound()
	}
	return nil, s.ExchangeDelete(c.exchangeName("name"), c.asks("if-unused"))
}

// asks reports whether the query has the flag.
func (c *call) asks(name string) bool { return c.r.URL.Query().Get(name) == "true" }
