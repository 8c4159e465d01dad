package storebench

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/duepost/duepost/internal/store"
)

// in publishes messages due from base on.
func (r *Report) in(ctx context.Context, c Config, s *store.Store, base int64) error {
	m := stopwatch()
	due := func(rnd *rand.Rand) int64 { return base + time.Hour.Milliseconds() }
	if c.Within > 0 {
		due = func(rnd *rand.Rand) int64 { return base + rnd.Int64N(c.Within.Milliseconds()) }
	}
	if err := publishAll(ctx, c, s, c.Count, due); err != nil {
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
	var err error
	r.PeakIn, err = residentMiB("VmHWM")
	return err
}

// publishAll publishes count messages, shared by all writers, and returns when all
// are durable.
func publishAll(ctx context.Context, c Config, s *store.Store, count int, due func(*rand.Rand) int64) error {
	var roles sync.WaitGroup
	errs := make([]error, c.Writers)
	for w := range c.Writers {
		share := count / c.Writers
		if w < count%c.Writers {
			share++
		}
		roles.Go(func() { errs[w] = publish(ctx, c, s, w, share, due) })
	}
	roles.Wait()
	return errors.Join(errs...)
}

// publish is one writer: it keeps up to c.Group messages in flight.
func publish(ctx context.Context, c Config, s *store.Store, w, share int, due func(*rand.Rand) int64) error {
	rnd := rand.New(rand.NewPCG(uint64(w), 1))
	body := make([]byte, c.Size)
	for i := range body {
		body[i] = byte(rnd.Uint32())
	}
	m := &store.Message{
		Exchange: []byte("orders"), RoutingKey: []byte("order.created"), Body: body,
		ExchangeID: 1, Arrived: time.Now().UnixMilli(), TTL: -1, Persistent: true,
	}
	half := max(1, c.Group/2)
	var last, before store.LSN
	for i := range share {
		_, lsn, err := s.AppendDelayed(m, due(rnd))
		if err != nil {
			return err
		}
		last = lsn
		if i%half == half-1 { // the half before has to be durable
			if err := s.Wait(ctx, before); err != nil {
				return err
			}
			before = last
		}
	}
	return s.Wait(ctx, last)
}
