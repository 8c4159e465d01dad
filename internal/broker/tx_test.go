package broker

import (
	"testing"
	"time"

	"github.com/duepost/duepost/internal/amqp"
)

func TestTxCommitMakesAllOfItHappen(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "fanout")
		in := r.queue("in", deadTo("amq.fanout"), "durable")
		r.queue("out", nil, "durable")
		r.queue("dead", nil, "durable")
		r.queue("not logged", nil)
		r.bind("out", "x", "")
		r.bind("dead", "amq.fanout", "")
		var pos []uint64
		for _, body := range []string{"acked", "rejected", "requeued", "held"} {
			r.publish("", "in", body)
			d, _, _, _ := in.Get(false)
			pos = append(pos, d.Pos)
		}
		tx := r.p.NewTx()
		for _, m := range []*Message{
			newMessage("", "out", "now"),
			newMessage("", "not logged", "now"),
			newMessage("x", "", "later", withDelay(1000)),
			newMessage("", "nowhere", "quiet"),
		} {
			if err := tx.Publish(m); err != nil {
				t.Fatal(err)
			}
			clear(m.Body) // the transaction has a copy
			clear(m.Props)
		}
		lost := newMessage("", "nowhere", "returned")
		lost.Mandatory = true
		if err := tx.Publish(lost); err != nil {
			t.Fatal(err)
		}
		tx.Ack(in, pos[:1])
		tx.Reject(in, pos[1:2])
		tx.Requeue(in, pos[2:3])
		if got := r.find("out").Messages(); got != 0 || in.Unacknowledged() != 4 || r.vhost.Delayed("x").Count != 0 {
			t.Fatalf("before commit: %d out, %d held", got, in.Unacknowledged())
		}
		returned, err := tx.Commit()
		if err != nil || len(returned) != 1 || string(returned[0].Body) != "returned" ||
			string(returned[0].ExchangeAndKey) != "\x00\x07nowhere" {
			t.Fatalf("got %+v, %v", returned, err)
		}
		r.wantDrained("not logged", "now")
		r.crash()
		r.wantDrained("out", "now")
		r.wantDrained("in", "requeued", "held")
		r.wantDrained("dead", "rejected")
		pass(1001 * time.Millisecond)
		r.wantDrained("out", "later")
	})
}

func TestTxDelayedIsReleasedOnTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "fanout")
		r.queue("q", nil)
		r.bind("q", "x", "")
		tx := r.p.NewTx()
		if err := tx.Publish(newMessage("x", "", "later", withDelay(1000))); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour) // the delay counts from the commit
		if _, err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		pass(999 * time.Millisecond)
		r.wantReady("q", 0)
		pass(2 * time.Millisecond)
		r.wantDrained("q", "later")
	})
}

func TestTxRollbackForgetsAllOfIt(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedExchange("x", "fanout")
		q := r.queue("q", nil, "durable")
		r.bind("q", "x", "")
		r.publish("", "q", "held")
		d, _, _, _ := q.Get(false)
		tx := r.p.NewTx()
		_ = tx.Publish(newMessage("", "q", "never"))
		_ = tx.Publish(newMessage("x", "", "never", withDelay(10)))
		tx.Ack(q, []uint64{d.Pos})
		tx.Rollback()
		if returned, err := tx.Commit(); len(returned) != 0 || err != nil {
			t.Errorf("an empty commit: got %v, %v", returned, err)
		}
		pass(time.Second)
		if q.Messages() != 0 || q.Unacknowledged() != 1 {
			t.Errorf("got %d ready, %d held", q.Messages(), q.Unacknowledged())
		}
	})
}

func TestTxToAnExchangeThatIsGoneIsUnroutable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil, "durable")
	if err := r.ExchangeDeclare(ExchangeSpec{Name: "x", Type: "fanout"}); err != nil {
		t.Fatal(err)
	}
	tx := r.p.NewTx()
	lost := newMessage("x", "", "lost")
	lost.Mandatory = true
	for _, m := range []*Message{lost, newMessage("x", "", "quiet"), newMessage("", "q", "taken")} {
		if err := tx.Publish(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.ExchangeDelete("x", false); err != nil {
		t.Fatal(err)
	}
	returned, err := tx.Commit()
	if err != nil || len(returned) != 1 || string(returned[0].Body) != "lost" {
		t.Errorf("got %+v, %v", returned, err)
	}
	r.wantDrained("q", "taken")
}

func TestTxPublishRefusesAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tx := r.p.NewTx()
	wantError(t, tx.Publish(newMessage("none", "k", "m")), amqp.NotFound, "no exchange 'none'")
	wantError(t, tx.Publish(newMessage("", "k", "m", withExpiration("x"))), amqp.PreconditionFailed, "invalid expiration")
}
