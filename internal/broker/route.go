package broker

import (
	"slices"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/headers"
)

// envelope is what routing looks at in a message.
type envelope struct {
	key      []byte
	headers  amqp.RawTable
	routes   headers.Routes // more keys, from CC and BCC
	accepted int64          // from when a delay counts: unix milliseconds, rounded up
	served   bool           // not to be delayed: it was, or cannot be
	letter   bool           // a dead letter: a key in it is its publisher's, who did not send it here
}

// route finds where a message goes. It is the result and the working space of one walk, and is
// reused for the next.
type route struct {
	queues  []*Queue    // each once
	delayed []*Exchange // where it has to wait first
	delay   headers.Delay

	// byHeaders is whether the result may be another for a message with other headers.
	byHeaders bool

	delayRead  bool
	delayFault error // why the delay headers cannot be read
	visited    []*Exchange
	found      []*destinations
	topics     topicMatch
	seen       map[*Queue]struct{} // the same as queues, when they are many
}

// manyQueues is from how many on a map is quicker than looking through them.
const manyQueues = 24

func (r *route) reset() {
	clear(r.queues)
	r.queues = r.queues[:0]
	r.delayed = r.delayed[:0]
	r.delay = headers.Delay{}
	r.byHeaders = false
	r.delayRead, r.delayFault = false, nil
	r.visited = r.visited[:0]
	r.found = r.found[:0]
	clear(r.seen)
}

// walk follows the message from an exchange through all bindings to queues. Exchanges bound in
// a circle are visited once. The error is an *amqp.Error about a delay header.
func (r *route) walk(x *Exchange, e *envelope) error {
	if slices.Contains(r.visited, x) {
		return nil
	}
	r.visited = append(r.visited, x)
	if x.delayed {
		waits, err := r.mustWait(x, e)
		if err != nil {
			return err
		}
		if waits {
			r.delayed = append(r.delayed, x)
			return r.walkBeside(x, e)
		}
	}
	if x.name == "" {
		r.walkDefault(x.vhost, e)
		return nil
	}
	first := len(r.found)
	r.match(x, e)
	if len(r.found) == first {
		if alternate := x.alternate(); alternate != nil {
			return r.walk(alternate, e)
		}
	}
	for i := first; i < len(r.found); i++ { // walk puts more behind, and takes it away
		d := r.found[i]
		r.add(d.queues)
		for _, next := range d.exchanges {
			if err := r.walk(next, e); err != nil {
				return err
			}
		}
	}
	r.found = r.found[:first]
	return nil
}

// mustWait reads the delay headers, once per message.
func (r *route) mustWait(x *Exchange, e *envelope) (bool, error) {
	r.byHeaders = true
	if e.served {
		return false, nil
	}
	if !r.delayRead {
		var d headers.Delay
		d, r.delayFault = headers.ParseDelay(e.headers, e.accepted)
		if e.letter {
			d = d.WithoutKey()
		}
		r.delay, r.delayRead = d, true
	}
	if x.isPlugin() { // after a fault r.delay is none: what it does not understand it does not delay
		return r.delay.Waits() && !r.delay.IsBeyondPlugin(), nil
	}
	return r.delay.Waits(), r.delayFault
}

// walkDefault routes by queue name, as if every queue were bound to the default exchange by it.
// [amqp 3.1.3.1]
func (r *route) walkDefault(v *VHost, e *envelope) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r.addNamed(v, e.key)
	if !e.routes.IsEmpty() {
		for key := range e.routes.All() {
			r.addNamed(v, key)
		}
	}
}

func (r *route) addNamed(v *VHost, name []byte) {
	if q := v.queues[string(name)]; q != nil {
		r.addOne(q)
	}
}

// match appends to r.found what the exchange's own bindings lead to.
func (r *route) match(x *Exchange, e *envelope) {
	t := x.routes()
	switch t.kind {
	case fanout:
		if len(t.all.queues)+len(t.all.exchanges) > 0 {
			r.found = append(r.found, t.all)
		}
	case headersKind:
		r.byHeaders = true
		for i := range t.headers {
			if t.headers[i].matches(e.headers) {
				r.found = append(r.found, &t.headers[i].to)
			}
		}
	default:
		r.matchKey(t, e.key)
		if !e.routes.IsEmpty() {
			for key := range e.routes.All() {
				r.matchKey(t, key)
			}
		}
	}
}

func (r *route) matchKey(t *routeTable, key []byte) {
	if t.kind == topic {
		r.found = r.topics.match(t.topic, key, r.found)
		return
	}
	if d := t.direct[string(key)]; d != nil {
		r.found = append(r.found, d)
	}
}

// add adds queues of which each occurs once.
func (r *route) add(queues []*Queue) {
	if len(r.queues) == 0 && len(queues) < manyQueues {
		r.queues = append(r.queues, queues...)
		return
	}
	for _, q := range queues {
		r.addOne(q)
	}
}

func (r *route) addOne(q *Queue) {
	if len(r.queues) < manyQueues {
		if !slices.Contains(r.queues, q) {
			r.queues = append(r.queues, q)
		}
		return
	}
	if len(r.seen) < len(r.queues) {
		if r.seen == nil {
			r.seen = make(map[*Queue]struct{})
		}
		for _, known := range r.queues {
			r.seen[known] = struct{}{}
		}
	}
	if _, ok := r.seen[q]; !ok {
		r.seen[q] = struct{}{}
		r.queues = append(r.queues, q)
	}
}
