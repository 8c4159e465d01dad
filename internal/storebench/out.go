package storebench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/duepost/duepost/internal/store"
)

// burst publishes messages that are due at one instant before all others, and
// releases them. What of them is in runs is in the disk's cache.
func (r *Report) burst(ctx context.Context, c Config, s *store.Store, due int64) error {
	if err := publishAll(ctx, c, s, c.Burst, func(*rand.Rand) int64 { return due }); err != nil {
		return err
	}
	m := stopwatch()
	pops, err := release(ctx, s, due, c.Burst)
	if err != nil {
		return err
	}
	took, cpu := m.stop()
	n := float64(c.Burst)
	r.Burst, r.BurstRate = c.Burst, n/took.Seconds()
	r.BurstCPU, r.BurstPop = cpu.Seconds()*1e6/n, pops.Seconds()*1e6/n
	return nil
}

// out releases everything, or as much as asked for.
func (r *Report) out(ctx context.Context, c Config, s *store.Store) error {
	want := c.Count
	if c.Release > 0 {
		want = min(want, c.Release)
	}
	m := stopwatch()
	now := time.Now().Add(c.Within + 24*time.Hour).UnixMilli()
	if _, err := release(ctx, s, now, want); err != nil {
		return err
	}
	took, cpu := m.stop()
	r.Released = want
	n := float64(want)
	r.OutRate, r.OutCPU = n/took.Seconds(), cpu.Seconds()*1e6/n
	var err error
	r.PeakOut, err = residentMiB("VmHWM")
	return err
}

// release releases as the delay engine does, without routing, into one queue where
// each message is acknowledged at once. It returns when all that is durable, and
// the processor time that popping took.
func release(ctx context.Context, s *store.Store, now int64, want int) (pops time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var due []store.Due
	var group store.Batch
	var last store.LSN
	targets := []store.Target{{Queue: 1}}
	var positions [1024]uint64
	for done := 0; done < want && ctx.Err() == nil; done += len(due) {
		before := threadTime()
		due = s.PopDue(now, min(len(positions), want-done), due[:0])
		pops += threadTime() - before
		if len(due) == 0 {
			return pops, fmt.Errorf("only %d of %d came out", done, want)
		}
		group.Reset()
		for i := range due {
			targets[0].Pos++
			positions[i] = targets[0].Pos
			group.Move(&store.Move{
				Key: due[i].Key, Ref: due[i].Ref, Arrived: now, TTL: -1, Persistent: true, Targets: targets, Holds: 1,
			})
		}
		if last, err = s.Commit(&group); err != nil {
			return pops, err
		}
		s.Settle(1, positions[:len(due)], group.Refs)
	}
	return pops, s.Wait(ctx, last)
}
