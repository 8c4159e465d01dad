package broker

import (
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

func withConsumerPriority(n int32) ConsumerSpec {
	return ConsumerSpec{Args: amqp.Table{argPriority: n}}
}

func singleActive(kind string) amqp.Table {
	return amqp.Table{argSingleActive: true, argQueueType: kind}
}

func TestHigherConsumerPriorityGetsAllItHasCreditFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil)
	plain, _ := r.consume("q", 2, ConsumerSpec{})
	a, _ := r.consume("q", 2, withConsumerPriority(5))
	b, _ := r.consume("q", 2, withConsumerPriority(5))
	low, _ := r.consume("q", 2, withConsumerPriority(-1))
	for _, body := range numbered("", 9) {
		r.publish("", "q", body)
	}
	wantBodies(t, "one of 5", a.bodies(), "0", "2")
	wantBodies(t, "other of 5", b.bodies(), "1", "3")
	wantBodies(t, "none", plain.bodies(), "4", "5")
	wantBodies(t, "-1", low.bodies(), "6", "7")
	r.wantReady("q", 1)
}

func TestConsumerWithCreditAgainComesBeforeLowerPriority(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil)
	low, _ := r.consume("q", -1, ConsumerSpec{})
	f, c := r.consume("q", 1, withConsumerPriority(1))
	for _, body := range numbered("", 3) {
		r.publish("", "q", body)
	}
	got := f.take()
	q.Ack([]uint64{got[0].pos})
	f.add(1)
	c.Wake()
	r.publish("", "q", "again")
	wantBodies(t, "high", f.bodies(), "again")
	wantBodies(t, "low", low.bodies(), "1", "2")
}

func TestSingleActiveConsumerGetsAllAndTheNextTakesOver(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			q := r.queue("q", singleActive(kind), "durable")
			first, one := r.consume("q", -1, ConsumerSpec{})
			second, two := r.consume("q", -1, ConsumerSpec{})
			r.publish("", "q", "a")
			r.publish("", "q", "b")
			got := first.take()
			if len(got) != 2 || len(second.bodies()) != 0 {
				t.Fatalf("got %d and %d messages, want all with the first", len(got), len(second.bodies()))
			}
			q.Requeue([]uint64{got[0].pos}) // comes back to the active one
			wantBodies(t, "requeued", first.bodies(), "a")
			one.Cancel()
			r.publish("", "q", "c")
			wantBodies(t, "after cancel", second.bodies(), "c")
			two.Cancel()
			r.publish("", "q", "d")
			r.wantReady("q", 1)
			third, _ := r.consume("q", -1, ConsumerSpec{})
			wantBodies(t, "after all were gone", third.bodies(), "d")
		})
	}
}

func TestSingleActiveConsumerSuccessorHasHighestPriority(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", singleActive("classic"))
	first, one := r.consume("q", -1, ConsumerSpec{})
	low, _ := r.consume("q", -1, withConsumerPriority(1))
	high, _ := r.consume("q", -1, withConsumerPriority(9))
	r.publish("", "q", "a")
	one.Cancel()
	r.publish("", "q", "b")
	wantBodies(t, "first, although others have a higher priority", first.bodies(), "a")
	wantBodies(t, "highest", high.bodies(), "b")
	wantBodies(t, "lower", low.bodies())
}

func TestSingleActiveConsumerWithoutCreditKeepsOthersWaiting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", singleActive("classic"))
	r.consume("q", 1, ConsumerSpec{})
	second, two := r.consume("q", -1, ConsumerSpec{})
	r.publish("", "q", "a")
	r.publish("", "q", "b")
	two.Wake()
	wantBodies(t, "second", second.bodies())
	r.wantReady("q", 1)
}

func TestSuccessorGetsNothingBeforeItsFirstWake(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", singleActive("classic"))
	_, one := r.consume("q", 0, ConsumerSpec{})
	f := &fakeReceiver{credit: -1}
	c, err := q.Consume(ConsumerSpec{Receiver: f})
	if err != nil {
		t.Fatal(err)
	}
	r.publish("", "q", "a")
	one.Cancel()
	wantBodies(t, "before Wake", f.bodies())
	c.Wake()
	wantBodies(t, "after Wake", f.bodies(), "a")
}

func TestSingleActiveAndExclusiveConsumers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	classic, quorum := r.queue("c", singleActive("classic")), r.queue("q", singleActive("quorum"), "durable")
	exclusive := ConsumerSpec{Exclusive: true, Receiver: &fakeReceiver{}}
	_, err := classic.Consume(exclusive)
	wantError(t, err, amqp.AccessRefused, "queue 'c' in vhost '/' in exclusive use")
	for range 2 {
		if _, err := quorum.Consume(exclusive); err != nil {
			t.Errorf("exclusive consumer of a quorum queue with one active: %v", err)
		}
	}
	if _, _, _, err := classic.Get(true); err != nil {
		t.Errorf("basic.get: %v", err)
	}
	_, _, _, err = quorum.Get(true)
	wantError(t, err, amqp.ResourceLocked, "cannot obtain access to locked queue 'q' in vhost '/'. "+
		"basic.get operations are not supported by quorum queues with single active consumer")
}
