package broker

import "slices"

// routeTable is an immutable snapshot of an exchange's bindings in the form that its kind
// searches.
type routeTable struct {
	kind    exchangeKind
	all     *destinations            // fanout
	direct  map[string]*destinations // direct: by key
	topic   *topicNode               // topic
	headers []headersBinding         // headers
}

// destinations are where one match leads, each once.
type destinations struct {
	queues    []*Queue
	exchanges []*Exchange
}

func (d *destinations) add(b *binding) {
	if b.queue != nil {
		if !slices.Contains(d.queues, b.queue) {
			d.queues = append(d.queues, b.queue)
		}
		return
	}
	if !slices.Contains(d.exchanges, b.exchange) {
		d.exchanges = append(d.exchanges, b.exchange)
	}
}

// newRouteTable makes the snapshot. The caller holds the lock that guards the bindings.
func newRouteTable(kind exchangeKind, bindings map[bindingKey]*binding) *routeTable {
	t := &routeTable{kind: kind}
	switch kind {
	case fanout:
		t.all = newFanout(bindings)
	case direct:
		t.direct = make(map[string]*destinations)
		for _, b := range bindings {
			d := t.direct[b.routingKey]
			if d == nil {
				d = new(destinations)
				t.direct[b.routingKey] = d
			}
			d.add(b)
		}
	case topic:
		t.topic = new(topicNode)
		for _, b := range bindings {
			t.topic.insert(b)
		}
	case headersKind:
		for _, b := range bindings {
			t.headers = append(t.headers, newHeadersBinding(b))
		}
	}
	return t
}

// newFanout collects every destination once, in time linear in the number of bindings.
func newFanout(bindings map[bindingKey]*binding) *destinations {
	d := new(destinations)
	seen := make(map[any]struct{}, len(bindings))
	for _, b := range bindings {
		var key any = b.queue
		if b.queue == nil {
			key = b.exchange
		}
		if _, ok := seen[key]; ok {
			continue
		}
		seen[key] = struct{}{}
		if b.queue != nil {
			d.queues = append(d.queues, b.queue)
		} else {
			d.exchanges = append(d.exchanges, b.exchange)
		}
	}
	return d
}
