package delay

import (
	"log/slog"
	"sync"
	"time"
)

// stepThreshold is how far wall clock and monotonic clock may drift apart between two looks
// before it counts as a step. Slewing by NTP stays far below it.
const stepThreshold = 100 * time.Millisecond

// maxSleepMillis bounds one arming of the timer, so that the duration cannot overflow.
// When it runs out nothing is due and the timer is armed again. About 34 years.
const maxSleepMillis = 1 << 40

// Alarms runs functions at wall-clock instants.
//
// One goroutine waits on one timer, which is armed for the earliest alarm and not armed when
// there is none. Invariant, whenever mu is free and the goroutine is not firing: the timer is
// armed for heap[0], or heap is empty and the timer is stopped.
//
// The timer runs on the monotonic clock and alarms are wall-clock instants, so a set clock
// makes an armed timer wrong. Steps are noticed by comparing both clocks whenever Alarms
// reads the time: at each wake, at each Set that changes the earliest alarm, and at Recheck,
// which [StepWatcher] calls the moment the clock is set. A step back costs one idle wake and
// fires nothing early, because each alarm is compared with the wall clock before it fires.
type Alarms struct {
	clock Clock
	log   *slog.Logger
	start time.Time // has a monotonic reading; elapsed time is measured from here
	timer *time.Timer
	quit  chan struct{}
	done  chan struct{} // closed when the goroutine has ended; nil before Start

	mu       sync.Mutex // guards all below; a leaf lock: nothing is called under it
	heap     alarmHeap
	running  bool          // between Start and Stop
	firing   bool          // the goroutine is at work and arms the timer when it ends
	skew     time.Duration // wall clock minus monotonic clock when last looked at
	step     time.Duration // seen but not yet logged
	forward  uint64
	backward uint64
	fired    uint64
	wakes    uint64
}

// Alarm is one function with at most one instant at which to run it. Made by [Alarms.New].
type Alarm struct {
	alarms *Alarms
	fire   func(nowMillis int64)
	index  int // place in alarms.heap, -1 when not set; guarded by alarms.mu
}

// AlarmStats are the counters of an Alarms.
type AlarmStats struct {
	Set          int    // alarms that wait
	Fired        uint64 // alarms run so far
	Wakes        uint64 // times the timer went off
	StepsForward uint64 // times the wall clock was seen to jump ahead
	StepsBack    uint64 // times the wall clock was seen to jump back
}

// NewAlarms returns an Alarms that takes the time from clock. A nil log discards.
// Alarms may be made and set before Start; none fires before it.
func NewAlarms(clock Clock, log *slog.Logger) *Alarms {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &Alarms{
		clock: clock,
		log:   log.With("part", "alarms"),
		start: time.Now(),
		timer: time.NewTimer(time.Hour),
		quit:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	a.timer.Stop()
	a.skew = a.currentSkew(clock.Now())
	return a
}

// Start starts the goroutine. It is called once.
func (a *Alarms) Start() {
	a.mu.Lock()
	a.running = true
	a.armLocked(a.lookLocked())
	a.mu.Unlock()
	go a.run()
}

// Stop ends the goroutine and waits for the function that is running, if any. After it
// nothing fires; Set and Clear have no effect. It must not be called from an alarm's function.
func (a *Alarms) Stop() {
	a.mu.Lock()
	started := a.running
	a.running = false
	a.timer.Stop()
	a.mu.Unlock()
	if started {
		close(a.quit)
		<-a.done
	}
}

// New returns an alarm that is not set. Its function runs on the goroutine of Alarms, without
// locks, one at a time, so it must be short; it may set and clear any alarm.
func (a *Alarms) New(fire func(nowMillis int64)) *Alarm {
	return &Alarm{alarms: a, fire: fire, index: -1}
}

// Set makes the alarm fire once at the given instant or as soon after it as possible, instead
// of whenever it was set for before. An instant in the past fires at once. It does not block
// and may be called under a lock.
func (al *Alarm) Set(atMillis int64) {
	a := al.alarms
	a.mu.Lock()
	defer a.mu.Unlock()
	first := a.heap.first()
	if al.index < 0 {
		a.heap.add(alarmItem{at: atMillis, alarm: al})
	} else {
		a.heap.move(al.index, atMillis)
	}
	if a.heap.first() != first {
		a.armLocked(a.lookLocked())
	}
}

// Clear makes the alarm not fire. It does not wait: a function that has just begun to run on
// the goroutine of Alarms is not stopped, so the function must look whether it still has
// something to do. It does not block and may be called under a lock.
func (al *Alarm) Clear() {
	a := al.alarms
	a.mu.Lock()
	defer a.mu.Unlock()
	if al.index < 0 {
		return
	}
	wasFirst := al.index == 0
	a.heap.remove(al.index)
	if wasFirst {
		a.armLocked(a.lookLocked())
	}
}

// Recheck compares wall clock and monotonic clock now and arms the timer anew if the wall
// clock was set. It does not block.
func (a *Alarms) Recheck() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.armLocked(a.lookLocked())
}

