package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duepost/duepost/internal/auth"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/config"
	"github.com/duepost/duepost/internal/delay"
	"github.com/duepost/duepost/internal/httpapi"
	"github.com/duepost/duepost/internal/server"
	"github.com/duepost/duepost/internal/store"
)

// Daemon is one running broker. Made by Start; its methods may be called concurrently.
//
// Roles: one goroutine per listener, and one for the space watch. All of them end in Shutdown or Kill.
type Daemon struct {
	cfg config.Config
	on  Machine
	log *slog.Logger

	node  string    // its name for tools
	began time.Time // when it was started

	store  *store.Store
	users  *auth.Users
	alarms *delay.Alarms
	steps  *delay.StepWatcher
	engine *delay.Engine
	broker *broker.Broker
	server *server.Server
	http   *httpapi.Server

	ports ports

	phase   atomic.Pointer[httpapi.Health] // as far as starting and stopping go
	space   spaceWatch
	serving sync.WaitGroup
	broken  chan error // a listener that ended by itself; holds one
	stop    sync.Once
	stopErr error
}

// Start makes a broker and returns when clients may connect. An error is a *StartError where the
// cause lies outside: a directory or an address that is not to be had. Nothing is left running
// after an error. A nil log discards.
func Start(cfg config.Config, log *slog.Logger) (*Daemon, error) {
	return StartOn(Machine{}, cfg, log)
}

// StartOn is Start on another machine than this.
func StartOn(on Machine, cfg config.Config, log *slog.Logger) (*Daemon, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("check configuration: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &Daemon{
		cfg: cfg, on: on.withDefaults(), log: log.With("part", "daemon"), node: nodeName(), began: time.Now(),
		broken: make(chan error, 1),
	}
	d.space.changed = make(chan struct{}, 1)
	d.setPhase(httpapi.Starting, "opening the data directory")
	if err := d.start(log); err != nil {
		return nil, errors.Join(err, d.stopParts(context.Background(), orderly))
	}
	d.setPhase(httpapi.Ready, "")
	d.log.Info("ready", "data-dir", cfg.DataDir, d.ports.attr())
	return d, nil
}

// start brings up the parts. What is up when it fails is taken down by the caller.
func (d *Daemon) start(log *slog.Logger) (err error) {
	// 1. Every port, before anything is touched on the disk: a start that fails for a port leaves
	// no trace. Clients that come from now on wait until step 6.
	if err := d.ports.bind(d.cfg); err != nil {
		return err
	}
	// 2. HTTP answers, so that a supervisor sees "starting" while a long log is replayed.
	d.serveHTTP(log)
	// 3. The store: takes the directory's lock and replays the log.
	file := cmp.Or(d.on.SegmentBytes, d.cfg.LogFileBytes)
	d.store, err = store.Open(d.on.Disk, d.cfg.DataDir, store.Options{
		Logger: log, SpaceChanged: d.space.set, SegmentBytes: file,
		FreshBytes: 2 * d.cfg.LogFileBytes, RunBytes: 2 * d.cfg.LogFileBytes,
	})
	if err != nil {
		return storeError(d.cfg.DataDir, err)
	}
	// 4. Who may connect, time, the engine, and the broker: all from what the store found.
	found := d.store.Recovered()
	var hadUsers bool
	d.users, hadUsers, err = auth.Open(d.store, found.Definitions, loopbackUser)
	if err != nil {
		return fmt.Errorf("open users: %w", err)
	}
	clock := d.on.Clock
	d.alarms = delay.NewAlarms(clock, log)
	d.engine = delay.New(delay.Config{Store: d.store, Alarms: d.alarms, Clock: clock, Logger: log})
	d.broker, err = broker.Open(broker.Config{
		Store: d.store, Engine: d.engine, Alarms: d.alarms, Clock: clock, Logger: log,
		Recovered: found, Limits: broker.Limits{MaxParked: d.cfg.MaxParked, IndexBytes: d.cfg.QueueIndexMemory},
		Compat: broker.Compat{
			Plugin:       d.cfg.DelayedCompat == "plugin",
			ClientDeaths: d.cfg.ClientXDeath == "continue",
		},
	})
	if err != nil {
		return fmt.Errorf("open broker: %w", err)
	}
	// 4b. What a definitions file adds, before anything is released to it.
	if err := d.importDefinitions(); err != nil {
		return err
	}
	if !hadUsers {
		if err := makeFirstUser(d.cfg, d.users); err != nil {
			return err
		}
	}
	// 5. From here on what is due is handed over, overdue messages first.
	d.alarms.Start()
	d.steps = delay.NewStepWatcher(d.alarms, log)
	if err := d.steps.Start(); err != nil {
		log.Warn("a set clock will be noticed late", "err", err)
	}
	d.engine.Start(d.broker)
	// 6. Clients last.
	d.server, err = server.New(d.serverConfig(log))
	if err != nil {
		return err
	}
	d.serving.Go(func() { d.space.watch(d.server) })
	d.serveAMQP()
	return nil
}

