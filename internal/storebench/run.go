package storebench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/duepost/duepost/internal/store"
)

// Config says what to measure.
type Config struct {
	Dir     string        // an empty directory, which is left as the run leaves it
	Count   int           // delayed messages
	Size    int           // bytes of each body
	Writers int           // goroutines that publish
	Group   int           // messages that each has in flight
	Within  time.Duration // due instants are spread over this; 0 = all at one
	Release int           // how many are released; 0 = all
	Logger  *slog.Logger  // nil discards
}

// Report is what was measured. Rates are messages per second; CPU is user and
// system time of the whole process in microseconds per message.
type Report struct {
	Yardsticks

	Count int `json:"messages"`
	Size  int `json:"body_bytes"`

	InRate     float64 `json:"in_per_s"`
	InCPU      float64 `json:"in_cpu_us"`
	InBytes    float64 `json:"in_record_mb_per_s"` // records only
	InAllBytes float64 `json:"in_written_mb_per_s"`
	Written    float64 `json:"bytes_written_per_record_byte"`
	Runs       int     `json:"runs"`
	PeakIn     int64   `json:"peak_rss_in_mib"`

	Open     float64 `json:"open_after_kill_s"`
	Pending  uint64  `json:"pending_after_open"`
	PeakOpen int64   `json:"rss_after_open_mib"`

	Released int     `json:"released"`
	OutRate  float64 `json:"out_per_s"`
	OutCPU   float64 `json:"out_cpu_us"`
	PeakOut  int64   `json:"peak_rss_out_mib"`
}

// Run measures: yardsticks; publish; kill, forget the disk's cache and open;
// release.
func Run(ctx context.Context, c Config) (*Report, error) {
	if c.Count <= 0 || c.Writers <= 0 || c.Group <= 0 {
		return nil, errors.New("measure store: count, writers and group must be positive")
	}
	r := &Report{Count: c.Count, Size: c.Size}
	var err error
	if r.Yardsticks, err = measureDisk(c.Dir); err != nil {
		return nil, fmt.Errorf("measure disk: %w", err)
	}
	if err := r.in(ctx, c); err != nil {
		return nil, fmt.Errorf("measure publishing: %w", err)
	}
	runtime.GC()
	if err := forgetCache(c.Dir); err != nil {
		return nil, fmt.Errorf("empty the disk cache: %w", err)
	}
	start := time.Now()
	s, err := open(c)
	if err != nil {
		return nil, err
	}
	r.Open = time.Since(start).Seconds()
	r.Pending = s.PendingTotal().Count
	if r.PeakOpen, err = residentMiB("VmRSS"); err == nil {
		err = r.out(ctx, c, s)
	}
	return r, errors.Join(err, s.Close())
}

func open(c Config) (*store.Store, error) {
	s, err := store.Open(store.OS(), c.Dir, store.Options{Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	s.Recovered()
	s.SetOwner(nobody{})
	return s, nil
}

// nobody is an owner of queues whose messages are acknowledged at once.
type nobody struct{}

func (nobody) Holds(uint32, uint64) bool                          { return false }
func (nobody) Relocate(uint32, uint64, store.Ref, store.Ref) bool { return false }

// in publishes, and ends as a kill would.
func (r *Report) in(ctx context.Context, c Config) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	defer s.Abandon()
	m := stopwatch()
	base := time.Now().UnixMilli()
	var roles sync.WaitGroup
	errs := make([]error, c.Writers)
	for w := range c.Writers {
		roles.Go(func() { errs[w] = publish(ctx, c, s, w, base) })
	}
	roles.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	took, cpu := m.stop()
	n := float64(c.Count)
	st := s.Stats()
	r.InRate, r.InCPU = n/took.Seconds(), cpu.Seconds()*1e6/n
	r.InBytes = float64(st.AppendedBytes) / 1e6 / took.Seconds()
	all := float64(st.WrittenBytes + st.FlushedBytes + st.MergedBytes)
	r.InAllBytes = all / 1e6 / took.Seconds()
	r.Written = all / float64(st.Pending.Bytes)
	r.Runs = st.Runs
	r.PeakIn, err = residentMiB("VmHWM")
	return err
}

// publish is one writer: it keeps up to c.Group messages in flight.
func publish(ctx context.Context, c Config, s *store.Store, w int, base int64) error {
	rnd := rand.New(rand.NewPCG(uint64(w), 1))
	body := make([]byte, c.Size)
	for i := range body {
		body[i] = byte(rnd.Uint32())
	}
	m := &store.Message{
		Exchange: []byte("orders"), RoutingKey: []byte("order.created"), Body: body,
		ExchangeID: 1, Arrived: base, TTL: -1, Persistent: true,
	}
	half := max(1, c.Group/2)
	var last, before store.LSN
	for i := w; i < c.Count; i += c.Writers {
		due := base + time.Hour.Milliseconds()
		if c.Within > 0 {
			due = base + rnd.Int64N(c.Within.Milliseconds())
		}
		_, lsn, err := s.AppendDelayed(m, due)
		if err != nil {
			return err
		}
		last = lsn
		if (i/c.Writers)%half == half-1 { // the half before has to be durable
			if err := s.Wait(ctx, before); err != nil {
				return err
			}
			before = last
		}
	}
	return s.Wait(ctx, last)
}

// out releases as the delay engine does, without routing.
func (r *Report) out(ctx context.Context, c Config, s *store.Store) error {
	want := c.Count
	if c.Release > 0 {
		want = min(want, c.Release)
	}
	m := stopwatch()
	now := time.Now().Add(c.Within + 24*time.Hour).UnixMilli()
	var due []store.Due
	var group store.Batch
	var last store.LSN
	targets := []store.Target{{Queue: 1}}
	var positions [1024]uint64
	for r.Released < want && ctx.Err() == nil {
		due = s.PopDue(now, 1024, due[:0])
		if len(due) == 0 {
			return fmt.Errorf("only %d of %d came out", r.Released, want)
		}
		group.Reset()
		for i := range due {
			targets[0].Pos++
			positions[i] = targets[0].Pos
			group.Move(&store.Move{
				Key: due[i].Key, Ref: due[i].Ref, Arrived: now, TTL: -1, Persistent: true, Targets: targets, Holds: 1,
			})
		}
		lsn, err := s.Commit(&group)
		if err != nil {
			return err
		}
		last = lsn
		s.Settle(1, positions[:len(due)], group.Refs)
		r.Released += len(due)
	}
	if err := s.Wait(ctx, last); err != nil {
		return err
	}
	took, cpu := m.stop()
	n := float64(r.Released)
	r.OutRate, r.OutCPU = n/took.Seconds(), cpu.Seconds()*1e6/n
	var err error
	r.PeakOut, err = residentMiB("VmHWM")
	return err
}
