package broker

import (
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

func TestDeleteQueueTellsConsumersAndForgetsBindings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil, "durable")
	r.exchange("x", "direct", nil)
	r.bind("q", "x", "k")
	f, _ := r.consume("q", 0, ConsumerSpec{})
	r.publish("x", "k", "a")
	n, err := r.QueueDelete("q", false, false)
	if n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if !f.cancelled {
		t.Error("the consumer was not told")
	}
	if r.publish("x", "k", "b").Routed {
		t.Error("a deleted queue takes messages")
	}
	q.Ack([]uint64{0}) // as a client does that has not heard of it
	q.Requeue([]uint64{0})
	q.Reject([]uint64{0})
	if _, err := q.Consume(ConsumerSpec{Receiver: f}); err == nil {
		t.Error("a deleted queue takes consumers")
	}
	r.queue("q", nil, "durable")
	if r.publish("x", "k", "c").Routed {
		t.Error("a queue declared anew has the bindings of the old one")
	}
	if n, err := r.QueueDelete("none", false, false); n != 0 || err != nil {
		t.Errorf("a queue that is not there: got %d, %v", n, err)
	}
}

func TestDeleteQueueConditions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil)
	_, c := r.consume("q", 0, ConsumerSpec{})
	_, err := r.QueueDelete("q", true, false)
	wantError(t, err, amqp.PreconditionFailed, "queue 'q' in vhost '/' in use")
	c.Cancel()
	r.publish("", "q", "a")
	_, err = r.QueueDelete("q", true, true)
	wantError(t, err, amqp.PreconditionFailed, "queue 'q' in vhost '/' not empty")
	r.get("q")
	if _, err := r.QueueDelete("q", true, true); err != nil {
		t.Error(err)
	}
}

func TestExclusiveQueueIsLockedAndGoesWithItsSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const locked = "cannot obtain exclusive access to locked queue 'q' in vhost '/'"
	other := r.connect("guest")
	r.queue("q", nil, "exclusive", "durable")
	_, err := other.Queue("q")
	wantError(t, err, amqp.ResourceLocked, locked)
	_, err = other.QueueDeclare(QueueSpec{Name: "q", Exclusive: true})
	wantError(t, err, amqp.ResourceLocked, locked)
	_, err = other.QueueDeclare(QueueSpec{Name: "q", Passive: true})
	wantError(t, err, amqp.ResourceLocked, locked)
	_, err = other.QueueDelete("q", false, false)
	wantError(t, err, amqp.ResourceLocked, locked)
	_, err = other.QueuePurge("q")
	wantError(t, err, amqp.ResourceLocked, locked)
	wantError(t, other.QueueBind(Binding{Source: "amq.direct", Destination: "q"}), amqp.ResourceLocked, locked)
	wantError(t, other.QueueUnbind(Binding{Source: "amq.direct", Destination: "q"}), amqp.ResourceLocked, locked)
	_, err = r.QueueDeclare(QueueSpec{Name: "q"})
	wantError(t, err, amqp.ResourceLocked, locked)
	r.queue("q", nil, "exclusive", "durable")
	if !r.publish("", "q", "a").Routed { // publishing is free to all
		t.Error("not routed")
	}
	r.Session.Close()
	r.Session.Close()
	if r.vhost.queue("q") != nil {
		t.Error("the queue outlived its session")
	}
	_, err = r.QueueDeclare(QueueSpec{Name: "late", Exclusive: true})
	wantError(t, err, amqp.ConnectionForced, "closing")
}
