package broker

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/delay"
	"github.com/duepost/duepost/internal/store"
)

const pagedMessages = 12*chunkSpan + 100

// paged runs a test in a bubble with a broker that may keep two chunks in memory.
func paged(t *testing.T, test func(t *testing.T, r *rig, disk *scratchDisk)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disk := &scratchDisk{FS: store.OS()}
		r := &rig{t: t, dir: dir, clock: delay.SystemClock{}, limits: Limits{IndexBytes: 2 * pageBytes}, disk: disk}
		r.log = slog.New(slog.NewTextHandler(&disk.log, nil))
		r.options = store.Options{SegmentBytes: 256 << 10}
		r.start()
		defer r.stop()
		test(t, r, disk)
	})
}

// fill publishes numbered messages and waits until the pager has nothing to do.
func (r *rig) fill(queue string, n int, options ...option) []string {
	r.t.Helper()
	bodies := numbered("m", n)
	for _, b := range bodies {
		r.publish("", queue, b, options...)
	}
	synctest.Wait()
	return bodies
}

// wantPaged checks that a queue is about as far in the scratch file as it can be.
func (r *rig) wantPaged(chunks int) {
	r.t.Helper()
	if got := r.pager.inUse.Load() * blockSize * entryBytes; got > 4*pageBytes {
		r.t.Errorf("got %d bytes of entries in memory, want at most %d", got, 4*pageBytes)
	}
	if got := r.pager.scratch.Bytes(); got < int64(chunks)*pageBytes {
		r.t.Errorf("got %d bytes in the scratch file, want at least %d", got, chunks*pageBytes)
	}
}

func TestPagedQueueIsDeliveredInOrder(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]option{"persistent": nil, "transient": {transient}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paged(t, func(t *testing.T, r *rig, _ *scratchDisk) {
				q := r.queue("q", nil, "durable")
				want := r.fill("q", pagedMessages, options...)
				r.wantPaged(9)
				f, c := r.consume("q", 3*chunkSpan, ConsumerSpec{})
				synctest.Wait()
				first := f.take()
				c.Cancel()
				var back []uint64
				for _, d := range first {
					back = append(back, d.pos)
				}
				q.Requeue(back)
				synctest.Wait()
				if len(back) != 3*chunkSpan {
					t.Errorf("got %d deliveries, want %d", len(back), 3*chunkSpan)
				}
				r.wantPaged(9)
				f, _ = r.consume("q", -1, ConsumerSpec{NoAck: true})
				synctest.Wait()
				got := f.take()
				for i, d := range got {
					if d.redelivered != (i < 3*chunkSpan) {
						t.Fatalf("delivery %d: redelivered %t", i, d.redelivered)
					}
				}
				if bodies := bodiesOf(got); !slices.Equal(bodies, want) {
					t.Errorf("got %d messages %.200q, want %d", len(bodies), bodies[:min(5, len(bodies))], len(want))
				}
				if got := r.pager.scratch.Bytes(); got != 0 {
					t.Errorf("got %d bytes in the scratch file of an empty queue", got)
				}
			})
		})
	}
}

func bodiesOf(list []received) []string {
	bodies := make([]string, len(list))
	for i, d := range list {
		bodies[i] = d.body
	}
	return bodies
}

func TestPagedMessagesExpireWhereverTheyAre(t *testing.T) {
	t.Parallel()
	paged(t, func(t *testing.T, r *rig, _ *scratchDisk) {
		r.queue("dead", nil)
		r.queue("q", amqp.Table{argDLX: "", argDLXKey: "dead"}, "durable")
		const n = 5 * chunkSpan
		for i, end := range rand.New(rand.NewPCG(1, 1)).Perm(n) {
			r.publish("", "q", fmt.Sprint(i), withExpiration(fmt.Sprint(3_600_000+end)))
		}
		synctest.Wait()
		r.wantPaged(2)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		r.wantDrained("q")
		got := r.drain("dead")
		if slices.Sort(got); len(got) != n || len(slices.Compact(got)) != n {
			t.Errorf("got %d dead letters, want %d different ones", len(got), n)
		}
	})
}

func TestPagedQueueWithTTLExpiresInOrder(t *testing.T) {
	t.Parallel()
	paged(t, func(t *testing.T, r *rig, _ *scratchDisk) {
		r.queue("dead", nil, "durable")
		r.queue("q", amqp.Table{argDLX: "", argDLXKey: "dead", "x-message-ttl": int32(60_000)}, "durable")
		want := r.fill("q", pagedMessages)
		r.wantPaged(9)
		r.restart()
		r.wantPaged(9)
		time.Sleep(time.Minute)
		synctest.Wait()
		r.wantDrained("q")
		r.wantDrained("dead", want...)
	})
}

