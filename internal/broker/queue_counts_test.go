package broker

import (
	"strings"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// comeBack takes the first n messages and requeues them.
func (r *rig) comeBack(queue string, n int) {
	r.t.Helper()
	q := r.find(queue)
	var held []uint64
	for range n {
		d, _, ok, err := q.Get(false)
		if err != nil || !ok {
			r.t.Fatalf("get from %s: %t, %v", queue, ok, err)
		}
		held = append(held, d.Pos)
	}
	q.Requeue(held)
}

// firstCount takes the first message and returns how often it came back.
func (r *rig) firstCount(queue string) int64 {
	r.t.Helper()
	d, _, ok, err := r.find(queue).Get(true)
	if err != nil || !ok {
		r.t.Fatalf("get from %s: %t, %v", queue, ok, err)
	}
	return count(r.t, &d)
}

// storedCounts stops the rig, tells of how many chunks the store has counts, and starts it.
func (r *rig) storedCounts() (n int) {
	r.t.Helper()
	r.stop()
	s, err := store.Open(r.disk, r.dir, r.options)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range s.Recovered().Definitions {
		if strings.HasPrefix(d.Key, countPrefix) {
			n++
		}
	}
	if err := s.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.start()
	return n
}

func TestDeliveryCountsSurviveStopAndCrash(t *testing.T) {
	t.Parallel()
	for how, again := range map[string]func(*rig){"stop": (*rig).restart, "crash": (*rig).crash} {
		r := newRig(t)
		r.queue("q", quorum(nil), "durable")
		for _, body := range numbered("m", 3*chunkSpan) {
			r.publish("", "q", body)
		}
		r.comeBack("q", 2*chunkSpan+1)
		r.comeBack("q", chunkSpan+1)
		r.comeBack("q", 1)
		again(r)
		again(r)
		r.comeBack("q", 1)
		again(r)
		for i := range 3 * chunkSpan {
			want := int64(0)
			switch {
			case i == 0:
				want = 4
			case i <= chunkSpan:
				want = 2
			case i <= 2*chunkSpan:
				want = 1
			}
			if got := r.firstCount("q"); got != want {
				t.Fatalf("%s: message %d came back %d times, want %d", how, i, got, want)
			}
		}
	}
}

func TestDeliveryLimitCountsOverARestart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("dead", nil, "durable")
	r.queue("q", quorum(amqp.Table{argDeliveryLimit: int32(2), argDLX: "", argDLXKey: "dead"}), "durable")
	r.publish("", "q", "m")
	for i := range 3 {
		r.wantReady("dead", 0)
		r.comeBack("q", 1)
		if i == 1 {
			r.crash()
		}
	}
	r.wantReady("q", 0)
	r.wantDrained("dead", "m")
}

// What is not durable when the process is killed may be forgotten; nothing is counted twice.
func TestDeliveryCountsAreNeverTooHighAfterAKill(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", quorum(amqp.Table{argDeliveryLimit: int32(-1)}), "durable")
	r.publish("", "q", "m")
	r.crash()
	for done := int64(0); done < 50; {
		for range 1 + done%7 {
			r.comeBack("q", 1)
			done++
		}
		r.kill()
		d, _, ok, err := r.find("q").Get(false)
		if err != nil || !ok {
			t.Fatalf("get: %t, %v", ok, err)
		}
		if got := count(t, &d); got > done || got < 0 {
			t.Fatalf("came back %d times, want no more than %d", got, done)
		}
		r.find("q").Requeue([]uint64{d.Pos})
		done++
	}
}

func TestDeliveryCountsGoWithTheirMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", quorum(nil), "durable")
	r.queue("classic", nil, "durable")
	for range 3 * chunkSpan {
		r.publish("", "q", "m")
	}
	r.publish("", "classic", "m")
	r.comeBack("classic", 1)
	r.comeBack("q", 2*chunkSpan)
	if got := r.storedCounts(); got != 2 {
		t.Errorf("got counts of %d chunks, want 2", got)
	}
	for range chunkSpan {
		r.get("q")
	}
	if got := r.storedCounts(); got != 1 {
		t.Errorf("got counts of %d chunks after the first is gone, want 1", got)
	}
	r.comeBack("q", 1)
	if _, err := r.QueueDelete("q", false, false); err != nil {
		t.Fatal(err)
	}
	if got := r.storedCounts(); got != 0 {
		t.Errorf("got counts of %d chunks of a deleted queue", got)
	}
}
