package broker

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// heapBytes is how much of the heap is in use.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // what pools held goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// pushMany puts n messages into a queue, each with the TTL that ttl says. They share one record.
func (r *rig) pushMany(q *Queue, n int, ttl func(i int) int64) {
	r.t.Helper()
	ref, err := r.store.AppendTransient(&store.Message{Body: []byte("m"), TTL: noTTL}, n)
	if err != nil {
		r.t.Fatal(err)
	}
	now := r.arrivalMillis()
	for i := range n {
		q.push(q.reserve(nil), newEntry(ref, 1, now, 0), ttl(i), nil)
	}
}

// settleReady takes the first n messages and acknowledges them.
func (q *Queue) settleReady(n int) {
	held := make([]uint64, n)
	q.mu.Lock()
	for i := range held {
		held[i], _ = q.index.nextReady()
		q.index.hold(held[i])
	}
	q.mu.Unlock()
	q.Ack(held)
}

// Not parallel: it measures the heap of the whole process.
func TestTTLsOfAQueueCostNoMoreThan32BytesEachWhateverIsSettled(t *testing.T) {
	const n = 1_000_000
	r := &rig{t: t, dir: t.TempDir(), clock: &steppedClock{}, limits: Limits{IndexBytes: 1 << 30}}
	r.options = store.Options{SegmentBytes: 256 << 10}
	r.start()
	defer r.stop()
	plain, timed := r.queue("plain", nil), r.queue("timed", nil)
	start := heapBytes()
	r.pushMany(plain, n, func(int) int64 { return noTTL })
	without := heapBytes() - start
	start = heapBytes()
	r.pushMany(timed, n, func(i int) int64 { return int64(3_600_000 + i*7919%n) })
	each := func(bytes int64, n int) float64 { return float64(bytes-without) / float64(n) }
	if got := each(heapBytes()-start, n); got > 32 || got < 8 {
		t.Errorf("a TTL costs %.1f bytes, want no more than 32", got)
	} else {
		t.Logf("a message costs %.1f bytes, a TTL of its own %.1f more", float64(without)/n, got)
	}
	for left := n; left > n/16; left /= 2 {
		timed.settleReady(left / 2)
		if got := float64(cap(timed.expires)*16) / float64(timed.Messages()); got > 32 {
			t.Errorf("%d of them left: the TTL costs %.1f bytes for each", timed.Messages(), got)
		}
	}
	timed.settleReady(timed.Messages())
	if got := cap(timed.expires); got > 2*shrinkFrom {
		t.Errorf("an empty queue keeps room for %d ends", got)
	}
}

// A message that expires in the midst of many costs a look at its own entry: of the chunks that are
// in the scratch file only its own is read, and the first of the queue, at which every dispatch looks.
func TestExpiryAmongManyScansNothing(t *testing.T) {
	t.Parallel()
	paged(t, func(t *testing.T, r *rig, disk *scratchDisk) {
		var reads atomic.Int64
		disk.after = func(call string) {
			if call == "read" {
				reads.Add(1)
			}
		}
		q := r.queue("q", amqp.Table{}, "durable")
		const n = 16 * chunkSpan
		for i := range n {
			ttl := 86_400_000 + i*7919%n
			if i == n/2 {
				ttl = 3_600_000
			}
			r.publish("", "q", fmt.Sprint(i), withExpiration(fmt.Sprint(ttl)))
		}
		synctest.Wait()
		before := reads.Load()
		pass(3601 * time.Second)
		if got := q.Messages(); got != n-1 {
			t.Errorf("got %d left, want %d", got, n-1)
		}
		if got := reads.Load() - before; got < 1 || got > 2 {
			t.Errorf("got %d of 16 chunks read, want 1 or 2", got)
		}
	})
}
