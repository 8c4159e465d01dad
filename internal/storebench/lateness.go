package storebench

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/duepost/duepost/internal/delay"
	"github.com/duepost/duepost/internal/store"
)

// LatenessConfig says what to measure with MeasureLateness.
type LatenessConfig struct {
	Dir      string
	Rate     int           // messages published per second
	Size     int           // bytes of each body
	Shortest time.Duration // delays are spread evenly over their logarithm
	Longest  time.Duration
	Warmup   time.Duration
	Duration time.Duration
}

// LatenessReport is how late the delay engine released, in milliseconds after the
// due instant, while it and the store did everything that they do.
type LatenessReport struct {
	Published float64 `json:"published_per_s"`
	Released  int     `json:"released"`
	P50       float64 `json:"lateness_p50_ms"`
	P99       float64 `json:"lateness_p99_ms"`
	P999      float64 `json:"lateness_p99.9_ms"`
	Max       float64 `json:"lateness_max_ms"`
	TimerP99  float64 `json:"timer_p99_ms"` // how late the machine's own timer is, in the same run
	Early     int     `json:"early"`
	Runs      uint64  `json:"messages_flushed_to_runs"`
	Written   float64 `json:"bytes_written_per_record_byte"` // moves and acknowledgements included
	CPU       float64 `json:"cpu_us_per_message"`
}

// MeasureLateness publishes at a steady rate to a delay engine on a store.
func MeasureLateness(ctx context.Context, c LatenessConfig) (*LatenessReport, error) {
	s, err := open(Config{Dir: c.Dir})
	if err != nil {
		return nil, err
	}
	clock := delay.SystemClock{}
	alarms := delay.NewAlarms(clock, nil)
	engine := delay.New(delay.Config{Store: s, Alarms: alarms, Clock: clock})
	sink := &lateSink{store: s}
	alarms.Start()
	engine.Start(sink)
	timer := startTimerProbe()
	r, total, err := c.publish(ctx, engine, sink)
	r.TimerP99 = quantile(timer.stop(), 0.99)
	st := s.Stats()
	r.Runs = st.Flushed
	if total > 0 {
		r.Written = float64(st.WrittenBytes+st.FlushedBytes+st.MergedBytes) / float64(total)
	}
	engine.Stop()
	alarms.Stop()
	sink.report(r)
	return r, errors.Join(err, s.Close())
}

// publish keeps the rate, in pieces of one millisecond. It returns the bytes of all
// records besides.
func (c *LatenessConfig) publish(ctx context.Context, engine *delay.Engine, sink *lateSink) (r *LatenessReport, bytes int64, err error) {
	rnd := rand.New(rand.NewPCG(1, 1))
	m := &store.Message{
		Exchange: []byte("orders"), RoutingKey: []byte("order.created"), Body: make([]byte, c.Size),
		ExchangeID: 1, TTL: -1, Persistent: true,
	}
	lo, hi := math.Log(float64(c.Shortest)), math.Log(float64(c.Longest))
	r = &LatenessReport{}
	start := time.Now()
	measured := start
	w := stopwatch()
	n, counted := 0, 0
	for ctx.Err() == nil {
		elapsed := time.Since(start)
		if elapsed > c.Warmup+c.Duration {
			break
		}
		if elapsed > c.Warmup && counted == 0 {
			counted, measured, w = n, time.Now(), stopwatch()
			sink.begin()
		}
		for want := int(elapsed.Seconds() * float64(c.Rate)); n < want; n++ {
			in := time.Duration(math.Exp(lo + rnd.Float64()*(hi-lo)))
			due := delay.CeilMillis(time.Now().Add(in))
			if _, _, err := engine.Add(m, due); err != nil {
				return r, 0, err
			}
		}
		time.Sleep(time.Millisecond)
	}
	_, busy := w.stop()
	r.Published = float64(n-counted) / time.Since(measured).Seconds()
	r.CPU = busy.Seconds() * 1e6 / float64(n-counted)
	return r, int64(n) * int64(recordOverhead+c.Size), ctx.Err()
}

// recordOverhead is what a record of the measurement has besides the body: 48 bytes
// of header and key, the names of the exchange and the routing key, and padding.
const recordOverhead = 48 + 1 + len("orders") + 1 + len("order.created") + 3

// lateSink moves everything to one queue, where it is acknowledged at once.
type lateSink struct {
	store     *store.Store
	pos       uint64
	positions []uint64 // scratch
	refs      []store.Ref

	mu    sync.Mutex
	on    bool
	late  []float64 // ms
	early int
}

func (s *lateSink) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = true
}

// Route implements delay.Sink.
func (s *lateSink) Route(batch []store.Due, out []delay.Outcome) {
	for i := range batch {
		s.pos++
		out[i].Verdict, out[i].Persistent = delay.Moved, true
		out[i].Targets = append(out[i].Targets, store.Target{Queue: 1, Pos: s.pos})
	}
}

// Push implements delay.Sink.
func (s *lateSink) Push(batch []store.Due, out []delay.Outcome) {
	now := float64(time.Now().UnixMicro()) / 1000
	s.mu.Lock()
	defer s.mu.Unlock()
	s.positions, s.refs = s.positions[:0], s.refs[:0]
	for i := range batch {
		s.positions, s.refs = append(s.positions, out[i].Targets[0].Pos), append(s.refs, batch[i].Ref)
	}
	s.store.Settle(1, s.positions, s.refs)
	for i := range batch {
		if !s.on {
			continue
		}
		late := now - float64(batch[i].Key.Due)
		if s.late = append(s.late, late); late < 0 {
			s.early++
		}
	}
}

func (s *lateSink) report(r *LatenessReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Released, r.Early = len(s.late), s.early
	slices.Sort(s.late)
	r.P50, r.P99, r.P999 = quantile(s.late, 0.5), quantile(s.late, 0.99), quantile(s.late, 0.999)
	r.Max = quantile(s.late, 1)
}

// quantile of a sorted list; 0 for an empty one.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// timerProbe sleeps until instants 5 ms apart and notes how late it wakes.
type timerProbe struct {
	quit chan struct{}
	late chan []float64
}

func startTimerProbe() *timerProbe {
	p := &timerProbe{make(chan struct{}), make(chan []float64)}
	go func() {
		var late []float64
		for {
			at := time.Now().Add(5 * time.Millisecond)
			select {
			case <-p.quit:
				slices.Sort(late)
				p.late <- late
				return
			case <-time.After(time.Until(at)):
			}
			late = append(late, float64(time.Since(at).Microseconds())/1000)
		}
	}()
	return p
}

func (p *timerProbe) stop() []float64 {
	close(p.quit)
	return <-p.late
}
