package broker

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/amqp"
)

func withPriority(n uint8) option {
	return func(p *amqp.Properties) {
		p.Priority = n
		p.Set(amqp.FlagPriority)
	}
}

func priorities(highest int32) amqp.Table { return amqp.Table{argMaxPriority: highest} }

func TestPriorityQueueGivesHighestFirstAndKeepsOrderWithin(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", priorities(5))
	r.publish("", "q", "none")
	r.publish("", "q", "5a", withPriority(5))
	r.publish("", "q", "1a", withPriority(1))
	r.publish("", "q", "200", withPriority(200)) // counts as 5
	r.publish("", "q", "1b", withPriority(1))
	r.publish("", "q", "0", withPriority(0))
	r.wantDrained("q", "5a", "200", "1a", "1b", "none", "0")
}

func TestPriorityPropertyMeansNothingToAPlainQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil)
	r.publish("", "q", "a")
	r.publish("", "q", "b", withPriority(9))
	r.wantDrained("q", "a", "b")
}

func TestPriorityMessageRequeuedReturnsToItsPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", priorities(2))
	for _, body := range []string{"a", "b"} {
		r.publish("", "q", body, withPriority(1))
	}
	d, _, _, _ := q.Get(false)
	r.publish("", "q", "high", withPriority(2))
	q.Requeue([]uint64{d.Pos})
	r.wantDrained("q", "high", "a", "b")
}

func TestPriorityQueueSurvivesRestarts(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stop", "crash"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.queue("q", priorities(3), "durable")
			want := []string{}
			again := r.restart
			if how == "crash" {
				again = r.crash
			}
			for round := range 3 {
				for p := range uint8(4) {
					r.publish("", "q", "settled", withPriority(p))
				}
				d := r.takeSettled("q", 4)
				r.publish("", "q", "h"+strconv.Itoa(round), withPriority(3))
				r.publish("", "q", "l"+strconv.Itoa(round), withPriority(1))
				r.find("q").Ack(d)
				again()
				want = []string{}
				for i := range round + 1 {
					want = append(want, "h"+strconv.Itoa(i))
				}
				for i := range round + 1 {
					want = append(want, "l"+strconv.Itoa(i))
				}
				if got := r.peek("q"); !slices.Equal(got, want) {
					t.Fatalf("round %d: got %v, want %v", round, got, want)
				}
			}
			r.wantDrained("q", want...)
		})
	}
}

// takeSettled holds the messages whose body is "settled" and returns their positions.
func (r *rig) takeSettled(queue string, n int) (positions []uint64) {
	r.t.Helper()
	q := r.find(queue)
	var back []uint64
	for len(positions) < n {
		d, _, ok, err := q.Get(false)
		if err != nil || !ok {
			r.t.Fatalf("got %d of %d, %v", len(positions), n, err)
		}
		if string(d.Record.Body) == "settled" {
			positions = append(positions, d.Pos)
		} else {
			back = append(back, d.Pos)
		}
	}
	q.Requeue(back)
	return positions
}

// peek returns the bodies of all ready messages in order and puts them back.
func (r *rig) peek(queue string) (bodies []string) {
	r.t.Helper()
	q := r.find(queue)
	var back []uint64
	for {
		d, _, ok, err := q.Get(false)
		if err != nil {
			r.t.Fatal(err)
		}
		if !ok {
			q.Requeue(back)
			return bodies
		}
		bodies, back = append(bodies, string(d.Record.Body)), append(back, d.Pos)
	}
}

func TestPriorityQueueRedeliveredAfterStopIsExactByPriority(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue("q", priorities(3), "durable")
	r.publish("", "q", "low", withPriority(1))
	r.publish("", "q", "high", withPriority(3))
	d, _, _, _ := q.Get(false)
	q.Requeue([]uint64{d.Pos})
	r.restart()
	for _, want := range []bool{true, false} {
		d, _, ok, err := r.find("q").Get(true)
		if err != nil || !ok || d.Redelivered != want {
			t.Errorf("%s: got redelivered %t (%t, %v), want %t", d.Record.Body, d.Redelivered, ok, err, want)
		}
	}
}

// RabbitMQ drops from the head: the highest priority goes first.
func TestPriorityQueueFullDropsItsHead(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("q", amqp.Table{argMaxPriority: int32(3), argMaxLength: int32(2)})
		r.publish("", "q", "high", withPriority(3))
		r.publish("", "q", "a")
		r.publish("", "q", "b")
		synctest.Wait()
		r.wantDrained("q", "a", "b")
	})
}

func TestPriorityQueueExpiresWhateverStandsBeforeIt(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("q", amqp.Table{argMaxPriority: int32(3), argTTL: int32(1000)})
		r.publish("", "q", "low", withPriority(1))
		pass(500 * time.Millisecond)
		r.publish("", "q", "high", withPriority(3))
		r.publish("", "q", "own", withPriority(2), withExpiration("200"))
		pass(300 * time.Millisecond)
		r.wantReady("q", 2)
		pass(250 * time.Millisecond)
		r.wantDrained("q", "high")
	})
}

func TestPriorityQueuePurgedAndDeletedLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", priorities(9), "durable")
	for p := range uint8(10) {
		r.publish("", "q", "x", withPriority(p))
	}
	if n, err := r.QueuePurge("q"); n != 10 || err != nil {
		t.Errorf("purge: got %d, %v, want 10", n, err)
	}
	r.publish("", "q", "x", withPriority(4))
	if n, err := r.QueueDelete("q", false, false); n != 1 || err != nil {
		t.Errorf("delete: got %d, %v, want 1", n, err)
	}
	r.queue("q", priorities(9), "durable")
	r.crash()
	r.wantReady("q", 0)
}

func TestPriorityOfADeadLetterCounts(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.queue("dead", priorities(3), "durable")
		q := r.queue("q", amqp.Table{argDLX: "", argDLXKey: "dead"}, "durable")
		r.publish("", "q", "low", withPriority(1))
		r.publish("", "q", "high", withPriority(3))
		for range 2 {
			d, _, _, _ := q.Get(false)
			q.Reject([]uint64{d.Pos})
		}
		r.wantDrained("dead", "high", "low")
	})
}

// What was settled at a position holds for good, so none may be handed out a second time.
func TestPositionsOfAPriorityAreNotUsedAgainAfterACrash(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", priorities(3), "durable")
	r.publish("", "q", "settled", withPriority(2))
	r.publish("", "q", "settled", withPriority(1))
	r.wantDrained("q", "settled", "settled")
	r.crash()
	r.publish("", "q", "kept", withPriority(1))
	r.publish("", "q", "first", withPriority(2))
	r.crash()
	r.wantDrained("q", "first", "kept")
}
