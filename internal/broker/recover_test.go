package broker

import (
	"fmt"
	"slices"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

func TestDurableDefinitionsSurviveAndOthersDoNot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	args := amqp.Table{"x-message-ttl": int32(3_600_000), "x-dead-letter-exchange": "d", "other": []any{true, "x"}}
	r.exchange("h", "headers", nil)
	r.exchange("x", "topic", amqp.Table{"alternate-exchange": "h"})
	r.delayedExchange("d", "direct")
	for _, x := range []ExchangeSpec{
		{Name: "transient", Type: "fanout"},
		{Name: "internal", Type: "fanout", Durable: true, Internal: true, AutoDelete: true},
	} {
		if err := r.ExchangeDeclare(x); err != nil {
			t.Fatal(err)
		}
	}
	r.queue("durable", args, "durable")
	r.queue("auto", nil, "durable", "auto-delete")
	r.queue("transient", nil)
	r.queue("exclusive", nil, "durable", "exclusive")
	match := amqp.Table{"x-match": "any", "n": int64(5)}
	for _, b := range []Binding{
		{Source: "x", Destination: "durable", RoutingKey: "a.#"},
		{Source: "x", Destination: "transient", RoutingKey: "a.#"},
		{Source: "x", Destination: "exclusive", RoutingKey: "a.#"},
		{Source: "transient", Destination: "durable"},
		{Source: "amq.fanout", Destination: "durable"},
		{Source: "h", Destination: "auto", Args: match},
		{Source: "d", Destination: "auto", RoutingKey: "k"},
	} {
		if err := r.QueueBind(b); err != nil {
			t.Fatal(err)
		}
	}
	r.bindExchange("d", "x", "to.d")
	for _, again := range []func(){r.crash, r.restart} {
		again()
		for _, q := range []string{"transient", "exclusive"} {
			if r.vhost.queue(q) != nil {
				t.Errorf("queue %s is back", q)
			}
		}
		if r.vhost.exchange("transient") != nil {
			t.Error("a transient exchange is back")
		}
		r.wantReached("x", "a.b", "durable")
		r.wantReached("x", "to.d", "")
		r.wantReached("amq.fanout", "", "durable")
		r.wantReached("d", "k", "auto")
		r.wantReached("x", "nothing", "auto", withHeaders(amqp.Table{"n": int32(5)}))
		r.queue("durable", args, "durable") // equivalent
		r.queue("auto", nil, "durable", "auto-delete")
		_, err := r.p.Publish(newMessage("internal", "", "m"))
		wantError(t, err, amqp.AccessRefused, "internal")
		if got := r.Stats(); got.Bindings != 5 || got.Queues != 2 {
			t.Errorf("got %d bindings, %d queues", got.Bindings, got.Queues)
		}
	}
}

func TestDeletedThingsDoNotComeBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exchange("x", "fanout", nil)
	r.exchange("y", "fanout", nil)
	r.queue("q", nil, "durable")
	r.queue("p", nil, "durable")
	r.bind("q", "x", "")
	r.bind("q", "y", "")
	r.bind("p", "y", "")
	r.publish("", "q", "old")
	if _, err := r.QueueDelete("q", false, false); err != nil {
		t.Fatal(err)
	}
	if err := r.ExchangeDelete("x", false); err != nil {
		t.Fatal(err)
	}
	if err := r.QueueUnbind(Binding{Source: "y", Destination: "p"}); err != nil {
		t.Fatal(err)
	}
	r.queue("q", nil, "durable")
	r.publish("", "q", "new")
	r.crash()
	r.wantDrained("q", "new")
	if got := r.Stats(); got.Bindings != 0 || got.Orphans != 0 || r.vhost.exchange("x") != nil {
		t.Errorf("got %d bindings, %d orphans", got.Bindings, got.Orphans)
	}
}

func TestMessagesSurviveByPersistenceAndQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("durable", nil, "durable")
	r.queue("transient", nil)
	for _, q := range []string{"durable", "transient"} {
		r.bind(q, "amq.fanout", "")
	}
	r.publish("amq.fanout", "", "persistent")
	r.publish("amq.fanout", "", "transient", transient)
	r.restart()
	r.wantDrained("durable", "persistent")
	r.queue("transient", nil)
	r.wantDrained("transient")
}

