package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// ErrClosed is what Serve returns after Shutdown and Close.
var ErrClosed = errors.New("gateway closed")

// Config says where a gateway leads.
type Config struct {
	// Dial connects to the broker, with TLS if that is wanted; once for each client. Required.
	Dial func(context.Context) (net.Conn, error)
	// ShowsCertificate says that Dial shows the broker a certificate, by which it might take a
	// client for the relay. Then only AMQP 0-9-1 is let through, where the gateway sees to that.
	ShowsCertificate bool
	// Topology makes and knows delayed exchanges. Required.
	Topology Topology
	// MaxConnections is how many clients may be connected; 0 for no limit.
	MaxConnections int
	// Logger is told of topology, refusals and faults; nil discards.
	Logger *slog.Logger
}

// Gateway accepts AMQP clients and carries what they say to a broker and back. Made by New; safe
// for concurrent use.
type Gateway struct {
	cfg       Config
	log       *slog.Logger
	exchanges exchanges
	stats     stats
	buffers   sync.Pool // of *[busyBuffer]byte
	// nowhere is the name of an exchange that does not exist.
	nowhere string
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	work    sync.WaitGroup // one for each link, and for work on the topology

	mu        sync.Mutex // guards all below
	leaving   bool       // nobody is accepted any more
	closed    bool
	listeners map[net.Listener]struct{}
	links     map[*link]struct{}
}

// New returns a gateway that serves nothing yet.
func New(cfg Config) (*Gateway, error) {
	if cfg.Dial == nil || cfg.Topology == nil {
		return nil, errors.New("make gateway: dial and topology are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{
		cfg: cfg, log: cfg.Logger.With("part", "gateway"),
		nowhere:   "duepost.nowhere." + rand.Text(),
		listeners: map[net.Listener]struct{}{}, links: map[*link]struct{}{},
	}
	g.buffers.New = func() any { return new([busyBuffer]byte) }
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.exchanges = exchanges{ctx: g.ctx, topology: cfg.Topology, known: map[exchangeKey]*exchange{}}
	return g, nil
}

// Serve accepts clients until Shutdown or Close, after which it returns ErrClosed, or until the listener
// breaks. It closes the listener, which may be one of TLS.
func (g *Gateway) Serve(ln net.Listener) error {
	defer ln.Close()
	if !g.addListener(ln) {
		return ErrClosed
	}
	defer g.removeListener(ln)
	g.log.Info("gateway listens", "addr", ln.Addr().String())
	pause := time.Duration(0)
	for {
		client, err := ln.Accept()
		if err == nil {
			pause = 0
			g.start(client)
			continue
		}
		if g.isLeaving() {
			return ErrClosed
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept connection: %w", err)
		}
		// Out of file descriptors, most likely: those who are connected stay served.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		g.log.Warn("cannot accept connection", "err", err, "retry", pause)
		select {
		case <-time.After(pause):
		case <-g.ctx.Done():
		}
	}
}

// start serves a client in goroutines of its own.
func (g *Gateway) start(client net.Conn) {
	l := newLink(g, client)
	g.mu.Lock()
	full := g.cfg.MaxConnections > 0 && len(g.links) >= g.cfg.MaxConnections
	if g.leaving || full {
		g.mu.Unlock()
		g.stats.turned.Add(1)
		l.close()
		return
	}
	g.links[l] = struct{}{}
	g.stats.opened.Add(1)
	g.work.Add(1)
	g.mu.Unlock()
	go func() {
		defer g.work.Done()
		l.serve()
		g.mu.Lock()
		delete(g.links, l)
		g.mu.Unlock()
	}()
}

func (g *Gateway) isLeaving() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leaving
}

func (g *Gateway) addListener(ln net.Listener) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.leaving {
		g.listeners[ln] = struct{}{}
	}
	return !g.leaving
}

func (g *Gateway) removeListener(ln net.Listener) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.listeners, ln)
}

// Shutdown accepts nobody any more, tells the clients to leave, as a broker that shuts down does, and
// waits for that until ctx ends. Then it is Close.
func (g *Gateway) Shutdown(ctx context.Context) error {
	g.mu.Lock()
	g.leaving = true
	var all []error
	for ln := range g.listeners {
		all = append(all, ln.Close())
	}
	clear(g.listeners)
	links := slices.Collect(maps.Keys(g.links))
	g.mu.Unlock()
	for _, l := range links {
		l.leave()
	}
	left := make(chan struct{})
	go func() {
		g.work.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-ctx.Done():
	}
	return errors.Join(append(all, g.Close())...)
}

// Close ends all connections, as a broker that crashes would, and waits for everything that the
// gateway has begun.
func (g *Gateway) Close() error {
	g.mu.Lock()
	var all []error
	if !g.closed {
		g.closed, g.leaving = true, true
		g.cancel() // and so all links
		for ln := range g.listeners {
			all = append(all, ln.Close())
		}
	}
	g.mu.Unlock()
	g.work.Wait()
	g.exchanges.asking.Wait()
	return errors.Join(all...)
}
