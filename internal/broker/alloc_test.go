//go:build !race

package broker

import "testing"

// These tests do not run in parallel: they count what the whole process allocates.

func TestNoAllocationPerMessage(t *testing.T) {
	for name, c := range map[string]struct {
		noAck   bool
		options []option
	}{
		"persistent, acked":  {false, nil},
		"persistent, no-ack": {true, nil},
		"transient, acked":   {false, []option{transient}},
		"transient, no-ack":  {true, []option{transient}},
		"with TTL":           {false, []option{transient, withExpiration("60000")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(t, c.noAck, c.options...)
			for range 5000 {
				s.step(t)
			}
			// One run is many messages, so that what the store does now and then per segment
			// and the pools do after a collection does not count as per message.
			const each = 1000
			per := testing.AllocsPerRun(5, func() {
				for range each {
					s.step(t)
				}
			}) / each
			if per >= 0.05 {
				t.Errorf("got %.3f allocations per message, want 0", per)
			}
		})
	}
}

func TestNoAllocationPerRoute(t *testing.T) {
	r := newTopicRig(t)
	x := r.vhost.exchange("amq.topic")
	var found route
	e := &envelope{key: []byte("orders.7.created")}
	if got := testing.AllocsPerRun(100, func() {
		found.reset()
		_ = found.walk(x, e)
	}); got != 0 {
		t.Errorf("got %v allocations per route, want 0", got)
	}
	if len(found.queues) != 1 {
		t.Errorf("got %d queues", len(found.queues))
	}
}
