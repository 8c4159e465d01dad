package httpapi

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"net/url"
	"strings"

	"github.com/duepost/duepost/internal/broker"
)

func bindingObject(vhost string, b *broker.BindingSpec) object {
	kind := "queue"
	if b.ToExchange {
		kind = "exchange"
	}
	return object{
		"source": b.Source, "vhost": vhost, "destination": b.Destination, "destination_type": kind,
		"routing_key": b.RoutingKey, "arguments": plainTable(b.Args), "properties_key": propertiesKey(b),
	}
}

// propertiesKey tells the bindings between two ends apart: the routing key, percent-encoded, and
// behind a ~ a hash of the arguments if there are any; a lone ~ is neither. The hash is not
// RabbitMQ's, and as there nobody but the broker can make one. [rmq management bindings]
func propertiesKey(b *broker.BindingSpec) string {
	key := strings.ReplaceAll(url.QueryEscape(b.RoutingKey), "~", "%7E")
	if len(b.Args) > 0 {
		text, err := json.Marshal(plainTable(b.Args)) // with its keys sorted
		if err != nil {
			return key
		}
		sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(text))
		return key + "~" + base64.RawURLEncoding.EncodeToString(sum)
	}
	if key == "" {
		return "~"
	}
	return key
}

// bindingRows are the bindings that the user may see and that pass.
func (c *call) bindingRows(passes func(*broker.BindingSpec) bool) (any, error) {
	visible, err := c.visible()
	if err != nil {
		return nil, err
	}
	all := rows{}
	for _, v := range visible {
		for _, b := range v.Bindings() {
			if passes(&b) {
				all = append(all, bindingObject(v.Name(), &b))
			}
		}
	}
	return all, nil
}

func listBindings(c *call) (any, error) {
	return c.bindingRows(func(*broker.BindingSpec) bool { return true })
}

func listQueueBindings(c *call) (any, error) {
	v, err := c.vhost()
	if err != nil {
		return nil, err
	}
	if _, ok := v.QueueState(c.name("name")); !ok {
		return nil, notFound()
	}
	return c.bindingRows(func(b *broker.BindingSpec) bool { return !b.ToExchange && b.Destination == c.name("name") })
}

func listExchangeBindings(c *call) (any, error) {
	v, err := c.vhost()
	if err != nil {
		return nil, err
	}
	name := c.exchangeName("name")
	if _, ok := v.ExchangeState(name); !ok {
		return nil, notFound()
	}
	switch c.name("end") {
	case "source":
		return c.bindingRows(func(b *broker.BindingSpec) bool { return b.Source == name })
	case "destination":
		return c.bindingRows(func(b *broker.BindingSpec) bool { return b.ToExchange && b.Destination == name })
	}
	return nil, notFound()
}

// isBetween reports whether a binding leads from and to what the path names.
func (c *call) isBetween(b *broker.BindingSpec) bool {
	return b.Source == c.exchangeName("source") && b.Destination == c.name("destination") && b.ToExchange == c.toExchange()
}

func (c *call) toExchange() bool { return c.name("kind") == "e" }

func listBindingsBetween(c *call) (any, error) {
	if err := c.checkEnds(); err != nil {
		return nil, err
	}
	return c.bindingRows(c.isBetween)
}

// checkEnds is 404 for a path that names what is not there.
func (c *call) checkEnds() error {
	v, err := c.vhost()
	if err != nil {
		return err
	}
	_, source := v.ExchangeState(c.exchangeName("source"))
	_, destination := v.QueueState(c.name("destination"))
	if c.toExchange() {
		_, destination = v.ExchangeState(c.name("destination"))
	}
	if !source || !destination || c.name("kind") != "e" && c.name("kind") != "q" {
		return notFound()
	}
	return nil
}

// binding returns the one that the path names by its key.
func (c *call) binding() (*broker.BindingSpec, error) {
	v, err := c.vhost()
	if err != nil {
		return nil, err
	}
	asked := c.name("properties")
	for _, b := range v.Bindings() {
		// Clients encode the key as it is, or its routing key only.
		if c.isBetween(&b) && (asked == propertiesKey(&b) || len(b.Args) == 0 && asked == b.RoutingKey) {
			return &b, nil
		}
	}
	return nil, notFound()
}

func showBinding(c *call) (any, error) {
	b, err := c.binding()
	if err != nil {
		return nil, err
	}
	return bindingObject(c.name("vhost"), b), nil
}

func postBinding(c *call) (any, error) {
	var body struct {
		RoutingKey string         `json:"routing_key"`
		Arguments  map[string]any `json:"arguments"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	b := broker.BindingSpec{ToExchange: c.toExchange(), Binding: broker.Binding{
		Source: c.exchangeName("source"), Destination: c.name("destination"),
		RoutingKey: body.RoutingKey, Args: table(body.Arguments)}}
	switch c.name("kind") {
	case "e":
		err = s.ExchangeBind(b.Binding)
	case "q":
		err = s.QueueBind(b.Binding)
	default:
		err = notFound()
	}
	if err != nil {
		return nil, err
	}
	return made{url.PathEscape(b.Destination) + "/" + url.PathEscape(propertiesKey(&b))}, nil
}

func deleteBinding(c *call) (any, error) {
	b, err := c.binding()
	if err != nil {
		return nil, err
	}
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if b.ToExchange {
		return nil, s.ExchangeUnbind(b.Binding)
	}
	return nil, s.QueueUnbind(b.Binding)
}
