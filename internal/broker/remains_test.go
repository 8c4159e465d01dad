package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

func TestDeletedDelayedExchangeDeadLettersWhatWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.delayedWith("x", nil)
		r.queue("dead", nil, "durable")
		r.bind("dead", "amq.fanout", "")
		err := r.vhost.SetPolicy(policy.Policy{
			Name: "p", Pattern: "^x$", Definition: policy.Definition{"delayed-dead-letter-exchange": "amq.fanout"},
		})
		if err != nil {
			t.Fatal(err)
		}
		large := strings.Repeat("x", 200_000)
		r.publish("x", "k", "a year", withDelay(365*24*3600*1000))
		r.publish("x", "k", large, withDelay(60_000))
		r.publish("x", "k", "keyed", withHeaders(amqp.Table{"x-delay": int32(90_000), "x-delay-key": "a"}))
		if err := r.ExchangeDelete("x", false); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		r.wantDrained("dead", large, "keyed", "a year")
		if got := r.Stats().DelayedDropped; got != 0 {
			t.Errorf("got %d dropped", got)
		}
		r.delayedWith("x", nil)
		pass(2 * time.Minute)
		r.wantReady("q", 0)
	})
}

func TestDeletedDelayedExchangeDeadLettersAfterACrash(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		const n = 3000
		r.delayedWith("x", amqp.Table{"x-delayed-dead-letter-exchange": "amq.fanout"})
		r.queue("dead", nil, "durable")
		r.bind("dead", "amq.fanout", "")
		for i := range n {
			r.publish("x", "k", fmt.Sprint(i), withDelay(int64(1000_000+i)))
		}
		r.evacuation.stop() // so that nothing is done before the crash
		r.evacuation.done, r.evacuation.quit = make(chan struct{}), make(chan struct{})
		close(r.evacuation.done)
		if err := r.ExchangeDelete("x", false); err != nil {
			t.Fatal(err)
		}
		r.wantReady("dead", 0)
		r.crash()
		pass(time.Second)
		r.wantDrained("dead", numbered("", n)...)
		r.crash()
		if len(r.vhost.remains) != 0 {
			t.Error("what remains of the exchange is not forgotten although nothing waits in it")
		}
	})
}

func TestDeletedVHostDropsWhatRemainsOfItsExchanges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.pluginLike("x", nil)
	r.publish("x", "k", "m", withDelay(3600_000))
	if err := r.ExchangeDelete("x", false); err != nil {
		t.Fatal(err)
	}
	if got := r.store.PendingTotal().Count; got != 1 {
		t.Fatalf("got %d waiting, want 1", got)
	}
	if _, err := r.DeleteVHost("/"); err != nil {
		t.Fatal(err)
	}
	if got := r.store.PendingTotal().Count; got != 0 {
		t.Errorf("got %d waiting, want none", got)
	}
	r.die()
	r.start()
	if len(r.vhost.remains) != 0 {
		t.Error("an exchange of a deleted virtual host came back")
	}
}
