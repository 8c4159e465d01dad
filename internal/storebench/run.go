package storebench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
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
	Burst   int           // more messages, due at one instant before all others
	Release int           // how many are released after the restart; 0 = all
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

	Burst     int     `json:"burst"`
	BurstRate float64 `json:"burst_per_s"`
	BurstCPU  float64 `json:"burst_cpu_us"`     // with the move and the acknowledgement of each
	BurstPop  float64 `json:"burst_pop_cpu_us"` // finding them alone

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
	if err := r.untilKill(ctx, c); err != nil {
		return nil, err
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

// untilKill measures what comes before the restart, and ends as a kill would.
func (r *Report) untilKill(ctx context.Context, c Config) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	defer s.Abandon()
	base := time.Now().UnixMilli()
	if err := r.in(ctx, c, s, base); err != nil {
		return fmt.Errorf("measure publishing: %w", err)
	}
	if c.Burst > 0 {
		if err := r.burst(ctx, c, s, base-1); err != nil {
			return fmt.Errorf("measure a burst: %w", err)
		}
	}
	return nil
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
