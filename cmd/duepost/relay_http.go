package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/relay"
	"github.com/duepost/duepost/internal/relay/admin"
)

// Times of the HTTP port of a relay.
const (
	adminReadTimeout = 10 * time.Second
	adminGrace       = 5 * time.Second
)

// serveAdmin opens the HTTP port of a relay. What it returns serves until the context ends.
func serveAdmin(addr string, fleet *relay.Fleet, in *relayCmd, log *slog.Logger) (func(context.Context) error, error) {
	cfg := admin.Config{Fleet: fleet, Logger: log}
	if in.Management != noManagement {
		node, err := amqp.ParseURI(in.RabbitMQ[0])
		if err != nil {
			return nil, err
		}
		cfg.Management = relay.Management(node, in.Management)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, &hintedError{fmt.Errorf("open HTTP port: %w", err), "--http is HOST:PORT, free on this machine", exitRefused}
	}
	server := &http.Server{Handler: admin.New(cfg), ReadHeaderTimeout: adminReadTimeout}
	log.Info("relay answers HTTP", "addr", ln.Addr().String())
	return func(ctx context.Context) error {
		served := make(chan error, 1)
		go func() { served <- server.Serve(ln) }()
		select {
		case err := <-served:
			return fmt.Errorf("answer HTTP: %w", err)
		case <-ctx.Done():
		}
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), adminGrace)
		defer cancel()
		err := server.Shutdown(late)
		if said := <-served; !errors.Is(said, http.ErrServerClosed) {
			err = errors.Join(err, said)
		}
		return err
	}, nil
}
