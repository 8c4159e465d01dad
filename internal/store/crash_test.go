package store

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests, 0 = random")

func testSeed(t testing.TB) uint64 {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d (repeat with -seed)", seed)
	return seed
}

func tiny() Options {
	return Options{SegmentBytes: 2048, FrameBytes: 256, ResidentSegments: 1, SlackBytes: 4096, TransientBytes: 4096,
		LargeBytes: 200, BodyFileBytes: 24 << 10,
		FreshBytes: 4096, RunBytes: 3000, RunBlockBytes: 512, MaxRuns: 4, GatherBytes: 20 * findingBytes}
}

func TestModel(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	for round := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, seed+round, tinyByTurns(round))
			for range 5 {
				if !r.open() {
					t.Fatal("power gone")
				}
				for range 150 {
					r.step()
					r.checkRuns()
				}
				r.check()
				if err := r.s.Close(); err != nil {
					t.Fatal(err)
				}
				r.durable = ^LSN(0) >> 1
				for i := range r.history {
					r.history[i].lsn = 1
				}
			}
		})
	}
}

// tinyInLog is tiny without body files, so that the log has records of all sizes.
func tinyInLog() Options {
	o := tiny()
	o.LargeBytes = 1 << 30
	return o
}

// tinyByTurns is one or the other.
func tinyByTurns(n uint64) Options {
	if n%2 == 0 {
		return tinyInLog()
	}
	return tiny()
}

// TestCrashEverywhere cuts the power at every call of a workload.
func TestCrashEverywhere(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	for _, n := range []uint64{1, 2} {
		for at, more := 1, true; more; at++ {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, seed+n, tinyByTurns(n))
				defer func() { r.s.Abandon() }()
				r.disk.cutAt = at
				more = !r.workload(60)
				r.survive()
			})
			if t.Failed() {
				t.Fatalf("seed %d, workload %d, power cut at call %d", seed, n, at)
			}
		}
	}
}

// TestCrashAtRandom cuts the power again and again in long workloads, also
// during recovery.
func TestCrashAtRandom(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	for round := range uint64(30) {
		t.Run(fmt.Sprint(seed+round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, seed+round, tinyByTurns(round))
				defer func() { r.s.Abandon() }()
				for range 12 {
					r.disk.cutAt = 1 + r.rnd.IntN(400)
					r.workload(400)
					if r.rnd.IntN(3) == 0 {
						r.disk = r.disk.kill(r.rnd.Uint64())
					} else {
						r.disk = r.disk.reboot(r.rnd.Uint64())
					}
				}
				r.survive()
			})
		})
	}
}

// workload opens the store and does n operations, or as many as the power
// allows. It reports whether it came to its end.
func (r *rig) workload(n int) bool {
	if !r.open() {
		return false
	}
	for range n {
		if !r.step() {
			r.s.Abandon()
			return false
		}
		r.checkRuns()
	}
	r.s.Abandon()
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	return !r.disk.cut
}

// survive opens the store after a power cut and checks what is there.
func (r *rig) survive() {
	r.t.Helper()
	r.disk = r.disk.reboot(r.rnd.Uint64())
	if !r.open() {
		r.t.Fatal("power gone")
	}
	for range 30 {
		r.step()
	}
	r.check()
	if err := r.s.Close(); err != nil {
		r.t.Fatal(err)
	}
}
