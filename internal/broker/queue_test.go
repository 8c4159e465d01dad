package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/amqp"
)

func TestPublishReachesConsumerWithCredit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil, "durable")
	f, _ := r.consume("q", -1, ConsumerSpec{NoAck: true})
	res := r.publish("", "q", "a")
	if !res.Routed || res.Rejected || res.LSN == 0 {
		t.Errorf("persistent message to a durable queue: got %+v", res)
	}
	if res := r.publish("", "q", "b", transient); res.LSN != 0 {
		t.Errorf("transient message: got %+v, want nothing to wait for", res)
	}
	got := f.take()
	if len(got) != 2 || got[0].body != "a" || got[0].exchange != "" || got[0].key != "q" || got[0].redelivered {
		t.Errorf("got %+v", got)
	}
	if n := r.find("q").Messages() + r.find("q").Unacknowledged(); n != 0 {
		t.Errorf("no-ack deliveries left %d messages", n)
	}
}

func TestNewConsumerGetsNothingBeforeWake(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil)
	r.publish("", "q", "a")
	f := &fakeReceiver{credit: -1}
	c, err := q.Consume(ConsumerSpec{Receiver: f})
	if err != nil {
		t.Fatal(err)
	}
	r.publish("", "q", "b")
	wantBodies(t, "before Wake", f.bodies())
	c.Wake()
	wantBodies(t, "after Wake", f.bodies(), "a", "b")
}

func TestCreditLimitsDeliveriesAndWakeResumes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil)
	f, c := r.consume("q", 2, ConsumerSpec{})
	for _, body := range []string{"a", "b", "c", "d"} {
		r.publish("", "q", body)
	}
	got := f.take()
	if len(got) != 2 || q.Messages() != 2 || q.Unacknowledged() != 2 {
		t.Fatalf("got %d deliveries, %d ready, %d held", len(got), q.Messages(), q.Unacknowledged())
	}
	q.Ack([]uint64{got[0].pos})
	f.add(1)
	c.Wake()
	wantBodies(t, "after one ack", f.bodies(), "c")
	f.add(5)
	q.Wake()
	wantBodies(t, "after more credit", f.bodies(), "d")
}

func TestConsumersTakeTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil)
	a, _ := r.consume("q", -1, ConsumerSpec{})
	b, _ := r.consume("q", 2, ConsumerSpec{})
	c, _ := r.consume("q", -1, ConsumerSpec{})
	for _, body := range numbered("", 9) {
		r.publish("", "q", body)
	}
	wantBodies(t, "first", a.bodies(), "0", "3", "6", "8")
	wantBodies(t, "second, with credit for two", b.bodies(), "1", "4")
	wantBodies(t, "third", c.bodies(), "2", "5", "7")
}

func TestRequeueReturnsToPlaceMarkedRedelivered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil)
	for _, body := range []string{"a", "b", "c", "d"} {
		r.publish("", "q", body)
	}
	var pos []uint64
	for range 3 {
		d, _, _, _ := q.Get(false)
		pos = append(pos, d.Pos)
	}
	q.Requeue([]uint64{pos[2], pos[0]})
	for _, want := range []struct {
		body        string
		redelivered bool
		deliveries  int
	}{{"a", true, 1}, {"c", true, 1}, {"d", false, 0}} {
		d, _, ok, err := q.Get(true)
		if err != nil || !ok || string(d.Record.Body) != want.body ||
			d.Redelivered != want.redelivered || d.Deliveries != want.deliveries {
			t.Errorf("got %q redelivered %t after %d, want %+v", d.Record.Body, d.Redelivered, d.Deliveries, want)
		}
	}
	if q.Messages() != 0 || q.Unacknowledged() != 1 {
		t.Errorf("got %d ready and %d held, want 0 and 1", q.Messages(), q.Unacknowledged())
	}
}

func TestDeliveryThatConsumerRefusesGoesBackUnmarked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil)
	f, _ := r.consume("q", -1, ConsumerSpec{})
	f.mu.Lock()
	f.arrived = func(*Delivery) { f.mu.Lock(); f.deaf = true; f.mu.Unlock() }
	f.mu.Unlock()
	for _, body := range []string{"a", "b"} {
		r.publish("", "q", body)
	}
	wantBodies(t, "before it was gone", f.bodies(), "a")
	d, _, ok, _ := q.Get(true)
	if !ok || string(d.Record.Body) != "b" || d.Redelivered {
		t.Errorf("got %q, redelivered %t", d.Record.Body, d.Redelivered)
	}
}

func TestSettlingTwiceDoesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil, "durable")
	r.publish("", "q", "a")
	d, _, _, _ := q.Get(false)
	q.Ack([]uint64{d.Pos})
	q.Ack([]uint64{d.Pos, 17, 1 << 40})
	q.Requeue([]uint64{d.Pos})
	q.Reject([]uint64{d.Pos})
	if q.Messages()+q.Unacknowledged() != 0 {
		t.Errorf("got %d ready, %d held", q.Messages(), q.Unacknowledged())
	}
}

func TestGetReportsWhatIsLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil)
	if _, _, ok, err := q.Get(true); ok || err != nil {
		t.Errorf("empty queue: got %t, %v", ok, err)
	}
	r.publish("", "q", "a")
	r.publish("", "q", "b")
	_, left, ok, err := q.Get(true)
	if !ok || err != nil || left != 1 {
		t.Errorf("got left %d, %t, %v", left, ok, err)
	}
}

func TestExclusiveConsumerIsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil)
	_, c := r.consume("q", 0, ConsumerSpec{Exclusive: true})
	_, err := q.Consume(ConsumerSpec{Receiver: &fakeReceiver{}})
	wantError(t, err, amqp.AccessRefused, "queue 'q' in vhost '/' in exclusive use")
	c.Cancel()
	_, other := r.consume("q", 0, ConsumerSpec{})
	_, err = q.Consume(ConsumerSpec{Exclusive: true, Receiver: &fakeReceiver{}})
	wantError(t, err, amqp.AccessRefused, "in exclusive use")
	other.Cancel()
	r.consume("q", 0, ConsumerSpec{Exclusive: true})
}

func TestConsumerArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil)
	_, err := q.Consume(ConsumerSpec{Args: amqp.Table{"x-priority": "high"}, Receiver: &fakeReceiver{}})
	wantError(t, err, amqp.PreconditionFailed, "invalid arg 'x-priority' for queue 'q' in vhost '/'")
	if _, err := q.Consume(ConsumerSpec{Args: amqp.Table{"x-priority": int32(-3)}, Receiver: &fakeReceiver{}}); err != nil {
		t.Error(err)
	}
}

func TestCancelledConsumerGetsNothingMore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil)
	f, c := r.consume("q", -1, ConsumerSpec{})
	c.Cancel()
	c.Cancel()
	c.Wake()
	r.publish("", "q", "a")
	if got := f.take(); len(got) != 0 || q.Consumers() != 0 || q.Messages() != 1 {
		t.Errorf("got %v, %d consumers, %d ready", got, q.Consumers(), q.Messages())
	}
}

func TestAutoDeleteQueueGoesWithLastConsumer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil, "auto-delete")
	_, a := r.consume("q", 0, ConsumerSpec{})
	_, b := r.consume("q", 0, ConsumerSpec{})
	a.Cancel()
	r.find("q")
	b.Cancel()
	_, err := r.Session.Queue("q")
	wantError(t, err, amqp.NotFound, "no queue 'q' in vhost '/'")
	r.queue("unused", nil, "auto-delete") // never had one, so it stays
	r.find("unused")
}

func TestPurgeTakesReadyMessagesOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil, "durable")
	for i := range 3000 {
		r.publish("", "q", fmt.Sprint(i))
	}
	d, _, _, _ := q.Get(false)
	n, err := r.QueuePurge("q")
	if err != nil || n != 2999 || q.Messages() != 0 || q.Unacknowledged() != 1 {
		t.Errorf("got %d, %v; %d ready, %d held", n, err, q.Messages(), q.Unacknowledged())
	}
	q.Requeue([]uint64{d.Pos})
	r.kill() // a purge is durable when it returns
	r.wantDrained("q", "0")
	_, err = r.QueuePurge("none")
	wantError(t, err, amqp.NotFound, "no queue 'none'")
}

func TestDispatchThatNeverEndsGoesToTheWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil)
	const n = claimBatch * maxRounds * 3
	for range n {
		r.publish("", "q", "x", transient)
	}
	done, woken := make(chan struct{}), make(chan struct{})
	f := &fakeReceiver{credit: -1}
	left := n
	f.arrived = func(*Delivery) {
		if left == n/3 { // not before Wake has returned: it is somebody else who goes on
			select {
			case <-woken:
			case <-time.After(30 * time.Second):
				t.Error("one goroutine delivered all")
			}
		}
		if left--; left == 0 {
			close(done)
		}
	}
	c, _ := q.Consume(ConsumerSpec{Receiver: f, NoAck: true})
	c.Wake()
	close(woken)
	<-done
}
