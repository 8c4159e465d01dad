package relay

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/duepost/duepost/internal/relay/topology"
)

// Config is what a relay needs.
type Config struct {
	// URLs are of the nodes of a RabbitMQ, amqp:// or amqps://, with the same user and virtual host.
	// They are tried in turn. The user needs configure, write and read on the names that begin
	// with "duepost.", and write on those of the delayed exchanges with ".duepost" behind.
	URLs []string
	// Management is the URL of RabbitMQ's management API, by which the relay sees to it that no
	// policy of others acts on its queues: its user needs the tag policymaker. "{host}" stands for
	// the node that the relay is connected to. Empty trusts that there is no such policy.
	Management string
	// Hold is about how many messages the relay holds in memory, of those that are due in the next
	// seconds; 0 means 100,000, the least is 1,000.
	Hold int
	// Exchanges are delayed exchanges that each session declares when it begins.
	Exchanges []topology.Kept
	// Log is nil for none.
	Log *slog.Logger
	// Ready, if not nil, gets a value, if there is room for it, whenever a session begins to work.
	Ready chan<- struct{}
}

// Stats are what a relay has done since it was made.
type Stats struct {
	Moved, Released, Parked atomic.Uint64 // messages
	Sessions                atomic.Uint64 // connections that came to work
	Lateness                Lateness      // of what was released
	Held                    atomic.Int64  // messages taken out of RabbitMQ's queues and not handed on yet
}

// Relay hands on delayed messages in one virtual host.
type Relay struct {
	cfg   Config
	log   *slog.Logger
	name  string // tells the ids of this relay from those of others
	ids   atomic.Uint64
	stats Stats
	alarm atomic.Pointer[string] // what endangers messages now; nil for nothing
	node  int                    // of cfg.URLs, the one to try first; Run's alone

	atWork atomic.Bool
	// stamping is whether RabbitMQ notes when it accepts a message, found out by each session.
	stamping atomic.Bool

	stalls stalls
	clock  func() time.Time

	hold      int           // of cfg
	lookEvery time.Duration // at the policies
}

// How many messages a relay holds, unless told, and at least and at most: a slot's share must fit into
// basic.qos.
const defaultHold, leastHold, mostHold = 100_000, 1000, nearShares * maxPrefetch

// New makes a relay. It does nothing before Run.
func New(cfg Config) *Relay {
	r := &Relay{cfg: cfg, log: cfg.Log, lookEvery: lookEvery, hold: defaultHold, clock: time.Now}
	if cfg.Hold != 0 {
		r.hold = min(max(cfg.Hold, leastHold), mostHold)
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.log = r.log.With("part", "relay")
	var random [8]byte
	rand.Read(random[:]) // never fails, by its documentation
	r.name = hex.EncodeToString(random[:])
	return r
}

// Stats returns the counters. They may be read at any time.
func (r *Relay) Stats() *Stats { return &r.stats }

// IsStamping reports whether RabbitMQ's interceptor notes when it accepts a message, as it was found when
// the last session began. If it does not, the delay of a message that came by no gateway starts when a relay
// takes it out of the intake.
func (r *Relay) IsStamping() bool { return r.stamping.Load() }

// IsAtWork reports whether a session works now, and not only tries to begin.
func (r *Relay) IsAtWork() bool { return r.atWork.Load() }

// Name tells this relay from all others. Its consumers have it as their tag.
func (r *Relay) Name() string { return "duepost-" + r.name }

// Alarm is what endangers messages now, empty for nothing: a policy of somebody else that acts on
// the relay's queues, or that nobody can be asked whether there is one.
func (r *Relay) Alarm() string {
	if text := r.alarm.Load(); text != nil {
		return *text
	}
	return ""
}

func (r *Relay) setAlarm(text string) { r.alarm.Store(&text) }

// Times between two connections, from the first fault on.
const (
	firstPause, longestPause = 100 * time.Millisecond, 5 * time.Second
)

// Run works until ctx ends, and begins anew after every fault. The error is that of the first
// connection if RabbitMQ refuses what the relay needs: that needs somebody's hand. Afterwards a
// refusal is logged like any fault, for what was granted once may be granted again.
func (r *Relay) Run(ctx context.Context) error {
	pause := firstPause
	for first := true; ; first = false {
		before := r.stats.Sessions.Load()
		err := r.once(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case first && r.stats.Sessions.Load() == 0 && err != nil && isRefusal(err):
			return err
		}
		if r.stats.Sessions.Load() > before {
			pause = firstPause
		}
		r.log.Warn("relay interrupted", "err", err, "retry_in", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// once works until the first fault.
func (r *Relay) once(ctx context.Context) error {
	s, err := newSession(r)
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// signal tells that a session has begun to work.
func (r *Relay) signal() {
	r.stats.Sessions.Add(1)
	select {
	case r.cfg.Ready <- struct{}{}:
	default:
	}
}

// count notes what was done with a message, as it was confirmed at an instant.
func (r *Relay) count(it *item, nowMillis int64) {
	switch it.to {
	case wheel:
		r.stats.Moved.Add(1)
	case release:
		r.stats.Released.Add(1)
		r.stats.Lateness.observe(nowMillis - it.due)
	case parking:
		r.stats.Parked.Add(1)
	}
}