func TestPagedQueueDropsItsHead(t *testing.T) {
	t.Parallel()
	paged(t, func(t *testing.T, r *rig, _ *scratchDisk) {
		const keep = 9 * chunkSpan
		r.queue("q", amqp.Table{argMaxLength: int32(keep)}, "durable")
		want := r.fill("q", pagedMessages)
		r.wantPaged(6)
		r.wantDrained("q", want[len(want)-keep:]...)
	})
}

func TestPagedQueueIsPurgedAndDeleted(t *testing.T) {
	t.Parallel()
	paged(t, func(t *testing.T, r *rig, _ *scratchDisk) {
		for _, name := range []string{"purged", "deleted"} {
			r.queue(name, nil, "durable")
			r.fill(name, pagedMessages)
			r.wantPaged(9)
			if name == "purged" {
				if n, err := r.QueuePurge(name); n != pagedMessages || err != nil {
					t.Errorf("purged %d, %v, want %d", n, err, pagedMessages)
				}
			} else if n, err := r.QueueDelete(name, false, false); n != pagedMessages || err != nil {
				t.Errorf("deleted %d, %v, want %d", n, err, pagedMessages)
			}
			synctest.Wait()
			if left := r.store.Stats().LiveBytes; left > 1024 {
				t.Errorf("%s: %d bytes of the log are still held", name, left)
			}
			if mem, file := r.pager.inUse.Load(), r.pager.scratch.Bytes(); mem > 1 || file != 0 {
				t.Errorf("%s: %d blocks and %d bytes of scratch file left", name, mem, file)
			}
		}
	})
}

// Each priority is paged by itself.
func TestPagedPriorities(t *testing.T) {
	t.Parallel()
	paged(t, func(t *testing.T, r *rig, _ *scratchDisk) {
		r.queue("q", amqp.Table{"x-max-priority": int32(2), "x-message-ttl": int32(60_000)}, "durable")
		r.queue("dead", nil, "durable")
		r.queue("expires", amqp.Table{
			"x-max-priority": int32(2), "x-message-ttl": int32(60_000), argDLX: "", argDLXKey: "dead",
		}, "durable")
		var byPriority [3][]string
		for i := range pagedMessages {
			priority := uint8(i % 3)
			body := fmt.Sprint("m", i)
			byPriority[priority] = append(byPriority[priority], body)
			for _, q := range []string{"q", "expires"} {
				r.publish("", q, body, func(p *amqp.Properties) {
					p.Priority = priority
					p.Set(amqp.FlagPriority)
				})
			}
		}
		synctest.Wait()
		if got := r.pager.scratch.Bytes(); got < 10*pageBytes {
			t.Errorf("only %d bytes are paged", got)
		}
		r.wantDrained("q", slices.Concat(byPriority[2], byPriority[1], byPriority[0])...)
		r.restart()
		if got := r.pager.scratch.Bytes(); got < 5*pageBytes {
			t.Errorf("only %d bytes are paged after the restart", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		r.wantDrained("expires")
		got := r.drain("dead")
		if slices.Sort(got); len(got) != pagedMessages || len(slices.Compact(got)) != pagedMessages {
			t.Errorf("got %d dead letters, want %d different ones", len(got), pagedMessages)
		}
	})
}

// The cleaner moves messages whose entries are paged; then all is found again, before and after a
// crash.
func TestPagedMessagesFollowTheCleaner(t *testing.T) {
	t.Parallel()
	paged(t, func(t *testing.T, r *rig, _ *scratchDisk) {
		r.queue("waits", nil, "durable")
		r.queue("passes", nil, "durable")
		want := r.fill("waits", pagedMessages)
		cleaned := r.store.Stats().Cleaned
		for r.store.Stats().Cleaned < cleaned+8 {
			r.fill("passes", chunkSpan)
			r.drain("passes")
			lsn, err := r.ids.mark()
			if err != nil || r.wait(lsn) != nil {
				t.Fatal(err)
			}
		}
		r.wantPaged(9)
		for _, body := range want[:chunkSpan*5] {
			if got := r.get("waits"); got != body {
				t.Fatalf("got %q, want %q", got, body)
			}
		}
		r.crash()
		synctest.Wait()
		r.wantDrained("waits", want[chunkSpan*5:]...)
		if n := r.Broker.Stats().Unreadable; n != 0 {
			t.Errorf("%d messages lost", n)
		}
	})
}

// As long as the scratch file cannot be written, entries stay in memory.
func TestFullDiskKeepsEntriesInMemory(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"create", "write"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			paged(t, func(t *testing.T, r *rig, disk *scratchDisk) {
				disk.fail(call, syscall.ENOSPC)
				r.queue("q", nil, "durable")
				want := r.fill("q", pagedMessages)
				if got := r.pager.inUse.Load(); got < pagedMessages/blockSize {
					t.Errorf("got %d blocks in memory, want all %d", got, pagedMessages/blockSize)
				}
				disk.fail("", nil)
				time.Sleep(2 * pageRetry)
				synctest.Wait()
				r.wantPaged(9)
				r.wantDrained("q", want...)
				if len(disk.log.lines("cannot write scratch file")) == 0 {
					t.Error("nobody was told")
				}
			})
		})
	}
}

