package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/dialect"
)

// ErrInvalid is in the error of a message or setting that cannot be right. It is
// duepost.ErrInvalid.
var ErrInvalid = fmt.Errorf("outbox: %w", duepost.ErrInvalid)

// Options are the settings of an [Outbox].
type Options struct {
	// Batch is how many rows a relay takes at once. Default 100.
	Batch int
	// Interval is how often a relay looks for rows when it had nothing to do, unless it is told
	// by [Outbox.Wake]. Default 1 s.
	Interval time.Duration
	// Lease is how long rows stay with a relay that died. A relay publishes for half of it at
	// most. Default 1 min.
	Lease time.Duration
	// Attempts is how often a message is tried that is itself at fault before it is parked.
	// Default 10; one that can never be right is parked at once.
	Attempts int
	// Backoff is the pause after the first such fault; it doubles each time up to 10
	// minutes. Default 1 s.
	Backoff time.Duration
	// Keep is how long rows stay after they were published. Default 24 h; negative removes them
	// at the next purge. A relay purges once in a while.
	Keep time.Duration
	// Now is the clock from which a Delay is counted, the same as that of the client. Default
	// time.Now.
	Now func() time.Time
	// Logger gets a line for each round that failed and each message that is parked. Nil
	// discards.
	Logger *slog.Logger
}

// Outbox is the table of messages that wait to be published. Made by [New]; its methods may be
// called concurrently.
type Outbox struct {
	db      *sql.DB
	dialect dialect.Dialect
	o       Options
	log     *slog.Logger
	wake    chan struct{}
}

// New returns the outbox in db, whose table [Migrate] makes.
func New(db *sql.DB, d dialect.Dialect, o Options) (*Outbox, error) {
	fill(&o.Batch, 100)
	fill(&o.Interval, time.Second)
	fill(&o.Lease, time.Minute)
	fill(&o.Attempts, 10)
	fill(&o.Backoff, time.Second)
	fill(&o.Keep, 24*time.Hour)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	err := errors.Join(
		d.Validate(),
		refuse(o.Batch < 1 || o.Batch > maxBatch, "batch is %d, must be from 1 to %d", o.Batch, maxBatch),
		refuse(o.Interval < time.Millisecond, "interval is %v, must be at least 1ms", o.Interval),
		refuse(o.Lease < 100*time.Millisecond, "lease is %v, must be at least 100ms", o.Lease),
		refuse(o.Attempts < 1, "attempts are %d, must be at least 1", o.Attempts),
		refuse(o.Backoff < time.Millisecond, "backoff is %v, must be at least 1ms", o.Backoff),
	)
	if err != nil {
		return nil, fmt.Errorf("make outbox: %w", err)
	}
	return &Outbox{db: db, dialect: d, o: o, log: o.Logger.With("part", "outbox"), wake: make(chan struct{}, 1)}, nil
}

// maxBatch keeps the arguments of a statement below what every database takes.
const maxBatch = 500

// Tx is the caller's transaction: a *sql.Tx, or a *sql.Conn with one begun.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Add writes m into the outbox as part of tx and returns its MessageID. It does not
// reach the broker before tx is committed and a relay has seen it. Delay counts from now, and
// Timestamp is now unless it is set.
func (o *Outbox) Add(ctx context.Context, tx Tx, m duepost.Message) (messageID string, err error) {
	lane := ""
	if m.Key != "" { // the last one must be the last at the broker, too
		lane = "key " + m.Exchange + "\x01" + m.Key
	}
	return o.add(ctx, tx, lane, m)
}

// AddOrdered is Add for a message that must be published after those that were added before with the
// same lane, say "order 17", and never beside them. A lane is as fast as one publish after the
// other.
func (o *Outbox) AddOrdered(ctx context.Context, tx Tx, lane string, m duepost.Message) (messageID string, err error) {
	if lane == "" {
		return "", fmt.Errorf("add message: lane is empty: %w", ErrInvalid)
	}
	return o.add(ctx, tx, "lane "+lane, m)
}

func (o *Outbox) add(ctx context.Context, tx Tx, lane string, m duepost.Message) (string, error) {
	if _, ok := tx.(*sql.DB); ok {
		return "", fmt.Errorf("add message: tx is a *sql.DB, which is no transaction: %w", ErrInvalid)
	}
	meta, err := encode(&m, o.o.Now())
	if err == nil {
		err = refuse(len(lane) > maxLaneBytes, "lane has %d bytes, allowed are %d", len(lane), maxLaneBytes)
	}
	if err != nil {
		return "", fmt.Errorf("add message: %w", err)
	}
	body := m.Body
	if body == nil {
		body = []byte{}
	}
	_, err = tx.ExecContext(ctx, o.dialect.Bind("INSERT INTO duepost_outbox "+
		"(message_id, lane, message, body, state, claims, failures, ready_at, changed_at) "+
		"VALUES (?, ?, ?, ?, ?, 0, 0, "+o.dialect.Now()+", "+o.dialect.Now()+")"),
		m.MessageID, sql.NullString{String: lane, Valid: lane != ""}, meta, body, pending)
	if err != nil {
		return "", fmt.Errorf("add message: %w", err)
	}
	return m.MessageID, nil
}

// Wake lets relays of this Outbox look at once. Call it after a commit, to be faster
// than [Options.Interval]. It never blocks.
func (o *Outbox) Wake() {
	select {
	case o.wake <- struct{}{}:
	default:
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
