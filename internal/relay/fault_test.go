//go:build relay

package relay

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/testbroker"
)

// TestDiskAlarm: RabbitMQ is short of disk while messages become due. They wait, a relay can be stopped
// meanwhile, and all come when there is room again.
func TestDiskAlarm(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *testbroker.Broker) {
		r, stop := startRelay(t, b.URL())
		c := newClient(t, b.URL())
		const n = 500
		c.burst(0, n, 30*time.Second, 32*time.Second)
		due := time.After(34 * time.Second)
		waitFor(t, "all are on the wheel", func() bool { return r.Stats().Moved.Load() == n })
		limit := func(text string) {
			if _, err := b.Control(t.Context(), "set_disk_free_limit", text); err != nil {
				t.Fatal(err)
			}
		}
		limit("1000000GB")
		<-due
		<-time.After(muteAfter)
		if n := r.Stats().Sessions.Load(); n != 1 {
			t.Errorf("%d sessions, want one: that RabbitMQ is full is no fault", n)
		}
		if n := r.Stats().Released.Load(); n > 0 {
			t.Errorf("%d were released while RabbitMQ was full", n)
		}
		stop()
		limit("1MB")
		startRelay(t, b.URL())
		if sum := collect(t, b.URL(), 0, n, patience); sum.missing > 0 || sum.early > 0 {
			t.Errorf("%+v, want none missing and none early", sum)
		}
	})
}

// TestFullTarget: a queue that takes no more holds up no other, and gets what is for it when it does.
func TestFullTarget(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *testbroker.Broker) {
		r, _ := startRelay(t, b.URL())
		c := newClient(t, b.URL())
		const n, room = 300, 10
		if _, err := c.ch.QueueDeclare("full", true, false, false, false,
			amqp.Table{"x-max-length": room, "x-overflow": "reject-publish"}); err != nil {
			t.Fatal(err)
		}
		if err := c.ch.QueueBind("full", "full", "x.duepost", false, nil); err != nil {
			t.Fatal(err)
		}
		for range 3 * room {
			c.publish("x", "full", amqp.Publishing{Headers: amqp.Table{"x-delay": 100}})
		}
		c.burst(0, n, time.Second, 8*time.Second)
		sum := collect(t, b.URL(), 0, n, patience)
		t.Logf("%+v", sum)
		if sum.missing > 0 || sum.early > 0 || sum.latest > mostLate {
			t.Errorf("%+v, want all others on time", sum)
		}
		waitFor(t, "what is not taken goes back to the wheel", func() bool { return r.Stats().Moved.Load() > n+3*room })
		for range 3 * room {
			c.get("full")
		}
	})
}

// TestQueueWithoutLeader: a queue whose only node is away holds up no other, and gets what is for it when
// its node is back.
func TestQueueWithoutLeader(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	url := cluster.Nodes[0].URL()
	r, _ := startRelay(t, url)
	c := newClient(t, url)
	away := connect(t, cluster.Nodes[2].URL())
	if _, err := away.ch.QueueDeclare("away", true, false, false, false,
		amqp.Table{"x-queue-type": "quorum", "x-quorum-initial-group-size": 1}); err != nil {
		t.Fatal(err)
	}
	if err := c.ch.QueueBind("away", "away", "x.duepost", false, nil); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Nodes[2].Stop(); err != nil {
		t.Fatal(err)
	}
	const n, lost = 600, 400
	for range lost {
		c.publish("x", "away", amqp.Publishing{DeliveryMode: 2, Headers: amqp.Table{"x-delay": 3000}, Body: []byte("away")})
	}
	c.burst(0, n, 4*time.Second, 30*time.Second)
	sum := collect(t, url, 0, n, 2*patience)
	t.Logf("%+v, %d sessions", sum, r.Stats().Sessions.Load())
	if sum.missing > 0 || sum.early > 0 || sum.latest > 2*setBack {
		t.Errorf("%+v, want all others soon", sum)
	}
	if err := cluster.Nodes[2].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range lost {
		c.get("away")
	}
}