func (d *Daemon) serverConfig(log *slog.Logger) server.Config {
	c := server.Config{
		Broker: d.broker, Authenticator: d.users, Rights: d.rights,
		MaxUserConnections: func(user string) int64 { return d.users.Limit(user, auth.MaxConnections) },
		MaxUserChannels:    func(user string) int64 { return d.users.Limit(user, auth.MaxChannels) },
		Logger:             log, Version: config.Version(),
		ChannelMax:     d.cfg.ChannelMax,
		FrameMax:       d.cfg.FrameMax,
		Heartbeat:      d.cfg.Heartbeat,
		MaxConnections: d.cfg.MaxConnections,
		MaxMessageSize: d.cfg.MaxMessageSize,
	}
	if c.ConsumerTimeout = d.cfg.ConsumerTimeout; c.ConsumerTimeout == 0 {
		c.ConsumerTimeout = -1 // to the server 0 is the default, and less is none
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = -1 // to the server 0 is the default, and less is none
	}
	return c
}

// AMQPAddr is where AMQP clients connect; nil if they cannot without TLS.
func (d *Daemon) AMQPAddr() net.Addr { return addrOf(d.ports.amqp) }

// AMQPSAddr is where AMQP clients connect with TLS; nil without TLS.
func (d *Daemon) AMQPSAddr() net.Addr { return addrOf(d.ports.amqps) }

// HTTPAddr is where HTTP is answered; nil if nowhere.
func (d *Daemon) HTTPAddr() net.Addr { return addrOf(d.ports.http) }

// Broken delivers the error of a listener that ended by itself. What is connected stays served.
func (d *Daemon) Broken() <-chan error { return d.broken }

// Shutdown stops in order and returns when everything is durable and the directory is free.
// Clients that have not left when ctx ends are cut off. A second call waits for the first.
func (d *Daemon) Shutdown(ctx context.Context) error {
	d.stop.Do(func() {
		d.setPhase(httpapi.Stopping, "asked to stop")
		d.log.Info("stopping")
		d.stopErr = d.stopParts(ctx, orderly)
		d.log.Info("stopped")
	})
	return d.stopErr
}

// Kill stops at once and leaves in the directory what kill -9 would: nothing more is written,
// clients are cut off without a word. The directory is free when it returns.
func (d *Daemon) Kill() {
	d.stop.Do(func() {
		d.setPhase(httpapi.Stopping, "killed")
		_ = d.stopParts(context.Background(), killed)
	})
}

// ending is how a daemon ends.
type ending int

const (
	orderly ending = iota
	killed
)

// stopParts takes down what start brought up, in the opposite order; parts that never came up
// are nil.
func (d *Daemon) stopParts(ctx context.Context, how ending) error {
	var faults []error
	// 0. After a kill nobody writes, so the store goes before those who would.
	if how == killed {
		d.store.Abandon()
	}
	// 1. Nothing is released any more, which clients that leave would not take. Then they are told
	// and leave; their last acks and publishes are still taken.
	if d.engine != nil {
		d.engine.Hold()
	}
	if d.server != nil {
		if how == killed {
			faults = append(faults, d.server.Close())
		} else if err := d.server.Shutdown(ctx); err != nil {
			d.log.Warn("clients cut off", "err", err)
		}
	}
	// 2. Nothing falls due any more.
	if d.engine != nil {
		d.engine.Stop()
		if d.steps != nil {
			d.steps.Stop()
		}
		d.alarms.Stop()
	}
	// 3. The broker, then the store, which makes everything durable.
	if d.broker != nil {
		faults = append(faults, d.broker.Close())
	}
	if d.store != nil && how == orderly {
		faults = append(faults, d.store.Close())
	}
	// 4. HTTP last: until here it answers that we are stopping. Ports that nobody came to serve.
	if d.http != nil {
		if err := d.http.Shutdown(ctx); err != nil {
			d.log.Warn("HTTP requests cut off", "err", err)
		}
	}
	d.ports.close()
	d.space.stop()
	d.serving.Wait()
	return errors.Join(faults...)
}
