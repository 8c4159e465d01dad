package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/dialect"
	"github.com/duepost/duepost/ladder"
	"github.com/duepost/duepost/once"
	"github.com/duepost/duepost/outbox"
	"github.com/duepost/duepost/sweep"
)

// Config is what a shop needs.
type Config struct {
	DB      *sql.DB
	Dialect dialect.Dialect
	// Client is connected to any broker that package duepost can use.
	Client *duepost.Client
	// Steps says when an order is looked at; its Deadline is how long a customer has to pay.
	// Default: after 1, 3, 7, 15 and 30 minutes.
	Steps ladder.Steps
	// SweepEvery is how often the sweep looks for forgotten orders, and how long after its
	// deadline an order is left to its message. Default 1 minute.
	SweepEvery time.Duration
	// Lease is how long the others leave alone what an instance had begun that died. Default 1
	// minute.
	Lease time.Duration
	// Concurrency is how many orders, and how many letters, are worked on at once. Default 8.
	Concurrency int
	// Retry says how work that failed is tried again. Default that of package duepost.
	Retry duepost.Retry
	// Now must be the clock of the client. Default time.Now.
	Now func() time.Time
	// Logger is nil for none.
	Logger *slog.Logger
}

// Queues of the shop.
const (
	unpaidQueue = "shop.unpaid"
	letterQueue = "shop.letters"
)

// Shop takes orders and sees to them. Made by New; its methods may be called concurrently, and any
// number of processes may have one over the same database.
type Shop struct {
	cfg     Config
	ladder  *ladder.Ladder
	outbox  *outbox.Outbox
	sweep   *sweep.Sweep
	letters *once.SQL
	changes changes
}

// New makes the tables and queues that are not there, and a shop.
func New(ctx context.Context, cfg Config) (*Shop, error) {
	cfg = withDefaults(cfg)
	if err := migrate(ctx, cfg.DB, cfg.Dialect); err != nil {
		return nil, err
	}
	s := &Shop{cfg: cfg}
	var err error
	if s.ladder, err = ladder.New(ctx, cfg.Client, ladder.Options{
		Steps: cfg.Steps, Check: s.isSettled, Expire: s.expire, OnStep: s.stepTaken,
		Consumer: duepost.Consumer{Queue: unpaidQueue, Concurrency: cfg.Concurrency, Retry: cfg.Retry},
		Now:      cfg.Now, Logger: cfg.Logger,
	}); err != nil {
		return nil, err
	}
	if s.outbox, err = outbox.New(cfg.DB, cfg.Dialect, outbox.Options{
		Lease: cfg.Lease, Now: cfg.Now, Logger: cfg.Logger,
	}); err != nil {
		return nil, err
	}
	if s.sweep, err = sweep.New(cfg.DB, cfg.Dialect, sweep.Options{
		Name: "shop-unpaid", Table: "shop_orders", ID: "id", Due: "expires_at", Where: "status = 'unpaid'",
		Bound:  func(t time.Time) any { return t.UnixMilli() },
		Handle: s.expire,
		Grace:  cfg.SweepEvery, Interval: cfg.SweepEvery, Lease: cfg.Lease, Logger: cfg.Logger,
	}); err != nil {
		return nil, err
	}
	if s.letters, err = once.NewSQL(cfg.DB, cfg.Dialect, letterQueue, once.Options{}); err != nil {
		return nil, err
	}
	queues := duepost.Topology{Queues: []duepost.Queue{{Name: letterQueue}}}
	if err := cfg.Client.Declare(ctx, queues); err != nil {
		return nil, err
	}
	return s, nil
}

func withDefaults(cfg Config) Config {
	if cfg.Steps == (ladder.Steps{}) {
		cfg.Steps = ladder.Steps{First: time.Minute, Deadline: 30 * time.Minute}
	}
	if cfg.SweepEvery == 0 {
		cfg.SweepEvery = time.Minute
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 8
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

// Run sees to orders until ctx ends, and finishes what it has begun. It returns an error only if
// the client was closed or the broker took a queue away: what else goes wrong is tried again.
func (s *Shop) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.ladder.Run(ctx) })
	group.Go(func() error { return s.outbox.Relay(ctx, s.cfg.Client) })
	group.Go(func() error { return s.sweep.Run(ctx) })
	group.Go(func() error { return s.writeLetters(ctx) })
	group.Go(func() error {
		return s.letters.Run(ctx, func(err error) { s.cfg.Logger.Warn("letters not purged", "err", err) })
	})
	return group.Wait()
}

// inTx runs work in a transaction and commits it when work returns nil.
func (s *Shop) inTx(ctx context.Context, work func(tx *sql.Tx) error) error {
	tx, err := s.cfg.DB.BeginTx(ctx, &sql.TxOptions{Isolation: s.cfg.Dialect.Isolation()})
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	if err := work(tx); err != nil {
		return errors.Join(err, rollback(tx))
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit transaction: %w", err)
	}
	return nil
}

// rollback gives up a transaction. One that ended with its context is given up already.
func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("roll back transaction: %w", err)
	}
	return nil
}

// execer is a database or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// exec runs a statement with ? for arguments and returns how many rows it changed.
func (s *Shop) exec(ctx context.Context, on execer, query string, args ...any) (int64, error) {
	result, err := on.ExecContext(ctx, s.cfg.Dialect.Bind(query), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
