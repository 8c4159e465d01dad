package delay

import (
	"bytes"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// firings collects which alarms fired and when.
type firings struct {
	clock *fakeClock
	mu    sync.Mutex
	list  []firing
}

type firing struct {
	name string
	at   int64 // by the clock, unix milliseconds
}

// named returns a function for an alarm that notes its firing.
func (f *firings) named(name string) func(int64) {
	return func(int64) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.list = append(f.list, firing{name, f.clock.Now().UnixMilli()})
	}
}

func (f *firings) expect(t *testing.T, want ...firing) {
	t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff(want, f.list, cmp.AllowUnexported(firing{})); diff != "" {
		t.Errorf("fired (-want +got):\n%s", diff)
	}
	f.list = nil
}

// inBubble runs a test with running alarms in virtual time.
func inBubble(t *testing.T, test func(*testing.T, *Alarms, *firings)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clock := &fakeClock{}
		a := NewAlarms(clock, nil)
		a.Start()
		defer a.Stop()
		test(t, a, &firings{clock: clock})
	})
}

func TestAlarmsFireInOrderAtTheirInstants(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, a *Alarms, f *firings) {
		one, two, three := f.clock.in(time.Second), f.clock.in(2*time.Second), f.clock.in(3*time.Second)
		a.New(f.named("three")).Set(three)
		a.New(f.named("one")).Set(one)
		a.New(f.named("two")).Set(two)
		time.Sleep(time.Hour)
		f.expect(t, firing{"one", one}, firing{"two", two}, firing{"three", three})
		if got := a.Stats(); got.Set != 0 || got.Fired != 3 || got.Wakes != 3 {
			t.Errorf("stats: got %+v, want 3 fired in 3 wakes and none set", got)
		}
	})
}

func TestAlarmsNeverFireEarlyWithinAMillisecond(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, a *Alarms, f *firings) {
		f.clock.step(700 * time.Microsecond)
		due := f.clock.in(0) + 1 // 300 µs from now
		started := time.Now()
		a.New(f.named("due")).Set(due)
		time.Sleep(299 * time.Microsecond)
		f.expect(t)
		time.Sleep(time.Microsecond)
		f.expect(t, firing{"due", due})
		if waited := time.Since(started); waited != 300*time.Microsecond {
			t.Errorf("waited %v, want 300µs", waited)
		}
		a.New(f.named("one")).Set(due + 10)
		a.New(f.named("a millisecond after")).Set(due + 11)
		time.Sleep(10 * time.Millisecond)
		f.expect(t, firing{"one", due + 10})
	})
}

func TestAlarmsSetAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, a *Alarms, f *firings) {
		other := f.clock.in(30 * time.Minute)
		a.New(f.named("other")).Set(other)
		al := a.New(f.named("moved"))
		al.Set(f.clock.in(time.Hour))
		al.Set(f.clock.in(time.Minute)) // now the first
		early := f.clock.in(time.Minute)
		time.Sleep(2 * time.Minute)
		f.expect(t, firing{"moved", early})

		al.Set(f.clock.in(time.Minute))
		al.Set(f.clock.in(time.Hour)) // no longer the first
		late := f.clock.in(time.Hour)
		time.Sleep(3 * time.Hour)
		f.expect(t, firing{"other", other}, firing{"moved", late})

		al.Set(0) // long past
		f.expect(t, firing{"moved", f.clock.in(0)})
	})
}

func TestAlarmsDoNotWakeWhenNothingIsSet(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, a *Alarms, f *firings) {
		al := a.New(f.named("cleared"))
		al.Set(f.clock.in(time.Hour))
		al.Clear()
		al.Clear() // again does no harm
		time.Sleep(1000 * time.Hour)
		f.expect(t)
		if got := a.Stats().Wakes; got != 0 {
			t.Errorf("wakes: got %d, want 0", got)
		}
	})
}

func TestAlarmsHundredYearsAhead(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, a *Alarms, f *firings) {
		century := f.clock.in(0) + int64(100*365*24*time.Hour/time.Millisecond)
		a.New(f.named("century")).Set(century)
		a.New(f.named("never")).Set(math.MaxInt64)
		time.Sleep(99 * 365 * 24 * time.Hour)
		f.expect(t)
		time.Sleep(2 * 365 * 24 * time.Hour)
		f.expect(t, firing{"century", century})
	})
}

func TestAlarmsMayBeSetAndClearedByTheirFunctions(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, a *Alarms, f *firings) {
		start := f.clock.in(0)
		victim := a.New(f.named("victim"))
		var again *Alarm
		n := 0
		again = a.New(func(now int64) {
			f.named("again")(now)
			victim.Clear()
			if n++; n < 3 {
				again.Set(now + 1000)
			}
		})
		again.Set(start + 1000)
		victim.Set(start + 1000) // after again, by the order of setting
		time.Sleep(time.Minute)
		f.expect(t, firing{"again", start + 1000}, firing{"again", start + 2000}, firing{"again", start + 3000})
	})
}

