package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Run plays one scenario and measures it. It declares what it needs under a name of its own and
// removes it. A Result with an error is incomplete.
func Run(ctx context.Context, scenario string, o Options) (Result, error) {
	if err := errors.Join(checkScenario(scenario), o.Validate()); err != nil {
		return Result{}, err
	}
	r, err := newRig(ctx, o, scenario == Delayed || scenario == Burst)
	if err != nil {
		return Result{}, err
	}
	res := Result{
		Scenario: scenario, Broker: r.broker(), Persistent: o.Persistent,
		Publishers: o.Publishers, Consumers: o.Consumers, Queues: o.Queues, Size: o.Size,
	}
	switch scenario {
	case Publish, Plain:
		err = r.runTimed(scenario == Plain, &res)
	case Consume:
		err = r.runFilled(&res)
	case Delayed:
		err = r.runDelayed(&res, o.spread)
	case Burst:
		due := time.Now().Add(o.BurstIn)
		err = r.runDelayed(&res, func(p *publisher) plan { return o.at(p, due) })
		res.LastAfterMillis = millis(r.lastDelivery().Sub(due).Microseconds())
	}
	r.count(&res)
	return res, errors.Join(err, r.close())
}

// runTimed measures a stretch of time after a warm-up. Without consumers at once, they empty the
// queues afterwards, so that what was lost is known.
func (r *rig) runTimed(consumeAtOnce bool, res *Result) error {
	stop, cancel := context.WithCancel(r.ctx)
	defer cancel()
	if consumeAtOnce {
		r.consume()
	}
	r.publish(stop, func(*publisher) plan {
		return func(uint64, time.Time) (time.Duration, bool) { return 0, true }
	})
	if err := r.pause(r.o.Warmup); err != nil {
		return err
	}
	r.steady.Store(true)
	a := r.sample()
	err := r.pause(r.o.Duration)
	b := r.sample()
	r.steady.Store(false)
	if err != nil {
		return err
	}
	cancel()
	r.publishing.Wait()
	messages := r.published(b) - r.published(a)
	res.PublishRate = rate(messages, a, b)
	if consumeAtOnce {
		messages = b.received - a.received
		res.ConsumeRate = rate(messages, a, b)
	} else {
		r.consume()
	}
	res.spent(a, b, messages)
	return r.drain(res)
}

// runFilled fills the queues, then measures the tenth to the ninetieth percent of emptying them.
func (r *rig) runFilled(res *Result) error {
	r.publish(r.ctx, func(p *publisher) plan {
		share := r.o.share(p)
		return func(seq uint64, _ time.Time) (time.Duration, bool) { return 0, seq < share }
	})
	r.publishing.Wait()
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	r.consume()
	a, b, err := r.middle(func(s sample) uint64 { return s.received })
	if err != nil {
		return err
	}
	res.ConsumeRate = rate(b.received-a.received, a, b)
	res.spent(a, b, b.received-a.received)
	return r.drain(res)
}

// runDelayed publishes delayed messages and waits until all have come. The broker's CPU time is
// taken over the whole life of the messages.
func (r *rig) runDelayed(res *Result, plans func(*publisher) plan) error {
	r.consume()
	r.steady.Store(true)
	start := r.sample()
	r.publish(r.ctx, plans)
	a, b, err := r.middle(r.published)
	if err != nil {
		return err
	}
	r.publishing.Wait()
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if err := r.drain(res); err != nil {
		return err
	}
	end := r.sample()
	res.spent(start, end, end.received)
	res.PublishRate = rate(r.published(b)-r.published(a), a, b)
	res.SteadySeconds = round2(b.at.Sub(a.at).Seconds())
	return nil
}

// middle samples when a tenth and when nine tenths of all messages have been counted.
func (r *rig) middle(count func(sample) uint64) (a, b sample, err error) {
	all := uint64(r.o.Messages)
	reached := func(limit uint64) (sample, error) {
		err := r.await(r.o.Patience, func(s sample) bool { return count(s) >= limit })
		return r.sample(), err
	}
	if a, err = reached(all / 10); err != nil {
		return a, a, err
	}
	b, err = reached(all - all/10)
	return a, b, err
}

