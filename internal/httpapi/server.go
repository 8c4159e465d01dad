package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Limits of one connection: a client that dawdles does not hold a goroutine for ever.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = time.Minute
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// Server serves an API on a listener.
type Server struct {
	http http.Server
}

// NewServer returns a server that serves nothing yet.
func NewServer(a *API) *Server {
	return &Server{http: http.Server{
		Handler:           a,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}}
}

// Serve answers requests until Shutdown or Close; then it returns nil. It closes the listener.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

// Shutdown lets requests end, until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop HTTP: %w", err), s.http.Close())
	}
	return nil
}

// Close cuts all connections.
func (s *Server) Close() error { return s.http.Close() }