func TestRedeliveredAfterCrashAndOnlyIfDeliveredAfterStop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", nil, "durable")
	for _, body := range []string{"acked", "held", "never delivered"} {
		r.publish("", "q", body)
	}
	d, _, _, _ := q.Get(false)
	q.Ack([]uint64{d.Pos})
	_, _, _, _ = q.Get(false)
	flags := func() (got []string) {
		q := r.find("q")
		for {
			d, _, ok, _ := q.Get(false)
			if !ok {
				break
			}
			got = append(got, fmt.Sprint(string(d.Record.Body), d.Redelivered))
		}
		return got
	}
	r.restart()
	r.restart()
	if got, want := flags(), []string{"heldtrue", "never deliveredfalse"}; !slices.Equal(got, want) {
		t.Errorf("after two stops: got %q, want %q", got, want)
	}
	r.crash()
	if got, want := flags(), []string{"heldtrue", "never deliveredtrue"}; !slices.Equal(got, want) {
		t.Errorf("after a crash: got %q, want %q", got, want)
	}
}

func TestIDsAreNeverUsedTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	last := uint32(0)
	for i := range 5 {
		for j := range 3 {
			q := r.queue(fmt.Sprint(i, j), nil, "durable")
			if q.id <= last || q.id&historyBit != 0 {
				t.Fatalf("got id %d after %d", q.id, last)
			}
			last = q.id
			if _, err := r.QueueDelete(q.name, false, false); err != nil {
				t.Fatal(err)
			}
		}
		if i%2 == 0 {
			r.crash()
		} else {
			r.restart()
		}
	}
	for range 2 * idBlock {
		id, err := r.ids.take()
		if err != nil || id <= last {
			t.Fatalf("got %d after %d, %v", id, last, err)
		}
		last = id
	}
}

func TestDefinitionsThatCannotBeReadAreReported(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var b store.Batch
	b.Put(queueDefinition("/", "q"), []byte{9, 9})
	lsn, err := r.store.Commit(&b)
	if err != nil || r.wait(lsn) != nil {
		t.Fatal(err)
	}
	r.stop()
	s, err := store.Open(store.OS(), r.dir, r.options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	_, err = Open(Config{Store: s, Engine: r.engine, Alarms: r.alarms, Clock: r.clock})
	if err == nil {
		t.Fatal("opened with a definition of an unknown version")
	}
}

// TestCleanerMovesWhatIsHeldForLong has one message in 500 stay while the log goes round.
func TestCleanerMovesWhatIsHeldForLong(t *testing.T) {
	t.Parallel()
	r := &rig{t: t, dir: t.TempDir(), clock: &steppedClock{}}
	r.options = store.Options{SegmentBytes: 64 << 10, SlackBytes: 64 << 10}
	r.start()
	t.Cleanup(r.stop)
	q := r.queue("q", nil, "durable")
	r.queue("waits", nil, "durable")
	var held []uint64
	want := []string{}
	const n = 10_000
	body := make([]byte, 200)
	for i := range n {
		copy(body, fmt.Sprintf("%06d", i))
		if i%500 == 0 {
			r.publish("", "waits", string(body))
		}
		r.publish("", "q", string(body))
		d, _, ok, err := q.Get(false)
		if !ok || err != nil {
			t.Fatalf("message %d: %t, %v", i, ok, err)
		}
		if i%500 == 7 {
			held = append(held, d.Pos)
			want = append(want, string(body))
			continue
		}
		q.Ack([]uint64{d.Pos})
	}
	if got := len(r.drain("waits")); got != n/500 {
		t.Errorf("got %d that waited, want %d", got, n/500)
	}
	q.Requeue(held)
	for i := range want {
		d, _, ok, err := q.Get(false)
		if !ok || err != nil || string(d.Record.Body) != want[i] {
			t.Fatalf("held message %d: got %.10q, %t, %v", i, d.Record.Body, ok, err)
		}
	}
	const limit = 1 << 20
	for commits := 0; r.store.Stats().LogBytes > limit; commits++ { // the cleaner needs commits
		if lsn, err := r.ids.mark(); err != nil || r.wait(lsn) != nil || commits == 2000 {
			t.Fatalf("the log keeps %d bytes for %d messages, want at most %d",
				r.store.Stats().LogBytes, len(want), limit)
		}
	}
	r.crash()
	r.wantDrained("q", want...)
	if got := r.Stats().Unreadable; got != 0 {
		t.Errorf("got %d unreadable", got)
	}
}
