package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/duepost/duepost/internal/config"
	"github.com/duepost/duepost/internal/daemon"
)

// Options say how to play.
type Options struct {
	Out   io.Writer
	Color bool
	// Pace stretches all times of the story: 1 is the real one, 0.2 five times as fast. Default 1.
	Pace float64
	// Quiet is how many orders are only counted. Default 1,000.
	Quiet int
}

// patience is how long after the last due instant what is missing is waited for.
const patience = 5 * time.Second

// play is one performance.
type play struct {
	screen *screen
	tally  *tally
	cfg    config.Config
	daemon *daemon.Daemon
	shop   *shop
	stalls stallMeter

	orders map[int]*order // not changed while the play goes on

	mu   sync.Mutex // guards paid
	paid map[int]bool
}

// Run plays the story and tells it on o.Out. The Report says how it went, also when ctx ended
// it early with an error.
func Run(ctx context.Context, o Options) (Report, error) {
	if o.Pace == 0 {
		o.Pace = 1
	}
	if o.Quiet == 0 {
		o.Quiet = quietOrders
	}
	dir, err := os.MkdirTemp("", "duepost-demo-")
	if err != nil {
		return Report{}, fmt.Errorf("make data directory: %w", err)
	}
	defer os.RemoveAll(dir)

	p := &play{
		screen: &screen{out: o.Out, color: o.Color, start: time.Now()},
		tally:  newTally(), orders: map[int]*order{}, paid: map[int]bool{},
	}
	p.cfg = config.Default()
	p.cfg.DataDir, p.cfg.AMQPAddr, p.cfg.HTTPAddr = dir, "127.0.0.1:0", ""
	orders, steps := story(o.Pace, o.Quiet)
	for _, o := range orders {
		p.orders[o.id] = o
	}
	p.screen.text(plain, "An order story. Every order has a delayed message that is due when its time to pay is up;\n"+
		"the first has the longest time. %d more orders are placed that are not shown.\n", o.Quiet)
	if err := p.open(); err != nil {
		return Report{}, err
	}
	err = p.perform(ctx, steps)
	stopErr := p.daemon.Shutdown(context.WithoutCancel(ctx))
	report := p.tally.report(p.stalls.allowance())
	if err == nil {
		p.screen.table(report)
	}
	return report, errors.Join(err, stopErr)
}

// open starts the broker on a free port, which it keeps for the restart.
func (p *play) open() (err error) {
	if p.daemon, err = daemon.Start(p.cfg, nil); err != nil {
		return err
	}
	p.cfg.AMQPAddr = p.daemon.AMQPAddr().String()
	p.screen.start = time.Now()
	p.screen.line(plain, "broker started on %s, data in %s", p.cfg.AMQPAddr, p.cfg.DataDir)
	p.shop = &shop{
		url: "amqp://guest:guest@" + p.cfg.AMQPAddr + "/", tally: p.tally,
		serving: make(chan struct{}, 1),
	}
	return nil
}

// perform goes through the steps and then waits for what is still due.
func (p *play) perform(ctx context.Context, steps []step) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var closing sync.WaitGroup
	defer closing.Wait()
	defer cancel(nil)
	closing.Go(func() { p.stalls.run(ctx) })
	closing.Go(func() {
		if err := p.shop.closer(ctx, p.closeOrder); err != nil {
			cancel(err)
		}
	})
	defer p.shop.close()
	for _, s := range steps {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Until(p.screen.start.Add(s.at))):
		}
		if err := p.take(ctx, s); err != nil {
			return err
		}
	}
	return p.awaitRest(ctx)
}

func (p *play) take(ctx context.Context, s step) error {
	switch {
	case s.crash:
		return p.crash(ctx)
	case s.pay != nil:
		p.mu.Lock()
		p.paid[s.pay.id] = true
		p.mu.Unlock()
		p.screen.line(plain, "order %2d  paid", s.pay.id)
	default:
		if o := s.place[0]; !o.quiet {
			p.screen.line(plain, "order %2d  placed, to be paid within %s", o.id, seconds(o.delay))
		}
		return p.shop.place(ctx, s.place)
	}
	return nil
}

// closeOrder is what the shop does when an order's time is up.
func (p *play) closeOrder(id int, late time.Duration) {
	o := p.orders[id]
	if o == nil || o.quiet {
		return
	}
	p.mu.Lock()
	paid := p.paid[id]
	p.mu.Unlock()
	outcome, style := "not paid: closed", yellow
	if paid {
		outcome, style = "paid: nothing to do", green
	}
	p.screen.line(style, "order %2d  time is up (%s ms after due), %s", id, signedMillis(late), outcome)
}

// crash kills the broker and starts it again on the same directory.
func (p *play) crash(ctx context.Context) error {
	select {
	case <-p.shop.serving: // what was signalled before the kill
	default:
	}
	killed := time.Now()
	p.screen.line(red, "broker    killed, as kill -9 would, with %d messages waiting", p.tally.waiting(killed))
	p.daemon.Kill()
	d, err := daemon.Start(p.cfg, nil)
	if err != nil {
		return fmt.Errorf("start broker again: %w", err)
	}
	p.daemon = d
	if err := p.shop.reconnect(ctx); err != nil {
		return err
	}
	select {
	case <-p.shop.serving:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	alive := time.Now()
	p.tally.wasDown(killed, alive)
	p.screen.line(green, "broker    back on the same directory, clients served again after %d ms",
		alive.Sub(killed).Milliseconds())
	return nil
}

// awaitRest waits until everything has come, or should have.
func (p *play) awaitRest(ctx context.Context) error {
	for {
		n, last := p.tally.missing()
		if n == 0 {
			return nil
		}
		select {
		case <-p.tally.arrived:
		case <-time.After(time.Until(last.Add(patience))):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
