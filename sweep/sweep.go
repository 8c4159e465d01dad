package sweep

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/dialect"
)

// ErrInvalid is in the error of a setting that cannot be right. It is duepost.ErrInvalid.
var ErrInvalid = fmt.Errorf("sweep: %w", duepost.ErrInvalid)

// Options are the settings of a [Sweep]. Table, ID, Due and Where are put into the SQL as they
// are: they come from the program, never from its users.
type Options struct {
	// Name is the name of the job for the lease, at most 255 bytes.
	Name string

	// Table has the rows.
	Table string
	// ID is the column that is given to Handle, a whole number or a text. It must be unique and
	// not null.
	ID string
	// Due is the column with the deadline; rows where it is null are never found. An index over
	// the columns of Where, then Due, then ID makes a page cheap.
	Due string
	// Where is a condition for the rows whose work is not done, such as status = 'unpaid'.
	// Empty takes all rows. It has no arguments, so no ? outside of quotes.
	Where string
	// Bound is an instant as the column Due is compared with it. Default: as it is, in UTC,
	// which suits columns of the database's own type for instants. For whole milliseconds, and on
	// SQLite, which has no such type: func(t time.Time) any { return t.UnixMilli() }.
	Bound func(t time.Time) any

	// Handle does the work for the row with that ID, if it is still to be done. An error or a
	// panic lets the row come again with the next round.
	Handle func(ctx context.Context, id string) error

	// Grace is how long after its deadline a row is left to its message. Default 1 min;
	// negative for none.
	Grace time.Duration
	// Interval is the time between the beginnings of two rounds. Default 1 min.
	Interval time.Duration
	// Page is how many rows are read at once. Default 100.
	Page int
	// Rate is how many rows a second are given to Handle at most. Default 100.
	Rate float64
	// Timeout ends the context of Handle. Default 1 min; negative for none.
	Timeout time.Duration
	// Lease is how long a process that died keeps the others from sweeping. Default 1 min.
	Lease time.Duration

	// OnRound is told of each round, also of those in which another process sweeps. Default none.
	OnRound func(Round, error)
	// Now is the clock for deadlines. Default: that of the database.
	Now func() time.Time
	// Logger gets a line for each row whose Handle failed and each round that found some. Nil
	// discards.
	Logger *slog.Logger
}

// Round is what came of one round.
type Round struct {
	// Leader is whether this process swept. If not the rest is zero.
	Leader bool
	// Found is how many rows were given to Handle: that many messages were lost or late.
	Found int
	// Failed is for how many of these Handle returned an error or panicked.
	Failed int
}

// Sweep finds forgotten rows. Made by [New].
type Sweep struct {
	db      *sql.DB
	dialect dialect.Dialect
	o       Options
	log     *slog.Logger
	holder  string // names this Sweep among all
}

// New returns a job over the tables of db, of which [Migrate] makes duepost_sweep.
func New(db *sql.DB, d dialect.Dialect, o Options) (*Sweep, error) {
	o = o.withDefaults()
	if err := errors.Join(d.Validate(), o.validate()); err != nil {
		return nil, fmt.Errorf("make sweep: %w", err)
	}
	log := o.Logger.With("part", "sweep", "queue", o.Name)
	return &Sweep{db: db, dialect: d, o: o, log: log, holder: rand.Text()}, nil
}

func (o Options) withDefaults() Options {
	fill(&o.Grace, time.Minute)
	fill(&o.Interval, time.Minute)
	fill(&o.Page, 100)
	fill(&o.Rate, 100)
	fill(&o.Timeout, time.Minute)
	fill(&o.Lease, time.Minute)
	if o.Bound == nil {
		o.Bound = func(t time.Time) any { return t.UTC() }
	}
	if o.OnRound == nil {
		o.OnRound = func(Round, error) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return o
}

func (o Options) validate() error {
	return errors.Join(
		refuse(o.Name == "" || len(o.Name) > 255, "name has %d bytes, must be 1 to 255", len(o.Name)),
		refuse(o.Table == "" || o.ID == "" || o.Due == "", "table, id and due must be set"),
		refuse(o.Handle == nil, "handle is nil"),
		refuse(o.Page < 1, "page is %d, must be at least 1", o.Page),
		refuse(!(o.Rate > 0), "rate is %v, must be above 0", o.Rate),
		refuse(o.Interval < time.Millisecond, "interval is %v, must be at least 1ms", o.Interval),
		refuse(o.Lease < 100*time.Millisecond, "lease is %v, must be at least 100ms", o.Lease),
	)
}

// Run sweeps now and then after each Interval, until ctx ends; then it returns nil. Faults are
// logged and tried again with the next round.
func (s *Sweep) Run(ctx context.Context) error {
	if err := s.Check(ctx); err != nil && ctx.Err() == nil {
		s.log.Warn("pages are not read by an index", "err", err)
	}
	tick := time.NewTicker(s.o.Interval)
	defer tick.Stop()
	defer s.resign(ctx)
	for ctx.Err() == nil {
		round, err := s.SweepOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			s.log.Warn("round failed", "err", err, "next", s.o.Interval)
		case round.Found > 0:
			s.log.Warn("rows past their deadline", "n", round.Found, "failed", round.Failed)
		}
		s.o.OnRound(round, err)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return nil
}

// SweepOnce makes one round if no other process is the leader, and stays the leader until the
// lease lapses.
func (s *Sweep) SweepOnce(ctx context.Context) (Round, error) {
	leader, err := s.lead(ctx)
	if err != nil || !leader {
		return Round{}, err
	}
	round := Round{Leader: true}
	err = s.whileLeader(ctx, func(ctx context.Context) error { return s.round(ctx, &round) })
	return round, err
}

// round reads page after page and handles each row.
func (s *Sweep) round(ctx context.Context, r *Round) error {
	until, err := s.now(ctx)
	if err != nil {
		return err
	}
	until = until.Add(-max(s.o.Grace, 0))
	pace := pace{every: time.Duration(float64(time.Second) / s.o.Rate)}
	var after *position
	for {
		page, err := s.page(ctx, until, after)
		if err != nil {
			return fmt.Errorf("read page: %w", err)
		}
		for _, p := range page {
			if err := pace.wait(ctx); err != nil {
				return err
			}
			r.Found++
			if err := s.handle(ctx, p.id()); err != nil {
				r.Failed++
				s.log.Warn("row not handled", "id", p.id(), "err", err)
			}
		}
		if len(page) < s.o.Page {
			return nil
		}
		after = &page[len(page)-1]
	}
}

// handle calls Handle. A panic is an error.
func (s *Sweep) handle(ctx context.Context, id string) (err error) {
	if s.o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.o.Timeout)
		defer cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return s.o.Handle(ctx, id)
}

// pace lets things happen no more often than every so long.
type pace struct {
	every time.Duration
	next  time.Time
}

func (p *pace) wait(ctx context.Context) error {
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	rest := p.next.Sub(now)
	p.next = p.next.Add(p.every)
	if rest <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// fill sets what is not set.
func fill[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// refuse is an ErrInvalid if something is wrong.
func refuse(wrong bool, format string, a ...any) error {
	if !wrong {
		return nil
	}
	return fmt.Errorf(format+": %w", append(a, ErrInvalid)...)
}