// As long as the scratch file cannot be read, the queue stands still; nothing is lost or out of
// order, and what the cleaner moves meanwhile is found.
func TestUnreadableScratchFileHoldsTheQueue(t *testing.T) {
	t.Parallel()
	paged(t, func(t *testing.T, r *rig, disk *scratchDisk) {
		q := r.queue("q", nil, "durable")
		want := r.fill("q", pagedMessages)
		r.wantPaged(9)
		pos := uint64(8 * chunkSpan)
		ref := pagedRef(t, q, pos)
		disk.fail("read", syscall.EIO)
		f, c := r.consume("q", -1, ConsumerSpec{NoAck: true})
		synctest.Wait()
		got := f.bodies()
		if len(got) > 6*chunkSpan {
			t.Errorf("%d messages were delivered, want those in memory", len(got))
		}
		if _, _, ok, err := q.Get(true); ok || err == nil {
			t.Errorf("basic.get: %t, %v, want an error", ok, err)
		}
		if _, err := q.purge(); err == nil {
			t.Error("purge: no error")
		}
		if to := (store.Ref{File: 1 << 30, Len: 1}); !r.Relocate(q.id, pos, ref, to) || !r.Relocate(q.id, pos, to, ref) {
			t.Error("a message whose entry cannot be read is not held")
		}
		if !r.Relocate(q.id, pos+1, store.Ref{File: 5}, store.Ref{File: 6}) { // not where it is
			t.Error("a message whose entry cannot be read is not held")
		}
		r.publish("", "q", "last")
		time.Sleep(3 * pageRetry)
		synctest.Wait()
		if n := len(f.bodies()); n != 0 {
			t.Errorf("%d messages were delivered out of order", n)
		}
		disk.fail("", nil)
		time.Sleep(2 * pageRetry)
		synctest.Wait()
		got = append(got, f.bodies()...)
		if want = append(want, "last"); !slices.Equal(got, want) {
			t.Errorf("got %d messages, want %d in order", len(got), len(want))
		}
		c.Cancel()
	})
}

// pagedRef returns the reference of a paged position, which stays paged.
func pagedRef(t *testing.T, q *Queue, pos uint64) store.Ref {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.index.chunk(pos / chunkSpan)
	if !c.paged {
		t.Fatalf("position %d is not paged", pos)
	}
	p, err := q.broker.pager.read(c.page, c.ready)
	if err != nil {
		t.Fatal(err)
	}
	defer q.broker.pager.discard(&p)
	return p[pos%chunkSpan/blockSize][pos%blockSize].ref
}

// What is restored is what there was, whether orderly or after a crash.
func TestPagedQueueIsTheSameAfterRestart(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(*rig){"restart": (*rig).restart, "crash": (*rig).crash} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paged(t, func(t *testing.T, r *rig, _ *scratchDisk) {
				q := r.queue("q", nil, "durable")
				bodies := r.fill("q", pagedMessages)
				f, _ := r.consume("q", 7*chunkSpan, ConsumerSpec{})
				synctest.Wait()
				var want []string
				var acks []uint64
				for i, d := range f.take() {
					if i%3 == 0 {
						want = append(want, d.body)
						continue
					}
					acks = append(acks, d.pos)
				}
				want = append(want, bodies[7*chunkSpan:]...)
				q.Ack(acks)
				again(r)
				synctest.Wait()
				if got := r.pager.inUse.Load() * blockSize * entryBytes; got > 8*pageBytes {
					t.Errorf("got %d bytes of entries in memory", got)
				}
				r.wantDrained("q", want...)
			})
		})
	}
}