func TestAlarmsClockStepsForward(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		notice func(*Alarms, *firings) // how Alarms comes to look at the clock
	}{
		{"noticed by the watcher", func(a *Alarms, _ *firings) { a.Recheck() }},
		{"noticed when an earlier alarm is set", func(a *Alarms, f *firings) {
			a.New(func(int64) {}).Set(f.clock.in(-2 * time.Hour))
		}},
		{"noticed at the next wake", untilNextWake},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, a *Alarms, f *firings) {
				a.New(func(int64) {}).Set(f.clock.in(time.Minute))
				a.New(f.named("due")).Set(f.clock.in(time.Hour))
				f.clock.step(2 * time.Hour)
				c.notice(a, f)
				f.expect(t, firing{"due", f.clock.in(0)})
				if got := a.Stats(); got.StepsForward != 1 || got.StepsBack != 0 {
					t.Errorf("steps: got %+v, want one forward", got)
				}
			})
		})
	}
}

func untilNextWake(*Alarms, *firings) { time.Sleep(time.Minute) }

func TestAlarmsClockStepsBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, a *Alarms, f *firings) {
		due := f.clock.in(time.Hour)
		a.New(f.named("due")).Set(due)
		f.clock.step(-30 * time.Minute)
		time.Sleep(89 * time.Minute) // past the armed timer
		f.expect(t)
		time.Sleep(2 * time.Minute)
		f.expect(t, firing{"due", due})
		if got := a.Stats(); got.StepsForward != 0 || got.StepsBack != 1 {
			t.Errorf("steps: got %+v, want one back", got)
		}
	})
}

func TestAlarmsLogSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		clock := &fakeClock{}
		a := NewAlarms(clock, slog.New(slog.NewTextHandler(&log, nil)))
		a.Start()
		clock.step(90 * time.Second)
		a.Recheck()
		clock.step(50 * time.Millisecond) // NTP at work, not a step
		a.Recheck()
		synctest.Wait()
		a.Stop()
		want := `msg="wall clock was set" part=alarms by=1m30s`
		if got := log.String(); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("log: got %q, want one line with %q", got, want)
		}
	})
}

func TestAlarmsStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := &fakeClock{}
		f := &firings{clock: clock}
		a := NewAlarms(clock, nil)
		begun, finish := make(chan bool), make(chan bool)
		a.New(func(now int64) {
			close(begun)
			<-finish
			f.named("slow")(now)
		}).Set(clock.in(-time.Second))
		late := a.New(f.named("late"))
		late.Set(clock.in(0))
		a.Start()
		<-begun
		stopped := make(chan bool)
		go func() { a.Stop(); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("Stop did not wait for the function that was running")
		default:
		}
		close(finish)
		<-stopped
		late.Set(clock.in(0))
		time.Sleep(time.Hour)
		f.expect(t, firing{"slow", clock.in(-time.Hour)})
	})
}

func TestAlarmsBeforeStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := &fakeClock{}
		f := &firings{clock: clock}
		a := NewAlarms(clock, nil)
		a.New(f.named("due")).Set(clock.in(time.Second))
		time.Sleep(time.Minute)
		f.expect(t)
		a.Start()
		f.expect(t, firing{"due", clock.in(0)})
		a.Stop()

		NewAlarms(clock, nil).Stop() // without Start
	})
}

// TestAlarmHeapAgainstModel plays random operations on the heap and on a plain map.
func TestAlarmHeapAgainstModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var h alarmHeap
	model := map[*Alarm]int64{}
	alarms := make([]*Alarm, 200)
	for i := range alarms {
		alarms[i] = &Alarm{index: -1}
	}
	for range 20_000 {
		al, at := alarms[rng.IntN(len(alarms))], rng.Int64N(100)
		switch _, in := model[al]; {
		case !in:
			h.add(alarmItem{at, al})
			model[al] = at
		case rng.IntN(2) == 0:
			h.move(al.index, at)
			model[al] = at
		default:
			h.remove(al.index)
			delete(model, al)
		}
		checkHeap(t, h, model)
		if t.Failed() {
			return
		}
	}
}

func checkHeap(t *testing.T, h alarmHeap, model map[*Alarm]int64) {
	t.Helper()
	if len(h) != len(model) {
		t.Errorf("heap has %d items, want %d", len(h), len(model))
	}
	earliest := int64(math.MaxInt64)
	for i, it := range h {
		if at, in := model[it.alarm]; !in || at != it.at || it.alarm.index != i {
			t.Errorf("item %d: got %d index %d, want %d (in: %v)", i, it.at, it.alarm.index, at, in)
		}
		earliest = min(earliest, it.at)
	}
	if len(h) > 0 && h.first().at != earliest {
		t.Errorf("first: got %d, want %d", h.first().at, earliest)
	}
	if slices.ContainsFunc(h[len(h):cap(h)], func(it alarmItem) bool { return it.alarm != nil }) {
		t.Error("a removed alarm is still referenced")
	}
}
