package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is what Serve returns after Shutdown or Close.
var ErrClosed = errors.New("server closed")

// Server accepts AMQP connections. Made by New; safe for concurrent use.
type Server struct {
	cfg    Config
	log    *slog.Logger
	events events
	total  tally // of connections that are gone

	isBlocked atomic.Bool // blocked is not ""

	mu        sync.Mutex // guards all below
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	closed    bool
	blocked   string // why publishers are blocked, "" if they are not
	opened    uint64
	ended     uint64
	wg        sync.WaitGroup // one per connection; not guarded, but added to only while not closed
}

// New returns a server that serves nothing yet.
func New(cfg Config) (*Server, error) {
	if cfg.Broker == nil || cfg.Authenticator == nil {
		return nil, errors.New("make server: broker and authenticator are required")
	}
	cfg = cfg.withDefaults()
	log := cfg.Logger.With("part", "server")
	s := &Server{
		cfg:       cfg,
		log:       log,
		listeners: map[net.Listener]struct{}{},
		conns:     map[*conn]struct{}{},
	}
	s.events.log = log
	return s, nil
}

// Serve accepts connections until Shutdown or Close, after which it returns
// ErrClosed, or until the listener breaks. It closes the listener. Connections
// that are TLS (from tls.Listener) may authenticate by certificate.
func (s *Server) Serve(ln net.Listener) error {
	defer ln.Close()
	if !s.addListener(ln) {
		return ErrClosed
	}
	defer s.removeListener(ln)
	s.log.Debug("listening for AMQP", "addr", ln.Addr().String())
	pause := time.Duration(0)
	for {
		nc, err := ln.Accept()
		if err == nil {
			pause = 0
			s.start(nc)
			continue
		}
		if s.isClosed() {
			return ErrClosed
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept connection: %w", err)
		}
		// Out of file descriptors, most likely: those who are connected stay served,
		// and later ones get in when some have left.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.events.note(eventAccept, slog.LevelWarn, "cannot accept connection",
			slog.Any("err", err), slog.Duration("retry", pause))
		time.Sleep(pause)
	}
}

// start serves a connection in goroutines of its own.
func (s *Server) start(nc net.Conn) {
	c, ok := s.register(nc)
	if !ok {
		nc.Close()
		return
	}
	go func() {
		defer s.wg.Done()
		c.serve()
		s.unregister(c)
	}()
}

// ServeConn serves one connection and returns when it is over.
func (s *Server) ServeConn(nc net.Conn) {
	c, ok := s.register(nc)
	if !ok {
		nc.Close()
		return
	}
	defer s.wg.Done()
	c.serve()
	s.unregister(c)
}

func (s *Server) register(nc net.Conn) (*conn, bool) {
	c := newConn(s, nc)
	limit := s.cfg.MaxConnections
	s.mu.Lock()
	full := limit > 0 && len(s.conns) >= limit
	accepted := !s.closed && !full
	if accepted {
		s.opened++
		s.conns[c] = struct{}{}
		s.wg.Add(1)
	}
	s.mu.Unlock()
	if full {
		c.note(eventRefused, slog.LevelWarn, "connection refused: limit is reached", slog.Int("n", limit))
	}
	return c, accepted
}

func (s *Server) unregister(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended++
	delete(s.conns, c)
	s.total.add(c.counts())
}

// Shutdown stops accepting, tells every client that the broker goes away and
// waits for them to leave. Whoever has not left when ctx ends, or within the
// close timeout, is cut off.
func (s *Server) Shutdown(ctx context.Context) error {
	conns := s.stopAccepting()
	for _, c := range conns {
		c.force("broker forced connection closure with reason 'shutdown'")
	}
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, c := range s.snapshot() {
		c.kill()
	}
	// A reader that waits for the broker, on a disk that hangs say, hears of it when
	// the broker answers.
	select {
	case <-done:
	case <-time.After(s.cfg.CloseTimeout):
	}
	return ctx.Err()
}

// Close cuts every connection off without a word, as if the process had been
// killed, and waits for their goroutines.
func (s *Server) Close() error {
	for _, c := range s.stopAccepting() {
		c.kill()
	}
	s.wg.Wait()
	return nil
}

// stopAccepting closes the listeners and returns the connections there are.
func (s *Server) stopAccepting() []*conn {
	s.mu.Lock()
	s.closed = true
	for ln := range s.listeners {
		ln.Close()
	}
	s.mu.Unlock()
	return s.snapshot()
}

// Block asks clients that publish to stop and reads no more publishes until
// Unblock: something they use up is scarce. Clients see connection.blocked with
// the reason. [rmq connection.blocked]
func (s *Server) Block(reason string) {
	s.setBlocked(reason)
	for _, c := range s.snapshot() {
		c.updateBlocked(reason)
	}
}

// Unblock ends what Block began.
func (s *Server) Unblock() {
	s.setBlocked("")
	for _, c := range s.snapshot() {
		c.updateBlocked("")
	}
}

func (s *Server) setBlocked(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = reason
	s.isBlocked.Store(reason != "")
}

// blockedReason returns why publishers are blocked, "" if they are not.
func (s *Server) blockedReason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blocked
}

// Connections lists the connections by name.
func (s *Server) Connections() []ConnInfo {
	conns := s.snapshot()
	infos := make([]ConnInfo, len(conns))
	for i, c := range conns {
		infos[i] = c.info()
	}
	slices.SortFunc(infos, func(a, b ConnInfo) int { return strings.Compare(a.Name, b.Name) })
	return infos
}

// CloseConnection closes the connection of that name with 320 and the reason. It
// reports whether there is one.
func (s *Server) CloseConnection(name, reason string) bool {
	for _, c := range s.snapshot() {
		if c.name == name {
			c.force(reason)
			return true
		}
	}
	return false
}

// CloseVHost closes all connections to a virtual host, with 320 and the reason.
func (s *Server) CloseVHost(vhost, reason string) {
	s.closeAll(reason, func(p *peer) bool { return p.vhost == vhost })
}

// CloseUser closes all connections of a user, with 320 and the reason.
func (s *Server) CloseUser(user, reason string) {
	s.closeAll(reason, func(p *peer) bool { return p.user == user })
}

// closeAll closes the connections that are open and answer to the description.
func (s *Server) closeAll(reason string, matches func(*peer) bool) {
	for _, c := range s.snapshot() {
		c.mu.Lock()
		found := c.told.peer.user != "" && matches(&c.told.peer)
		c.mu.Unlock()
		if found {
			c.force(reason)
		}
	}
}

func (s *Server) snapshot() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

func (s *Server) addListener(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.listeners[ln] = struct{}{}
	return true
}

func (s *Server) removeListener(ln net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, ln)
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
