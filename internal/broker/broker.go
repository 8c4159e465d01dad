package broker

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/delay"
	"github.com/duepost/duepost/internal/store"
)

// Limits bound what clients can make the broker keep. The zero value means the defaults.
type Limits struct {
	// MaxParked is how many messages a virtual host keeps that were due and that nobody
	// took. Beyond it they stay delayed and are tried again. 1,000,000 by default.
	MaxParked int
	// IndexBytes is the memory for what queues know about their messages, 24 bytes for each.
	// Beyond it, what is far from being delivered is in a scratch file. 64 MiB by default.
	IndexBytes int64
}

// DefaultMaxParked is the default of Limits.MaxParked.
const DefaultMaxParked = 1_000_000

// DefaultIndexBytes is the default of Limits.IndexBytes.
const DefaultIndexBytes = 64 << 20

// Config is what a Broker is made of. All but Logger, Recovered, Limits and Compat are required.
type Config struct {
	Store  *store.Store  // opened before the broker and closed after it
	Engine *delay.Engine // started with the broker as its Sink after Open, stopped before Close
	Alarms *delay.Alarms // started after Open and stopped before Close
	Clock  delay.Clock   // the same as that of Engine and Alarms
	Logger *slog.Logger  // nil discards
	// Recovered is what the store found; nil asks the store, which tells it once.
	Recovered *store.Recovery
	Limits    Limits
	Compat    Compat
}

// Broker is all virtual hosts over one store.
//
// Roles: the worker, the pager and the evacuation, a goroutine each, from Open to Close.
type Broker struct {
	store  *store.Store
	engine *delay.Engine
	alarms *delay.Alarms
	clock  delay.Clock
	log    *slog.Logger
	limits Limits
	compat Compat
	worker *worker
	pager  *pager
	ids    ids

	evacuation *evacuation

	counters counters
	release  release // working space of Route and Push
	replies  replyRegistry
	globals  globals
	turns    turns // of publishers with one key

	// Working space for whoever comes next. Pools, because a queue at rest must not keep any.
	dispatches  sync.Pool // of *dispatch
	settlements sync.Pool // of *settlement
	letters     sync.Pool // of *deadLetterer

	hosting sync.Mutex // held while virtual hosts are made and deleted, one at a time

	mu      sync.RWMutex // guards all below; a leaf lock
	vhosts  map[string]*VHost
	queues  map[uint32]*Queue    // logged queues and parking queues, by id
	delayed map[uint32]*Exchange // by id, with what remains of deleted ones
	closed  bool
}

// Open brings back what the store recovered and returns the broker.
func Open(c Config) (*Broker, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Limits.MaxParked == 0 {
		c.Limits.MaxParked = DefaultMaxParked
	}
	if c.Limits.IndexBytes == 0 {
		c.Limits.IndexBytes = DefaultIndexBytes
	}
	b := &Broker{
		store:   c.Store,
		engine:  c.Engine,
		alarms:  c.Alarms,
		clock:   c.Clock,
		log:     c.Logger.With("part", "broker"),
		limits:  c.Limits,
		compat:  c.Compat,
		worker:  newWorker(),
		vhosts:  make(map[string]*VHost),
		queues:  make(map[uint32]*Queue),
		delayed: make(map[uint32]*Exchange),
		globals: globals{values: make(map[string][]byte)},
	}
	b.evacuation = newEvacuation(b)
	b.ids = ids{store: c.Store, next: idBlock, end: idBlock}
	b.dispatches.New = newDispatch
	b.settlements.New = newSettlement
	b.letters.New = func() any { return &deadLetterer{broker: b, group: group{broker: b}} }
	b.pager = newPager(c.Store.NewScratch("queues", pageBytes), c.Limits.IndexBytes, b.log)
	if c.Recovered == nil {
		c.Recovered = c.Store.Recovered()
	}
	if err := b.recover(c.Recovered); err != nil {
		b.pager.scratch.Close()
		return nil, fmt.Errorf("open broker: %w", err)
	}
	c.Store.SetOwner(b)
	b.worker.start()
	b.pager.start()
	b.evacuation.start()
	return b, nil
}

// Close stops what happens by itself and notes down what was delivered. Sessions are closed and
// engine and alarms are stopped before. The store stays open.
func (b *Broker) Close() error {
	b.mu.Lock()
	closed := b.closed
	b.closed = true
	b.mu.Unlock()
	if closed {
		return nil
	}
	b.evacuation.stop()
	b.worker.stop()
	b.pager.stop()
	return b.noteCleanStop()
}

// Connect opens a session in a virtual host for a user, whom somebody else has authenticated, and
// who may do there what its rights say. Nil rights are all of them.
func (b *Broker) Connect(vhost, user string, rights Rights) (*Session, error) {
	v := b.VHost(vhost)
	if v == nil {
		return nil, amqp.Errorf(amqp.NotAllowed, "vhost %s not found", vhost)
	}
	if rights == nil {
		rights = allRights{}
	}
	if !rights.MayEnter() {
		return nil, amqp.Errorf(amqp.NotAllowed, "access to vhost '%s' refused for user '%s'", vhost, user)
	}
	if err := v.enter(user); err != nil {
		return nil, err
	}
	return &Session{
		broker:    b,
		vhost:     v,
		user:      user,
		rights:    rights,
		exclusive: make(map[*Queue]struct{}),
	}, nil
}

// VHost returns the virtual host of that name, or nil.
func (b *Broker) VHost(name string) *VHost {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.vhosts[name]
}

// VHosts returns the virtual hosts in the order of their names.
func (b *Broker) VHosts() []*VHost {
	all := b.allVHosts()
	slices.SortFunc(all, func(a, b *VHost) int { return strings.Compare(a.name, b.name) })
	return all
}

// addQueue makes a queue known to the store's cleaner, if it has messages in the log.
func (b *Broker) addQueue(q *Queue) {
	if !q.logged {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queues[q.id] = q
}

func (b *Broker) removeQueue(q *Queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queues[q.id] == q {
		delete(b.queues, q.id)
	}
}

func (b *Broker) queueByID(id uint32) *Queue {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.queues[id]
}

func (b *Broker) addDelayed(x *Exchange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delayed[x.id] = x
}

func (b *Broker) removeDelayed(x *Exchange) {
	b.mu.Lock()
	delete(b.delayed, x.id)
	b.mu.Unlock()
}

// delayedByID returns the exchange that a delayed message belongs to, or nil if it is no more.
func (b *Broker) delayedByID(id uint32) *Exchange {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.delayed[id&^historyBit]
}