// drain waits until everything accepted has been received, or nothing has come for as long as
// the patience after the last due instant.
func (r *rig) drain(res *Result) error {
	longest := r.o.Patience
	if res.Scenario == Delayed || res.Scenario == Burst {
		longest += max(r.o.DelayMax, r.o.BurstIn)
	}
	return r.await(longest, func(s sample) bool { return s.received >= r.published(s) })
}

// count ends the consumers and adds up what they noted.
func (r *rig) count(res *Result) {
	r.finishConsumers()
	all, confirm, latency, lateness := newLedger(), newMeasure(), newMeasure(), newMeasure()
	for _, c := range r.consumers {
		all.merge(c.ledger)
		latency.merge(c.latency)
		lateness.merge(c.lateness)
		res.Early += c.early
	}
	var accepted uint64
	for _, p := range r.publishers {
		confirm.merge(p.confirm)
		res.Messages += p.sent.Load()
		res.Refused += p.refused.Load()
		accepted += p.sent.Load()
		if r.o.Persistent {
			accepted = accepted - p.sent.Load() + p.confirmed.Load()
		}
	}
	if got := all.distinct(); got < accepted {
		res.Lost = accepted - got
	}
	res.Duplicates = all.duplicates
	res.Confirm, res.Lateness = confirm.percentiles(), lateness.percentiles()
	if res.Scenario == Plain {
		res.Latency = latency.percentiles()
	}
	res.RSSPeakMiB = mebibytes(r.rssPeak.Load())
}

// lastDelivery is the instant of the last delivery of all; the consumers must have ended.
func (r *rig) lastDelivery() time.Time {
	r.finishConsumers()
	var last time.Time
	for _, c := range r.consumers {
		if c.last.After(last) {
			last = c.last
		}
	}
	return last
}

// spread plans delays that are uniform over the range; the same every time.
func (o Options) spread(p *publisher) plan {
	share, random := o.share(p), rand.New(rand.NewPCG(1, uint64(p.id)))
	step := time.Millisecond
	if o.Route != nil && o.Route.Step > 0 {
		step = o.Route.Step
	}
	width := int64((o.DelayMax-o.DelayMin)/step) + 1
	return func(seq uint64, _ time.Time) (time.Duration, bool) {
		return o.DelayMin + time.Duration(random.Int64N(width))*step, seq < share
	}
}

// at plans that everything is due at one instant. Delays are whole milliseconds: rounded up, so
// that the last is due no more than one after it.
func (o Options) at(p *publisher, due time.Time) plan {
	share := o.share(p)
	return func(seq uint64, now time.Time) (time.Duration, bool) {
		left := due.Sub(now)
		if left <= 0 {
			return left - 1, seq < share
		}
		return (left + time.Millisecond - 1).Truncate(time.Millisecond), seq < share
	}
}

// share is how many of Messages this publisher publishes.
func (o Options) share(p *publisher) uint64 {
	n := o.Messages / o.Publishers
	if int(p.id) < o.Messages%o.Publishers {
		n++
	}
	return uint64(n)
}

// spent notes what the time between two samples cost.
func (r *Result) spent(a, b sample, messages uint64) {
	r.SteadySeconds = round2(b.at.Sub(a.at).Seconds())
	r.RSSStartMiB = mebibytes(a.rssBytes)
	if messages == 0 {
		return
	}
	per := func(d time.Duration) float64 { return round2(float64(d.Microseconds()) / float64(messages)) }
	r.BrokerMicros = per(b.broker - a.broker)
	r.HelperMicros = per(b.helper - a.helper)
	r.ClientMicros = per(b.client - a.client)
}

func rate(messages uint64, a, b sample) float64 {
	return round2(float64(messages) / b.at.Sub(a.at).Seconds())
}

func mebibytes(n int64) float64 { return round2(float64(n) / (1 << 20)) }