// Stats returns the counters.
func (a *Alarms) Stats() AlarmStats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return AlarmStats{
		Set:          len(a.heap),
		Fired:        a.fired,
		Wakes:        a.wakes,
		StepsForward: a.forward,
		StepsBack:    a.backward,
	}
}

// run waits; fireNext works.
func (a *Alarms) run() {
	defer close(a.done)
	for {
		select {
		case <-a.quit:
			return
		case <-a.timer.C:
			a.countWake()
			for a.fireNext() {
			}
		}
	}
}

func (a *Alarms) countWake() {
	a.mu.Lock()
	a.wakes++
	a.mu.Unlock()
}

// fireNext runs the earliest alarm if the wall clock has reached it and reports whether it
// did. If not, it leaves the timer armed.
func (a *Alarms) fireNext() bool {
	a.mu.Lock()
	now := a.lookLocked()
	step := a.step
	a.step = 0
	nowMillis := now.UnixMilli()
	a.firing = a.running && len(a.heap) > 0 && a.heap[0].at <= nowMillis
	var next *Alarm
	if a.firing {
		next = a.heap[0].alarm
		a.heap.remove(0)
		a.fired++
	} else {
		a.armLocked(now)
	}
	a.mu.Unlock()

	if step != 0 {
		a.log.Warn("wall clock was set", "by", step)
	}
	if next == nil {
		return false
	}
	next.fire(nowMillis)
	return true
}

// lookLocked reads the wall clock and notices whether it was set since the last look.
func (a *Alarms) lookLocked() time.Time {
	now := a.clock.Now()
	skew := a.currentSkew(now)
	switch step := skew - a.skew; {
	case step >= stepThreshold:
		a.forward++
		a.step += step
	case step <= -stepThreshold:
		a.backward++
		a.step += step
	}
	a.skew = skew
	return now
}

// currentSkew is how much further the wall clock has gone since start than the monotonic
// clock. Round(0) strips the monotonic reading, which Sub would prefer.
func (a *Alarms) currentSkew(now time.Time) time.Duration {
	return now.Round(0).Sub(a.start.Round(0)) - time.Since(a.start)
}

// armLocked arms the timer for the earliest alarm, or stops it if there is none. A step that
// is not yet logged wakes the goroutine at once, which logs and arms again: nothing may be
// logged here, because a caller of Set may hold a lock.
func (a *Alarms) armLocked(now time.Time) {
	switch {
	case !a.running || a.firing:
	case a.step != 0:
		a.timer.Reset(0)
	case len(a.heap) == 0:
		a.timer.Stop()
	default:
		a.timer.Reset(untilMillis(now, a.heap[0].at))
	}
}

// untilMillis is the time from now to the instant at, not negative and within maxSleepMillis.
func untilMillis(now time.Time, at int64) time.Duration {
	nowMillis := now.UnixMilli()
	if at <= nowMillis {
		return 0
	}
	wait := min(at-nowMillis, maxSleepMillis)
	fraction := time.Duration(now.Nanosecond()) % time.Millisecond
	return time.Duration(wait)*time.Millisecond - fraction
}
