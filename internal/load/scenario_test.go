package load

import (
	"math"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestStampRoundTrip(t *testing.T) {
	t.Parallel()
	want := stamp{3, math.MaxUint64, time.Unix(1_900_000_000, 123_456_789), 49 * 24 * time.Hour}
	body := make([]byte, MinSize)
	want.put(body)
	got, err := readStamp(body)
	if err != nil || got != want {
		t.Errorf("readStamp = %+v, %v, want %+v", got, err, want)
	}
	if _, err := readStamp(body[:MinSize-1]); err == nil {
		t.Error("readStamp of a short body = nil error")
	}
}

func TestPlans(t *testing.T) {
	t.Parallel()
	o := Defaults()
	o.Messages, o.Publishers = 10, 3
	var total uint64
	for id := range uint32(3) {
		total += o.share(&publisher{id: id})
	}
	if total != 10 {
		t.Errorf("shares add up to %d, want 10", total)
	}

	o.DelayMin, o.DelayMax, o.Messages = time.Second, 1010*time.Millisecond, 3000
	next := o.spread(&publisher{id: 1})
	seen := map[time.Duration]int{}
	for seq := range uint64(1000) {
		d, ok := next(seq, time.Time{})
		if !ok || d < o.DelayMin || d > o.DelayMax {
			t.Fatalf("message %d: delay %v, %v, want one in range", seq, d, ok)
		}
		seen[d]++
	}
	if len(seen) != 11 {
		t.Errorf("%d different delays, want all 11 of the range", len(seen))
	}
	if _, ok := next(1000, time.Time{}); ok {
		t.Error("the plan goes on beyond its share")
	}

	o.DelayMax, o.Route = 10*time.Second, &Route{Step: time.Second}
	next, seen = o.spread(&publisher{}), map[time.Duration]int{}
	for seq := range uint64(1000) {
		d, _ := next(seq, time.Time{})
		seen[d]++
	}
	if len(seen) != 10 || seen[time.Second] == 0 || seen[10*time.Second] == 0 {
		t.Errorf("%d different delays, want the 10 of whole seconds: %v", len(seen), seen)
	}

	due := time.Unix(1000, 0)
	burst := o.at(&publisher{}, due)
	if d, _ := burst(0, due.Add(-1500*time.Microsecond)); d != 2*time.Millisecond {
		t.Errorf("1.5 ms before due: delay %v, want 2ms, never early", d)
	}
	if d, _ := burst(0, due.Add(time.Second)); d >= 0 {
		t.Errorf("after due: delay %v, want a negative one, which fails the run", d)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	o := Defaults()
	if got := o.pace(); got != 0 {
		t.Errorf("without a rate: %v between messages, want none", got)
	}
	if o.Rate = 2000; o.pace() != 2*time.Millisecond {
		t.Errorf("2000/s by 4 publishers: %v between messages of one, want 2ms", o.pace())
	}
}

// TestPacedPublisher: waiting for the time of a message takes the confirms that come meanwhile.
func TestPacedPublisher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		confirms := make(chan amqp.Confirmation)
		p := &publisher{confirms: confirms, steady: new(atomic.Bool)}
		at := time.Now().Add(time.Second)
		go func() { confirms <- amqp.Confirmation{DeliveryTag: 1, Ack: true} }()
		if err := p.until(t.Context(), at); err != nil || p.confirmed.Load() != 1 || time.Now().Before(at) {
			t.Errorf("until: %v, %d confirmed %v before its time", err, p.confirmed.Load(), time.Until(at))
		}
		close(confirms)
		if err := p.until(t.Context(), at.Add(time.Second)); err == nil {
			t.Error("until with a closed channel = nil error")
		}
	})
}

func TestOptionsValidate(t *testing.T) {
	t.Parallel()
	if err := Defaults().Validate(); err != nil {
		t.Errorf("Defaults().Validate() = %v", err)
	}
	err := Options{Queues: 2, DelayMin: 2, DelayMax: 1, Warmup: -1}.Validate()
	for _, want := range []string{"publishers:", "size: is 0, must be at least 32", "queues: is 2",
		"delays:", "duration"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want one with %q", err, want)
		}
	}
}

func TestMeasureKeepsNegativeMinimum(t *testing.T) {
	t.Parallel()
	m := newMeasure()
	if m.percentiles() != nil {
		t.Error("percentiles of nothing, want nil")
	}
	o := newMeasure()
	o.record(-3 * time.Millisecond)
	o.record(2 * time.Hour)
	m.record(10 * time.Millisecond)
	m.merge(o)
	p := m.percentiles()
	if p.Min != -3 || math.Round(p.P50) != 10 || p.Max < 3_599_000 {
		t.Errorf("percentiles = %+v, want min -3, p50 10, max about an hour", *p)
	}
}

func TestReadUsageOfThisProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	u, err := readUsage(os.Getpid(), true)
	if err != nil || u.rssBytes < 1<<20 {
		t.Errorf("readUsage = %+v, %v, want at least 1 MiB resident", u, err)
	}
	if _, err := readUsage(math.MaxInt32, false); err == nil {
		t.Error("readUsage of no process = nil error")
	}
}
